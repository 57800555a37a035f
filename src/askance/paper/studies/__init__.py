"""Studies of the paper's claims: each measures, draws, and says what it found.

    askance paper study reference --quick

A study writes OUT/NAME.json (the data), OUT/NAME.png and .svg (the figure) and OUT/NAME.md (the
findings). Its full form is the paper's; its quick form is for a CPU and a few minutes, and differs in
nothing but its options.

To add a study, write a module with a `STUDY` and name it in `STUDIES`.
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
from askance.embedding.device import usable_or_best
from askance.errors import DataError, InputError, UnknownError
from askance.experiments import machine
from askance.figures import style
from askance.paper.studies import (
    contraction,
    cost,
    geometry,
    grand,
    labels,
    reference,
    shift,
    theory,
)
from askance.paper.studies.lab import Lab, Location, Say, silent
from askance.paper.studies.record import from_json
from askance.paper.studies.study import AnyStudy, Study, StudyTable

STUDIES: dict[str, AnyStudy] = {
    module.STUDY.name: module.STUDY
    for module in (geometry, shift, contraction, cost, reference, labels, grand, theory)
}


@dataclass(frozen=True)
class StudyReport:
    """A study that was run: its findings and its numbers, and the files that were written."""

    study: str
    form: str
    findings: str
    table: StudyTable
    seconds: float
    files: tuple[Path, ...]


def names() -> list[str]:
    """The names of all studies."""
    return list(STUDIES)


def get(name: str) -> AnyStudy:
    """The study `name`."""
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
    say: Say = silent,
) -> StudyReport:
    """Run the study `name`, and write its data, figure and page into the folder `out`.

    Args:
        name: one of `names()`.
        out: the folder to write to; it is made if it does not exist.
        quick: run the form for a CPU and a few minutes instead of the paper's.
        seed: the random seed.
        device: "cpu", "cuda", …; if None, CUDA where there is one.
        data_dir: a folder in which datasets are looked for first.
        say: called with every step, in words.
    """
    study = get(name)
    lab = Lab(usable_or_best(device), data_dir, say)
    folder = Path(out).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write into {folder}: {error.strerror or error}") from None
    start = time.perf_counter()
    result = study.run(replace(study.quick if quick else study.full, seed=seed), lab)
    seconds = time.perf_counter() - start
    form = "quick" if quick else "full"
    return write(study, result, folder, form=form, seconds=seconds, device=str(lab.device))


def findings(study: AnyStudy, result: Any) -> str:
    """The findings of a result, and how its options differ from those of the full form."""
    full, used = asdict(study.full), asdict(result.options)
    other = [
        f"{key} {_option(value)} for {_option(full[key])}"
        for key, value in used.items()
        if key != "seed" and value != full[key]
    ]
    differs = f"\n- Not the full form: {', '.join(other)}." if other else ""
    return study.findings(result) + differs


def write(
    study: AnyStudy, result: Any, folder: Path, *, form: str, seconds: float, device: str
) -> StudyReport:
    """Write the data of a result first, then the figure and the page that are made of it."""
    record = {
        "study": study.name,
        "form": form,
        "result": asdict(result),
        "seconds": round(seconds, 1),
        "machine": {
            "device": device,
            "threads": torch.get_num_threads(),
            "hardware": machine.hardware(),
            "packages": machine.packages(),
            "code": machine.code_version(),
        },
    }
    data = folder / f"{study.name}.json"
    content = json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
    atomic_write(data, content.encode())
    files = (data, *_draw_and_describe(study, result, record, data, style.FORMATS))
    said, table = findings(study, result), study.table(result)
    return StudyReport(study.name, form, said, table, seconds, files)


def read(path: Location) -> tuple[AnyStudy, Any]:
    """The study and the result of a file OUT/NAME.json."""
    study, result, _ = _read(path)
    return study, result


def remake(path: Location) -> list[Path]:
    """Make a study's page again, and those of its pictures that are there, from its data alone."""
    data = Path(path)
    formats = [kind for kind in style.FORMATS if data.with_suffix(f".{kind}").exists()]
    return _draw_and_describe(*_read(path), data, formats)


def _read(path: Location) -> tuple[AnyStudy, Any, dict[str, Any]]:
    try:
        record = json.loads(Path(path).read_text("utf-8"))
        study = get(record["study"])
        return study, from_json(study.result, record["result"]), record
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a study's data: {error}") from error


def _draw_and_describe(
    study: AnyStudy, result: Any, record: dict[str, Any], data: Path, formats: Sequence[str]
) -> list[Path]:
    """Write the figure in some formats and the page, both beside the data; returns the files."""
    files = style.save(study.draw(result), data.with_suffix(""), formats) if formats else []
    page = data.with_suffix(".md")
    atomic_write(page, _page(study, result, record).encode())
    return [*files, page]


def _page(study: AnyStudy, result: Any, record: dict[str, Any]) -> str:
    made_on = record["machine"]
    hardware = made_on["hardware"]
    gpus = ", ".join(hardware["gpus"]) or "no GPU"
    options = ", ".join(
        f"{key} {_option(value)}" for key, value in record["result"]["options"].items()
    )
    provenance = (
        f"*{record['form']} form, {record['seconds']:g} s on {made_on['device']} "
        f"({hardware['processor']}, {hardware['cores']} cores, {gpus}; "
        f"torch {made_on['packages']['torch']}; askance {made_on['code']}). Options: {options}.*"
    )
    parts = [
        f"# {study.name}: {study.about}",
        findings(study, result),
        f"![{study.name}]({study.name}.png)",
        study.table(result).markdown(),
        provenance,
    ]
    return "\n\n".join(parts) + "\n"


def _option(value: Any) -> str:
    """An option's value as a page shows it."""
    if isinstance(value, dict):
        given = {key: inner for key, inner in value.items() if inner is not None}
        return " ".join(
            _option(inner) if key == "name" else f"{key}={_option(inner)}"
            for key, inner in given.items()
        )
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(map(_option, value)) + ")"
    if value is None:
        return "all"
    return f"{value:g}" if isinstance(value, float) else str(value)


__all__ = [
    "STUDIES",
    "Lab",
    "Study",
    "StudyReport",
    "StudyTable",
    "conduct",
    "findings",
    "get",
    "names",
    "read",
    "remake",
    "write",
]
