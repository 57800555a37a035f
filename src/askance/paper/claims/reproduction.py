"""REPRODUCTION.md: the paper from its first claim to its last figure, and what became of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import askance
from askance.experiments.seeds import seed_ranges
from askance.experiments.statistics.curves import curves
from askance.experiments.statistics.table import BASELINE
from askance.paper.claims.contents import PaperItem, contents, source
from askance.paper.claims.evidence import Evidence
from askance.paper.claims.judge import JudgedClaim, shown
from askance.paper.claims.lookup import LookedUp, look_up
from askance.paper.claims.page import MARK
from askance.paper.claims.pictures import panels, picture
from askance.paper.claims.preface import preface
from askance.paper.claims.sensitivity import Choices
from askance.paper.claims.stated import as_stated
from askance.paper.claims.tables import over_random
from askance.paper.claims.variant_runs import variant_names
from askance.paper.suite import SUITE
from askance.report.formatting import plural
from askance.report.markdown import plain, table

REPRODUCTION = "REPRODUCTION.md"
_REPOSITORY = Path(askance.__file__).resolve().parents[2]
_COLUMNS = ("the paper", "its words", "ours", "what is judged", "verdict", "how it moves")

_LATEX = {
    "$": "", "{,}": ",", "{=}": " = ", "\\mathcal{DF}": "DF", "\\in": " ∈ ", "\\{": "{", "\\}": "}",
    "\\times": "×", "\\ldots": "…", "--": "–", " ,": ",",
}  # fmt: skip


def render(evidence: Evidence, choices: Choices | None = None) -> str:
    """The page; equal data give equal text.

    Args:
        choices: those of what decides, where they were tried before.
    """
    looked = look_up(evidence, choices or Choices(evidence.case, evidence.variants))
    parts = [MARK, "# The paper, item by item", *preface(looked)]
    for section in contents().section:
        parts += [f"## {plain(section.title)}", _table(looked, section.item)]
        parts += [text for item in section.item for text in picture(evidence, item)]
    parts += ["## Variants", *_variants(evidence)]
    parts += ["## What became of the earlier verdicts", _became(looked)]
    return "\n\n".join(parts) + "\n"


def unanswered(evidence: Evidence) -> list[str]:
    """The names of claims in `paper.toml` that nothing in the folder has."""
    looked = look_up(evidence, Choices(evidence.case))
    for section in contents().section:
        for item in section.item:
            looked.claims(item)
    return looked.missed


def _table(looked: LookedUp, items: Sequence[PaperItem]) -> str:
    """One row an item, and one more for each further claim of it; cells are Markdown already.

    A column that is empty in all of them is not shown.
    """
    rows: list[list[str]] = []
    for item in items:
        head = [
            f"**{plain(item.number)}** {plain(item.about)}",
            "<br>".join(f"“{_quoted(words)}”" for words in item.says),
            "<br>".join(_ours(looked.evidence, item)),
        ]
        for answer in _answers(looked, item):
            rows.append([*head, *answer])
            head = ["", "", ""]
    kept = [at for at in range(len(_COLUMNS)) if any(row[at] for row in rows)]
    lines = [_COLUMNS, ["---"] * len(_COLUMNS), *rows]
    return "\n".join(f"| {' | '.join(line[at] for at in kept)} |" for line in lines)


def _quoted(words: str) -> str:
    """The paper's words without the marks of LaTeX."""
    words = " ".join(words.split())
    for mark, sign in _LATEX.items():
        words = words.replace(mark, sign)
    return plain(words)


def _with_code(text: str) -> str:
    """Text for a cell, in which `code` stays code."""
    return plain(text).replace("\\`", "`")


def _ours(evidence: Evidence, item: PaperItem) -> Iterator[str]:
    """Links to code, tests and files, and the note; what the folder has not is named without a link."""
    for code in item.code:
        yield _link(evidence.folder, f"`{code.partition(':')[2]}`", source(code))
    for test in item.tests:
        yield _link(evidence.folder, f"test: {Path(test).name}", test)
    for file in (*filter(None, [item.figure]), *item.files):
        there = file.startswith("RESULTS.md") or _is_there(evidence, file)
        name = plain(Path(file.partition("#")[0]).name)
        yield f"[{name}]({file})" if there else f"{name}: not here"
    if item.note:
        yield _with_code(item.note)


