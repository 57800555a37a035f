"""`askance ingest`: answers from a file into a labelling project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from askance.cli import console
from askance.label import LabelingOptions
from askance.label.files import read_answers
from askance.label.ingest import Refusal
from askance.label.ingest import ingest as ingest_answers

IN_PART = 4  # the exit code when some rows were refused
_MOST_SHOWN = 20


def ingest(
    file: Annotated[
        Path, typer.Argument(help="Answers: .csv, .tsv, .jsonl, .json (a list) or .parquet.")
    ],
    project: Annotated[Path, typer.Option(help="Folder of the labelling project.")],
    annotator: Annotated[
        str | None, typer.Option(help="Annotator of rows that name none (default: you).")
    ] = None,
    id: Annotated[str | None, typer.Option(help="Column of identifiers (default: id).")] = None,
    label: Annotated[str | None, typer.Option(help="Column of classes (default: label).")] = None,
    annotator_column: Annotated[
        str | None, typer.Option(help="Column of annotators (default: annotator).")
    ] = None,
    time: Annotated[str | None, typer.Option(help="Column of times (default: time).")] = None,
    skipped: Annotated[
        str | None, typer.Option(help="Column that is true for a skip (default: skipped).")
    ] = None,
    skip_empty: Annotated[
        bool, typer.Option("--skip-empty", help="Count an empty label as a skip.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace earlier answers of the same person.")
    ] = False,
    add_classes: Annotated[
        bool, typer.Option("--add-classes", help="Add unknown classes to the project.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Report, but store nothing.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with every refusal.")] = False,
) -> int:
    """Add answers from a file to a labelling project.

    Rows that cannot be used are reported. Exit code 4: some rows were refused, the others are stored.
    """
    named = {
        "id": id,
        "label": label,
        "annotator": annotator_column,
        "time": time,
        "skipped": skipped,
    }
    columns = {role: name for role, name in named.items() if name is not None}
    name = LabelingOptions().annotator if annotator is None else annotator
    answer_file = read_answers(file, name, columns, skip_empty=skip_empty)
    done = ingest_answers(
        project, answer_file.answers, replace=replace, add_classes=add_classes, dry_run=dry_run
    )
    refused = sorted([*answer_file.refused, *done.refused], key=_place)
    summary = {
        "project": str(project),
        "dry_run": dry_run,
        "applied": len(done.applied),
        "unchanged": len(done.unchanged),
        "unanswered": len(answer_file.left),
        "refused": len(refused),
        "skips": sum(answer.label is None for answer in done.applied),
        "classes": done.classes,
        "refusals": [refusal._asdict() for refusal in refused],
    }
    if json:
        console.as_json(summary)
    else:
        _print(summary)
    return IN_PART if refused else 0


def _place(refusal: Refusal) -> int:
    return int(refusal.where.split()[-1])


def _print(summary: dict[str, Any]) -> None:
    of_them = f" ({summary['skips']:,} of them skips)" if summary["skips"] else ""
    counts = [f"{summary['applied']:,} {'would be ' * summary['dry_run']}applied{of_them}"]
    counts += [f"{summary[name]:,} {name}" for name in ("unchanged", "unanswered", "refused")]
    console.line(", ".join(counts))
    if summary["classes"]:
        verb = "Classes to add" if summary["dry_run"] else "Classes added"
        console.line(f"{verb}: {', '.join(summary['classes'])}")
    if summary["refusals"]:
        rows = [list(refusal.values()) for refusal in summary["refusals"][:_MOST_SHOWN]]
        console.table(None, ["where", "item", "why not"], rows, set())
        if summary["refused"] > _MOST_SHOWN:
            console.line(f"… and {summary['refused'] - _MOST_SHOWN:,} more; --json lists them all")
