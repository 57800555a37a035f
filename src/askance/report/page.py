"""A report from paths: read, put together, written."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from askance._io.atomic import atomic_write
from askance._io.filenames import file_name, is_path
from askance.data.load import data_folders
from askance.errors import StoreError, UnknownError
from askance.experiments.export import PathLike
from askance.figures import style
from askance.report import html, markdown
from askance.report.by_class import by_class_section
from askance.report.comparisons import across_section, penalty_section
from askance.report.elements import Page
from askance.report.facts import OVERLAP, Facts, read
from askance.report.formatting import join_names, plural
from askance.report.picks import picks_section
from askance.report.provenance import provenance_section
from askance.report.sections import cost_section, curves_section, runs_section, verdict_section
from askance.report.thirds import thirds_section
from askance.report.training import flagged_warnings, training_section

FORMATS = ("html", "md")


def write(
    paths: PathLike | Iterable[PathLike] | Facts,
    out: PathLike,
    *,
    format: str | None = None,
    figures: PathLike | None = None,
    data_dir: Path | None = None,
) -> Path:
    """Write a report of stores, exports, or folders of them; returns its path.

    Args:
        paths: or what `read` found at them, with a suite where there is one.
        out: the page, or a folder to put it in; its pictures are inside it. Those of a Markdown page
            are in a folder beside it, `report-files` for `report.md`.
        format: "html" or "md"; by the name of `out` when left out, else "html".
        figures: a folder for every figure that the stores can give, as SVG and PNG.
        data_dir: a folder to look for datasets in first, to show what was picked.
    """
    path = Path(out)
    kind = format or {".md": "md", ".markdown": "md"}.get(path.suffix.lower(), "html")
    if kind not in FORMATS:
        raise UnknownError.of("format of a report", kind, FORMATS)
    if path.is_dir():
        path = path / f"report.{kind}"
    if data_dir is not None:
        data_folders(data_dir)  # a folder that is not there is an error, not a report without picks
    facts = paths if isinstance(paths, Facts) else read(paths)
    page = make(facts, os.fspath(path), data_dir)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "html":
            atomic_write(path, html.render(page).encode())
        else:
            files = path.with_name(f"{path.stem}-files")
            atomic_write(path, markdown.render(page, files).encode())
        if figures is not None:
            save_figures(facts, figures)
    except OSError as error:
        where = error.filename or path
        reason = error.strerror or error
        raise StoreError(f"cannot write {where}: {reason}; name another place") from error
    return path


def save_figures(facts: Facts, folder: PathLike) -> list[Path]:
    """Every figure the stores can give, as SVG and PNG, under a name that stays in the folder."""
    written = []
    for name, drawing in facts.figures.items():
        written += style.save(drawing(), Path(folder) / f"{file_name(name)}.svg")
    return written


def make(facts: Facts, out: str, data_dir: Path | None = None) -> Page:
    """The report, before it is written down."""
    names = [one.name for one in facts.experiments]
    title = names[0] if len(names) == 1 else f"{len(names)} experiments"
    sections = [
        verdict_section(facts),
        curves_section(facts),
        penalty_section(facts),
        across_section(facts),
        thirds_section(facts),
        picks_section(facts, data_dir),
        cost_section(facts),
        training_section(facts),
        by_class_section(facts),
        runs_section(facts),
        provenance_section(facts, out),
    ]
    return Page(
        f"askance: {title}",
        _subtitle(facts),
        facts.verdict.headline,
        "Labels cost money. Each rule here chose which points to have labelled next; after every batch "
        f"the same {facts.learner} was {_how(facts.learner)} on what it had, and tested. The better "
        "rule is higher with fewer labels.",
        _warnings(facts),
        [section for section in sections if section is not None],
        "A report by askance: one file, nothing loaded from elsewhere.",
    )


def _how(learner: str) -> str:
    return {"network": "trained from scratch", "regression": "fitted anew"}.get(
        learner, "trained anew"
    )


def _subtitle(facts: Facts) -> str:
    first, *others = facts.experiments
    encoders = {store.spec["encoder"] for store in facts.stores if "encoder" in store.spec}
    on = "".join(f" on {encoder}" for encoder in encoders)
    what = "" if others else f"{first.dataset} with {first.model}{on}, "
    rules = plural(len({row.strategy for row in facts.rows}), "rule")
    runs = plural(len({(row.experiment, row.strategy, row.seed) for row in facts.rows}), "run")
    return f"{what}{rules}, {runs}, {plural(len({row.seed for row in facts.rows}), 'seed')}"


def _warnings(facts: Facts) -> list[str]:
    """What must be known before any number is read."""
    subsets: dict[str, list[str]] = {}
    for store in facts.stores:
        if store.info["subset"]:
            dataset = store.spec["dataset"]
            official = "" if is_path(dataset) else "Not the official data. "
            text = f"{official}{Path(dataset).stem}: {store.info['subset']}"
            subsets.setdefault(text, []).append(store.name)
    warnings = [f"{text} (in {join_names(names)})." for text, names in subsets.items()]
    if facts.overlapping:
        names = join_names(facts.overlapping)
        warnings.append(
            f"{OVERLAP} marks {names}: the encoder was trained on images that overlap with theirs, so "
            "accuracies there flatter it."
        )
    for store in facts.stores:
        if store.unfinished:
            lack = "lacks" if len(store.unfinished) == 1 else "lack"
            warnings.append(
                f"{store.name} is unfinished: {len(store.unfinished)} of "
                f"{plural(len(store.progress), 'run')} {lack} rounds, so everything here may change."
            )
    warnings += _repeated(facts)
    warnings += flagged_warnings(facts)
    if facts.bare:
        warnings.append(
            f"Of {join_names(facts.bare)} there is a table of results alone: what was picked, what it "
            "cost, how it was run and whether its data is the official set are not known."
        )
    return warnings


def _repeated(facts: Facts) -> list[str]:
    """Rules whose runs are one run, in an experiment: no test over its seeds says anything of them."""
    warnings = []
    for one in facts.every_round:
        accuracy_MST = one.accuracy_MST
        same = [
            rule
            for rule, accuracy_ST in zip(one.methods, accuracy_MST, strict=True)
            if len(accuracy_ST) > 1
            and np.isfinite(accuracy_ST).all()
            and (accuracy_ST == accuracy_ST[0]).all()
        ]
        if same:
            warnings.append(
                f"In {one.name} every seed gives the same run of {join_names(same)}: it is one run, so "
                "intervals and tests over the seeds say nothing of it. Seeds differ where the first "
                'labels are random ([schedule] first = "random"), or where each seed sees its own part '
                "of the pool (pool = 0.8)."
            )
    return warnings