def _link(folder: Path, text: str, path: str) -> str:
    """A link to a file of the repository where the folder is inside it; else the text alone."""
    place, target = folder.resolve(), _REPOSITORY / path
    if _REPOSITORY not in place.parents or not target.is_file():
        return text
    return f"[{text}]({Path(os.path.relpath(target, place)).as_posix()})"


def _is_there(evidence: Evidence, file: str) -> bool:
    return (evidence.folder / file).is_file()


def _answers(looked: LookedUp, item: PaperItem) -> list[tuple[str, str, str]]:
    """What is judged, the verdict, how it moves: of every claim, or of specs, panels or code."""
    claims = looked.claims(item)
    rows = [(_judged(one), _verdict(looked, one), _moves(looked, one)) for one in claims]
    if not claims:
        what, said = ("", "")
        if item.claims:
            said = "**cannot be judged**: nothing here measures it"
        elif item.panels:
            what, said = "panels", plain(panels(looked.evidence, item))
        elif item.spec:
            what, said = map(plain, as_stated(looked.evidence, item))
        elif item.figure:
            said = "drawn" if _is_there(looked.evidence, item.figure) else "not here"
        elif item.code:
            said = "implemented"
        if said or not item.left_out:
            rows.append((what, said, ""))
    if item.left_out:
        rows.append(("", f"*left out*: {_with_code(item.left_out)}", ""))
    return rows


def _judged(one: JudgedClaim) -> str:
    """The claim, and what was measured, with its unit."""
    what = one.measure.removesuffix(one.why).rstrip("; ")
    return plain(one.claim) + (f"<br>*{plain(what)}*" if what else "")


def _verdict(looked: LookedUp, one: JudgedClaim) -> str:
    number = f": {one.figure}, {one.n}" if one.figure != "–" else f": {one.why or one.measure}"
    was = looked.earlier.get(one.claim)
    before = ""
    if was:
        figure = f" {was.figure}, {was.n}" if was.figure != "–" else ""
        before = f"; exploratory: {was.verdict}{figure}"
    return f"**{one.verdict}**{plain(number + before)}"


def _moves(looked: LookedUp, one: JudgedClaim) -> str:
    """With which choices the verdict would be another, or of how many none."""
    tried = looked.moves.get(one.claim)
    return plain(tried.told) if tried and one.figure != "–" else "–"


def _variants(evidence: Evidence) -> list[str]:
    """What rules gain over random with one choice made otherwise, and in the experiment itself."""
    if not evidence.variants:
        return ["No runs of variants are here."]
    bases = {one.name: one for one in evidence.all_seeds.experiments}
    varied = {rule for one in evidence.variants for rule in one.results.methods}
    rules = [rule for rule in SUITE.sort(varied) if rule != BASELINE]
    rows = []
    for variant in evidence.variants:
        base, seeds = bases.get(variant.base), variant.results.seeds
        rows.append([variant.name, variant.differs, seed_ranges(seeds)])
        if base and set(seeds) & set(base.seeds):
            base = base.of_seeds(seeds)
        pairs = [("", variant.results), (variant.base, base)]
        for place, (name, one) in enumerate(pairs):
            if one is None or not one.seeds:
                continue
            line = rows[-1] if place == 0 else [name, "the experiment", seed_ranges(one.seeds)]
            both_curves = curves(one)
            gains = [
                over_random(both_curves, rule) if rule in one.methods else None for rule in rules
            ]
            line += [shown(gain.mean) if gain else "–" for gain in gains]
            if place:
                rows.append(line)
    says = "Points above random in mean accuracy, with bootstraps over seeds at 95%."
    parts = [says, table(["variant", "differs in", "seeds", *rules], rows, left=3)]
    here = {variant.name for variant in evidence.variants}
    gone = [name for name in variant_names() if name not in here]
    return [*parts, f"Not here: {', '.join(gone)}."] if gone else parts


def _became(looked: LookedUp) -> str:
    """Every claim whose exploratory verdict is another now, and how many are as they were."""
    if not looked.earlier:
        return "The seeds that decide are not here yet, so every verdict is the earlier one."
    pairs = [(old, looked.verdicts[name]) for name, old in looked.earlier.items()]
    moved = [(old, new) for old, new in pairs if old.verdict != new.verdict]
    same = len(pairs) - len(moved)
    rows = [[o.claim, o.verdict, o.figure, n.verdict, n.figure] for o, n in moved]
    columns = ["claim", "was", "figure [95%]", "is", "figure [95%]"]
    said = f"{same} of {plural(len(pairs), 'verdict')} are as they were."
    return f"{said} The others:\n\n{table(columns, rows, left=5)}" if rows else said
