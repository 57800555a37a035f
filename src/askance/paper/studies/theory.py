"""Do the bound and Proposition A.1 say anything on real data? What `theory_run` measured, in words."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from askance.figures import style
from askance.paper.studies.contraction_run import kept_epochs
from askance.paper.studies.study import Study, StudyTable, from_to, listed
from askance.paper.studies.theory_run import (
    LEFT,
    TheoryOptions,
    TheoryResult,
    Walk,
    WalkRates,
    run,
)

_COLOURS = {"momentum": style.VERMILLION, "sgd": style.BLUE, "adam": style.GREEN}
_TERMS = ("η C_η R(W_T, S_I)", "confidence", "discrepancy")


def name_of(walk: Walk) -> str:
    """ "momentum, batch 8, 0.0001"."""
    batch = "full batch" if walk.batch is None else f"batch {walk.batch}"
    every = f", every {walk.every} epochs" if walk.every > 1 else ""
    return f"{walk.optimiser}, {batch}, {walk.learning_rate:g}{every}"


def _by_walk(result: TheoryResult) -> dict[Walk, list[WalkRates]]:
    return {
        walk: [one for one in result.walks if one.walk == walk] for walk in result.options.walks
    }


def table(result: TheoryResult) -> StudyTable:
    """Every walk of every draw, a row each."""
    return StudyTable.of(
        result.walks,
        ("walk", lambda one: name_of(one.walk)),
        ("seed", lambda one: str(one.seed)),
        ("steps to θ*", lambda one: f"{one.steps:,}"),
        ("‖∇F(θ*)‖", lambda one: f"{one.gradients[0]:.2g}"),
        ("‖∇Δ(θ*)‖", lambda one: f"{one.gradients[2]:.2g}"),
        ("distance", lambda one: f"{one.distances[0]:.3g} → {one.distances[1]:.3g}"),
        ("q", lambda one: f"{one.whole.q:.5f}"),
        ("μ_Δ", lambda one: f"{one.whole.mu:.3g}"),
        ("L_Δ", lambda one: f"{one.whole.smoothness:.3g}"),
        ("ρ from t₀ = 1", lambda one: f"{one.whole.rho:.4f}"),
        ("smallest ρ", lambda one: f"{one.best.rho:.4f} from {one.best.first}"),
        ("t₀ with ρ < 1", lambda one: str(one.held)),
        ("t₀ with ‖∇Δ‖ falling", lambda one: str(one.fell)),
    )


def findings(result: TheoryResult) -> str:
    """Whether the bound says anything, and whether ρ < 1 is ever there; then both in numbers."""
    vacuous = sum(sum(one.terms) >= 1 for one in result.floored)
    held = sum(one.held > 0 for one in result.walks)
    return listed(
        f"The bound (eq. 6) is 1 or more, and says nothing, in {vacuous} of {len(result.floored)} "
        f"draws. ρ < 1, which Proposition A.1 wants, holds in {held} of {len(result.walks)} paths.",
        f"Data: {result.data}; {result.options.draws} draws.",
        *_bound(result),
        *_proposition(result),
    )


def _bound(result: TheoryResult) -> list[str]:
    options, runs = result.options, result.floored
    held = options.bound_points // 2
    each = {
        "total": [sum(one.terms) for one in runs],
        "discrepancy": [one.terms[2] for one in runs],
        "proved": [one.proved for one in runs],
        "simplified": [one.simplified for one in runs],
    }
    short = sum(one.simplified < sum(one.terms) for one in runs)
    floor = max(one.floored for one in runs)
    moved = (
        "No entry of γ_t g_t/ε_t was ever 1 or more. So the floor was 0 in every step, and floored "
        "gradient descent was gradient descent on S_J alone"
        if floor == 0
        else f"The floor left at most {floor:.2g} of the entries of γ_t g_t/ε_t above 0"
    )
    return [
        f"The bound's setting: {options.floored_steps} floored steps with γ_t = ε_t = "
        f"{options.size:g}, momentum {options.momentum:g}, S of {options.bound_points}, S_J half of "
        f"it, η = {options.eta:g}, δ = {options.delta:g}.",
        f"The bound is {from_to(each['total'], '.2f')}, of which "
        f"{from_to(each['discrepancy'], '.2f')} is the discrepancy's, and "
        f"{from_to(each['proved'], '.2f')} as it was proved.",
        f"The simplified form is {from_to(each['simplified'], '.2f')}, and lower in {short}: it stands "
        f"for the steps from t₀ on alone, t₀ being {from_to([one.first for one in runs], 'd')}.",
        f"{moved}. Errors on S_J: {_mean([one.prior_risk for one in runs])}; on the {held} points of "
        f"S_I {_mean([one.risk for one in runs])}; on points outside S "
        f"{_mean([one.held_out for one in runs])}.",
    ]


def _mean(shares: list[float]) -> str:
    return f"{np.mean(shares):.1%}"


def _proposition(result: TheoryResult) -> list[str]:
    options, walks = result.options, result.walks
    possible = options.indices - LEFT
    held = sum(one.held > 0 for one in walks)
    least = min(walks, key=lambda one: one.best.rho)
    fell = sum(one.fell > 0 for one in walks)
    never_held = sum(one.fell > 0 and one.held == 0 for one in walks)
    stationary = [one.gradients[2] / one.gradients[0] for one in walks]
    return [
        f"Proposition A.1's setting: {len(walks)} paths of {options.indices} points "
        f"({len(options.walks)} trainings, {options.draws} draws). θ* is where a full-batch run from "
        f"the path's end has ‖∇F‖ ≤ {options.end_gradient:g}.",
        f"ρ < 1 (with q < 1) from some of {possible} t₀ on in {held} of these paths.",
        f"The smallest ρ is {least.best.rho:.4f} ({name_of(least.walk)}, from t₀ = "
        f"{least.best.first}); from t₀ = 1 it is "
        f"{from_to([one.whole.rho for one in walks], '.3f')}, with q = "
        f"{from_to([one.whole.q for one in walks], '.6f')}.",
        f"‖∇Δ‖ does fall in every step from some of these t₀ on in {fell} paths. In {never_held} of "
        f"these ρ is 1 or more from every t₀, so that the proposition does not explain it.",
        f"The proposition wants ∇F = ∇G = 0 at θ*; there ‖∇Δ‖ is {from_to(stationary, '.2g')} times "
        f"‖∇F‖, for what is left of the loss is not the same on S and on S_J.",
    ]


@style.styled
def draw(result: TheoryResult) -> Figure:
    """Left, the bound's terms draw by draw; right, ρ by t₀, a line each walk of the first draw."""
    figure = style.new_figure(10.5, 4.4)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    _bars(left, result)
    kept = kept_epochs(result.options.indices)[:-1]
    for walk, of_draws in _by_walk(result).items():
        right.plot(
            kept,
            np.median([one.rhos for one in of_draws], axis=0),
            color=style.BLACK if walk.every > 1 else _COLOURS.get(walk.optimiser, style.GREY),
            linestyle="--" if walk.batch is None else "-",
            label=name_of(walk),
        )
    right.axhline(1, color="black", linewidth=0.9, linestyle=":")
    style.panel(right, "ρ from t₀ on, median of draws")
    right.set_xlabel("t₀")
    right.legend()
    return figure


