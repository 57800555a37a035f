"""REPRODUCTION.md: the paper from its first claim to its last figure, and what became of each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import askance
from askance.experiments.dotted import dotted
from askance.experiments.seeds import seed_ranges
from askance.experiments.statistics.curves import curves
from askance.experiments.statistics.table import BASELINE
from askance.paper.claims.contents import PaperItem, contents, source
from askance.paper.claims.evidence import Evidence
from askance.paper.claims.judge import CONFIRMED, DENIED, OPEN, UNJUDGED, JudgedClaim, shown
from askance.paper.claims.lookup import LookedUp, look_up
from askance.paper.claims.page import MARK
from askance.paper.claims.sensitivity import Choices
from askance.paper.claims.tables import over_random
from askance.paper.suite import SUITE
from askance.report.formatting import join_names, plural
from askance.report.markdown import plain, table

REPRODUCTION = "REPRODUCTION.md"
_REPOSITORY = Path(askance.__file__).resolve().parents[2]
_ABOUT = (
    "Everything the paper states, in its order and by its own numbers: its words, what of ours answers "
    "them, the verdict, and with which choices the verdict would be another. Verdicts are looked up in "
    "the stores and studies of this folder, by the rule of [JUDGING.md](JUDGING.md); [RESULTS.md]"
    "(RESULTS.md) has what was measured, [SENSITIVITY.md](SENSITIVITY.md) every choice. *Implemented* "
    "is said of code that is there, with the tests that check it."
)
_COLUMNS = ("the paper", "its words", "ours", "what is judged", "verdict", "how it moves")


def render(evidence: Evidence, choices: Choices | None = None) -> str:
    """The page; equal data give equal text.

    Args:
        choices: those of what decides, where they were tried before.
    """
    looked = look_up(evidence, choices or Choices(evidence.case, evidence.variants))
    parts = [MARK, "# The paper, item by item", _ABOUT, _seeds(evidence), _in_short(looked)]
    for section in contents().section:
        parts += [f"## {plain(section.title)}", _table(looked, section.item)]
        parts += [text for item in section.item for text in _picture(evidence.folder, item)]
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


def _seeds(evidence: Evidence) -> str:
    exploratory = seed_ranges(evidence.judging.exploratory)
    if evidence.is_exploratory:
        return f"**Exploratory**: every verdict is of seeds {exploratory}, which decide nothing."
    if evidence.judging.seeds is None:
        return "All seeds decide."
    decide = seed_ranges(evidence.judging.seeds)
    return f"Seeds {decide} decide; what seeds {exploratory} said is exploratory and beside it."


def _in_short(looked: LookedUp) -> str:
    """The claims of the paper by verdict, each once."""
    claims = {
        one.claim: one
        for section in contents().section
        for item in section.item
        for one in looked.claims(item)
    }
    lines = []
    for verdict in (CONFIRMED, DENIED, OPEN):
        those = [one.claim for one in claims.values() if one.verdict == verdict]
        lines.append(f"- **{verdict}** ({len(those)}): {plain('; '.join(those)) or 'none'}.")
    left = sum(one.verdict == UNJUDGED for one in claims.values())
    lines.append(
        f"- **{UNJUDGED}** ({left}): the reason stands with each in [RESULTS.md](RESULTS.md)."
    )
    return "\n".join(lines)


def _table(looked: LookedUp, items: Sequence[PaperItem]) -> str:
    """One row an item, and one more for each further claim of it; cells are Markdown already.

    A column that is empty in all of them is not shown.
    """
    rows: list[list[str]] = []
    for item in items:
        head = [
            f"**{plain(item.number)}** {plain(item.about)}",
            "<br>".join(f"“{plain(' '.join(words.split()))}”" for words in item.says),
            "<br>".join(_ours(looked.evidence, item)),
        ]
        for answer in _answers(looked, item):
            rows.append([*head, *answer])
            head = ["", "", ""]
    kept = [at for at in range(len(_COLUMNS)) if any(row[at] for row in rows)]
    lines = [_COLUMNS, ["---"] * len(_COLUMNS), *rows]
    return "\n".join(f"| {' | '.join(line[at] for at in kept)} |" for line in lines)


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
        yield plain(item.note)


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
    rows = [(plain(one.claim), _verdict(looked, one), _moves(looked, one)) for one in claims]
    if not claims:
        what, said = ("", "")
        if item.claims:
            said = "**cannot be judged**: nothing here measures it"
        elif item.panels:
            what, said = "panels", _panels(looked.evidence, item)
        elif item.spec:
            what, said = "the specs in the stores", _as_stated(looked.evidence, item)
        elif item.left_out:
            said = f"**{plain(item.left_out)}**"
        elif item.figure:
            said = "drawn" if _is_there(looked.evidence, item.figure) else "not here"
        elif item.code:
            said = "implemented"
        rows.append((what, said, ""))
    return rows


def _verdict(looked: LookedUp, one: JudgedClaim) -> str:
    number = f": {one.figure}, {one.n}" if one.figure != "–" else ""
    was = looked.earlier.get(one.claim)
    before = f"; exploratory: {was.verdict}" if was else ""
    return f"**{one.verdict}**{plain(number + before)}"


def _panels(evidence: Evidence, item: PaperItem) -> str:
    names = SUITE.panels[item.panels]
    gone = [name for name in names if name in evidence.missing]
    lacking = f"; not here: {join_names(gone)}" if gone else ""
    return plain(f"{len(names) - len(gone)} of {plural(len(names), 'panel')}{lacking}")


def _as_stated(evidence: Evidence, item: PaperItem) -> str:
    """In how many experiments the store's spec says what the paper says."""
    specs = {
        one.name: [dotted(store.spec) for store in evidence.stores(one.name)]
        for one in evidence.experiments
        if evidence.stores(one.name) and (not item.of or one.name in item.of)
    }
    odd = [name for name, those in specs.items() if not all(_says(spec, item) for spec in those)]
    if any(key == "recipe.learning_rates" for key, _ in item.spec):
        odd += [name for name in specs if name not in odd and not _has_best_rate(evidence, name)]
    differs = f"; differs in {join_names(odd)}" if odd else ""
    there = plural(len(specs), "experiment")
    return plain(f"as the paper says in {len(specs) - len(odd)} of {there}{differs}")


