"""What REPRODUCTION.md looks up: every verdict by its claim, what it was before, and how it moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import reduce

from askance.paper.claims import of_studies
from askance.paper.claims.contents import PaperItem
from askance.paper.claims.evidence import Evidence
from askance.paper.claims.judge import JudgedClaim
from askance.paper.claims.sensitivity import Choices, Tried
from askance.paper.claims.stores import OURS, OVERALL, PANELS
from askance.paper.claims.verdicts import both


@dataclass(frozen=True)
class LookedUp:
    """What is looked up, once for the page.

    Args:
        verdicts, earlier: by claim, of what decides and of what was seen before.
        moves: by claim, with each choice.
        missed: names of `paper.toml` that no claim has, filled as they are looked up.
    """

    evidence: Evidence
    verdicts: Mapping[str, JudgedClaim]
    earlier: Mapping[str, JudgedClaim]
    moves: Mapping[str, Tried]
    missed: list[str] = field(default_factory=list)

    def claims(self, item: PaperItem) -> list[JudgedClaim]:
        """Those that an item names, in their order."""
        those = []
        for pattern in item.claims:
            named = [one for one in self.verdicts.values() if fnmatchcase(one.claim, pattern)]
            those += named
            if not named:
                self.missed.append(pattern)
        return those


def look_up(evidence: Evidence, choices: Choices) -> LookedUp:
    """Every verdict of a folder, and what each hangs on.

    Args:
        choices: of what decides.
    """
    groups = [
        both(evidence, OVERALL, of_studies.of_the_paper),
        both(evidence, PANELS),
        both(evidence, OURS, of_studies.of_ours),
    ]
    fresh, explored = ({j.claim: j for pair in groups for j in pair[k]} for k in (0, 1))
    verdicts = explored if evidence.is_exploratory else fresh
    earlier = {} if evidence.is_exploratory else explored
    moves: dict[str, list[Tried]] = {}
    of_runs = choices.swapped if evidence.is_exploratory else []
    if evidence.explored and not evidence.is_exploratory:
        of_runs = [
            Tried(one.judged, {f"of exploratory seeds {name}": o for name, o in one.others.items()})
            for one in Choices(evidence.explored, evidence.variants).swapped
        ]
    for one in [*choices.over_experiments, *choices.single, *choices.wins, *of_runs]:
        if one.others:
            moves.setdefault(one.judged.claim, []).append(one)
    together = {claim: reduce(Tried.beside, those) for claim, those in moves.items()}
    return LookedUp(evidence, verdicts, earlier, together)
