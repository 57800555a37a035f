"""How REPRODUCTION.md begins: whose verdicts it has, how it is read, and the verdicts in short."""

from __future__ import annotations

from askance.experiments.seeds import seed_ranges
from askance.paper.claims.contents import contents
from askance.paper.claims.evidence import Evidence
from askance.paper.claims.judge import CONFIRMED, DENIED, OPEN, UNJUDGED
from askance.paper.claims.lookup import LookedUp
from askance.paper.claims.page import SAME_DATA
from askance.paper.suite import SUITE
from askance.report.formatting import join_names
from askance.report.markdown import plain

_ABOUT = (
    "What the paper states, in its order and by its own numbers. A row has the paper's words, what of "
    "ours answers them, the verdict, and the choices with which it would be another. What we did not "
    "answer says *left out*."
)
_READ = (
    "Verdicts follow [JUDGING.md](JUDGING.md). They are looked up in the stores and studies of this "
    "folder. [RESULTS.md](RESULTS.md) has what was measured, [SENSITIVITY.md](SENSITIVITY.md) every "
    "choice.",
    "*Confirmed* and *denied*: the 95% interval lies above the limit, or below it. *Not shown*: the "
    "limit is inside, which speaks neither for the claim nor against it. *Cannot be judged*: the data "
    "are missing, were seen before the rule was written, or are of networks that did not train.",
    "A verdict speaks of our runs, and of our reading of the paper's words. “Competitive”, “strong” "
    "and “close” are read as at most half a point behind. The half point is ours.",
    SAME_DATA,
    "*How it moves* counts the choices that change a number of the claim. One that cannot, such as "
    "round 0 for the last rounds, is not counted. Claims that studies judge have no such choices.",
    "*Implemented*: the code is there, and tests check it.",
)


def preface(looked: LookedUp) -> list[str]:
    """The paragraphs before the first section."""
    points = "\n".join(f"- {point}" for point in _READ)
    return [_ABOUT, _seeds(looked.evidence), points, "## In short", *_in_short(looked)]


def _seeds(evidence: Evidence) -> str:
    exploratory = seed_ranges(evidence.judging.exploratory)
    if evidence.is_exploratory:
        return f"**Exploratory**: every verdict is of seeds {exploratory}, which decide nothing."
    if evidence.judging.seeds is None:
        return "All seeds decide."
    here = {one.model for one in evidence.case.experiments}
    others = {name.split("-")[1] for name in SUITE.experiments} - here
    count = len(evidence.case.experiments)
    text = (
        f"**Seeds {seed_ranges(evidence.judging.seeds)} decide.** They are of {count} of the paper's "
        f"{len(SUITE.experiments)} experiments, with {join_names(sorted(here))}; every verdict over "
        "experiments is of these alone."
    )
    if others:
        text += f" The paper's suite has {join_names(sorted(others))} too."
    if not exploratory:
        return text
    return (
        f"{text} Seeds {exploratory}, of every network, were seen before the rule was written. What "
        "they say is *exploratory*: it stands beside the verdict and decides nothing."
    )


def _in_short(looked: LookedUp) -> list[str]:
    """The claims of the paper by verdict, each once; of those that cannot be judged, the reasons."""
    claims = {
        one.claim: one
        for section in contents().section
        for item in section.item
        for one in looked.claims(item)
    }
    parts = []
    for verdict in (CONFIRMED, DENIED, OPEN):
        those = [one.claim for one in claims.values() if one.verdict == verdict]
        parts += [f"**{verdict}** ({len(those)})", "\n".join(f"- {plain(one)}" for one in those)]
    reasons: dict[str, int] = {}
    for one in claims.values():
        if one.verdict == UNJUDGED:
            why = one.why or one.measure
            reasons[why] = reasons.get(why, 0) + 1
    parts += [
        f"**{UNJUDGED}** ({sum(reasons.values())}), and why",
        "\n".join(f"- {count}: {plain(why)}" for why, count in reasons.items()),
    ]
    return [part for part in parts if part]