def _has_best_rate(evidence: Evidence, name: str) -> bool:
    """Whether each store has the rate that was the best on validation."""
    for store in evidence.stores(name):
        of_rate: dict[float, list[float]] = {}
        for one in store.sweep:
            of_rate.setdefault(one.learning_rate, []).append(one.accuracy)
        best = max((sum(each) / len(each) for each in of_rate.values()), default=None)
        taken = of_rate.get(store.info["learning_rate"], [])
        if best is not None and (not taken or sum(taken) / len(taken) < best):
            return False
    return True


def _says(spec: Mapping[str, Any], item: PaperItem) -> bool:
    """Whether every key has the value, or one of the values at the same place of each list."""
    places = []
    for key, wanted in item.spec:
        value = spec.get(key)
        value = tuple(value) if isinstance(value, list) else value
        if isinstance(wanted, tuple) and value != wanted:
            places.append({at for at, allowed in enumerate(wanted) if allowed == value})
        elif value != wanted:
            return False
    return not places or bool(set.intersection(*places))


def _moves(looked: LookedUp, one: JudgedClaim) -> str:
    """With which choices the verdict would be another, or of how many none."""
    tries = looked.moves.get(one.claim, ())
    count = len({name for t in tries for name in t.others})
    if not count or one.figure == "–":
        return "–"
    changed: dict[str, list[str]] = {}
    for t in tries:
        for verdict, names in t.changed.items():
            changed.setdefault(verdict, []).extend(names)
    told = [f"{verdict} {', '.join(names)}" for verdict, names in changed.items()]
    return plain("; ".join(told) or f"the same with each of {plural(count, 'choice')}")


def _picture(folder: Path, item: PaperItem) -> Iterator[str]:
    if item.figure and (folder / item.figure).is_file():
        yield f"![{plain(item.number)}: {plain(item.about)}]({item.figure})"
        yield f"*{plain(item.number)}, ours: {plain(item.about)}.*"


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
    return [says, table(["variant", "differs in", "seeds", *rules], rows, left=3)]


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