def _bars(axis: Axes, result: TheoryResult) -> None:
    runs = result.floored
    places, below = np.arange(len(runs)), np.zeros(len(runs))
    for k, (label, hue) in enumerate(
        zip(_TERMS, (style.BLUE, style.ORANGE, style.VERMILLION), strict=True)
    ):
        heights = np.array([one.terms[k] for one in runs])
        axis.bar(places, heights, bottom=below, color=hue, label=label)
        below += heights
    axis.plot(places, [one.simplified for one in runs], "D", color="black", label="simplified form")
    axis.plot(
        places, [one.held_out for one in runs], "o", color="white", markeredgecolor="black",
        label="errors outside S",
    )  # fmt: skip
    axis.axhline(1, color="black", linewidth=0.9, linestyle=":")
    axis.set_xticks(places, [str(one.seed) for one in runs])
    axis.set_xlabel("seed")
    style.panel(axis, "The bound along floored gradient descent")
    axis.legend()


STUDY = Study(
    name="theory",
    about="do the bound and Proposition A.1 say anything on real data?",
    full=TheoryOptions(),
    quick=TheoryOptions(
        draws=2,
        walks=(Walk("momentum", None, 1e-4), Walk("momentum", None, 0.5, every=4)),
        end_gradient=1e-3,
    ),
    result=TheoryResult,
    run=run,
    draw=draw,
    findings=findings,
    table=table,
)
