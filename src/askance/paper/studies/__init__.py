"""Studies of the paper's claims: each measures, draws, and says in a paragraph what was found.

    askance paper study reference --quick

A study writes OUT/NAME.json (the data), OUT/NAME.png and .svg (the figure) and OUT/NAME.md (the
findings). Its full form is the paper's; its quick form is for a CPU and a few minutes, and differs in
nothing but its options.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from askance._io.atomic import atomic_write
from askance.errors import DataError, InputError, UnknownError
from askance.experiments import machine
from askance.figures import style
from askance.paper.studies import contraction, cost, geometry, reference, shift
from askance.paper.studies.lab import Lab, Location, Say
from askance.paper.studies.record import revived
from askance.paper.studies.study import AnyStudy, Study, Table

STUDIES: dict[str, AnyStudy] = {
    module.STUDY.name: module.STUDY for module in (geometry, shift, contraction, cost, reference)
}


@dataclass(frozen=True)
class Report:
    """A study that was made: what was found, and the files it was written to."""

    study: str
    form: str
    findings: str
    table: Table
    seconds: float
    files: tuple[Path, ...]


def names() -> list[str]:
    """The names of all studies."""
    return list(STUDIES)


def get(name: str) -> AnyStudy:
    if name not in STUDIES:
        raise UnknownError.of("study", name, STUDIES)
    return STUDIES[name]


def conduct(
    name: str,
    out: Location,
    *,
    quick: bool = False,
    seed: int = 0,
    device: torch.device | str | None = None,
    data_dir: Location | None = None,
    say: Say | None = None,
) -> Report:
    """Make the study `name` and write what came of it into the folder `out`.

    Args:
        name: one of `names()`.
        out: where to write; made where it is not there.
        quick: the form for a CPU and a few minutes instead of the paper's.
        seed: names every random draw.
        device: "cpu", "cuda", …; CUDA where there is one when None.
        data_dir: a folder to look for datasets in first.
        say: told of every step.
    """
    study = get(name)
    lab = Lab.at(device, data_dir, say)
    folder = _folder(out)
    options = replace(study.quick if quick else study.full, seed=seed)
    start = time.perf_counter()
    result = study.run(options, lab)
    seconds = time.perf_counter() - start
    form = "quick" if quick else "full"
    return write(study, result, folder, form=form, seconds=seconds, device=str(lab.device))


def told(study: AnyStudy, result: Any) -> str:
    """The findings, and in what the options are other than those of the full form."""
    full, used = asdict(study.full), asdict(result.options)
    other = [
        f"{key} {_shown(value)} for {_shown(full[key])}"
        for key, value in used.items()
        if key != "seed" and value != full[key]
    ]
    return study.findings(result) + (f" Not the full form: {', '.join(other)}." if other else "")


def write(
    study: AnyStudy, result: Any, folder: Path, *, form: str, seconds: float, device: str
) -> Report:
    """The data first, then what is made of it."""
    made_on = {
        "device": device,
        "threads": torch.get_num_threads(),
        "hardware": machine.hardware(),
        "packages": machine.packages(),
        "code": machine.code_version(),
    }
    record = {
        "study": study.name,
        "form": form,
        "result": asdict(result),
        "seconds": round(seconds, 1),
        "machine": made_on,
    }
    stem = folder / study.name
    data = stem.with_suffix(".json")
    content = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    atomic_write(data, content.encode())
    made = _make(study, result, record, stem, style.FORMATS)
    return Report(
        study.name, form, told(study, result), study.table(result), seconds, (data, *made)
    )


def read(path: Location) -> tuple[AnyStudy, Any]:
    """The study and the result of a file OUT/NAME.json, to be drawn or told again."""
    return _read(path)[:2]


def remake(path: Location) -> list[Path]:
    """The page beside a study's data, and those of its pictures that are there, from the data alone."""
    study, result, record = _read(path)
    stem = Path(path).with_suffix("")
    there = [kind for kind in style.FORMATS if stem.with_suffix(f".{kind}").exists()]
    return _make(study, result, record, stem, there)


def _read(path: Location) -> tuple[AnyStudy, Any, dict[str, Any]]:
    try:
        record = json.loads(Path(path).read_text("utf-8"))
        study = get(record["study"])
        return study, revived(study.result, record["result"]), record
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a study's data: {error}") from error


def _make(
    study: AnyStudy, result: Any, record: dict[str, Any], stem: Path, formats: Sequence[str]
) -> list[Path]:
    made = style.save(study.draw(result), stem, formats) if formats else []
    page = stem.with_suffix(".md")
    told_page = _page(study, record, told(study, result), study.table(result))
    atomic_write(page, told_page.encode())
    return [*made, page]


def _page(study: AnyStudy, record: dict[str, Any], findings: str, table: Table) -> str:
    hardware, made_on = record["machine"]["hardware"], record["machine"]
    gpus = ", ".join(hardware["gpus"]) or "no GPU"
    options = ", ".join(
        f"{key} {_shown(value)}" for key, value in record["result"]["options"].items()
    )
    return "\n".join(
        [
            f"# {study.name}: {study.about}",
            "",
            findings,
            "",
            f"![{study.name}]({study.name}.png)",
            "",
            table.markdown(),
            "",
            f"*{record['form']} form, {record['seconds']:g} s on {made_on['device']} "
            f"({hardware['processor']}, {hardware['cores']} cores, {gpus}; "
            f"torch {made_on['packages']['torch']}; askance {made_on['code']}). Options: {options}.*",
            "",
        ]
    )


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        given = {key: inner for key, inner in value.items() if inner is not None}
        return " ".join(
            _shown(inner) if key == "name" else f"{key}={_shown(inner)}"
            for key, inner in given.items()
        )
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(_shown, value)) + ")"
    if value is None:
        return "all"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _folder(out: Location) -> Path:
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write into {folder}: {error.strerror or error}") from None
    return folder


__all__ = [
    "STUDIES",
    "Lab",
    "Report",
    "Study",
    "Table",
    "conduct",
    "get",
    "names",
    "read",
    "remake",
    "told",
    "write",
]
