"""Does the labelled reference matter? `grad` ranks by ‖ḡ_L − g(x)‖; how far is that from ‖g(x)‖ alone?

A network trained until its labelled set is fitted has ḡ_L ≈ 0 there, and then the reference can move
nothing. In every round of real runs of `grad`, both scores are taken of the same unlabelled pool with
the same network: Spearman's ρ between them, the share of the batch they have in common, and the length
of ḡ_L beside the median length of g.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from askance.embedding import Embedding
from askance.experiments import spec
from askance.experiments.rounds import LoadedExperiment, RunState, Trial, swept_rate
from askance.experiments.spec import Spec
from askance.figures import style
from askance.loop import Run
from askance.paper.studies.lab import Lab, mean_loss, provenance
from askance.paper.studies.measures import Rows, overlap, rank_correlation
from askance.paper.studies.study import Study, StudyTable, listed, rows_where
from askance.selection import select
from askance.training import SWEEP_SEEDS

# What was expected from the second round on.
EXPECTED = 0.99


@dataclass(frozen=True)
class Experiment:
    """An experiment that ships with askance, shortened where the study says so.

    Args:
        name: of the experiment.
        rounds, epochs, rates: instead of its own, where given; several rates are swept.
    """

    name: str
    rounds: int | None = None
    epochs: int | None = None
    rates: tuple[float, ...] | None = None

    @property
    def spec(self) -> Spec:
        """The experiment with the rule `grad` alone, and with what is given here."""
        content = spec.load(self.name).override(strategies=["grad"]).to_dict()
        if self.rounds is not None:
            content["schedule"]["rounds"] = self.rounds
        if self.epochs is not None:
            content["recipe"]["epochs"] = self.epochs
        if self.rates is not None:
            content["recipe"]["learning_rates"] = list(self.rates)
        return Spec.from_dict(content, f"{self.name}, as studied")


@dataclass(frozen=True)
class ReferenceOptions:
    """What is measured: runs of `grad` with seeds from `seed` on."""

    experiments: tuple[Experiment, ...] = (Experiment("cifar10-lenet"), Experiment("isolet-mlp"))
    runs: int = 3
    seed: int = 0


@dataclass(frozen=True)
class ReferenceRound:
    """Both scores in one round.

    Args:
        round: from 0, the question asked with the starting labels.
        labels: |D_L|.
        spearman: of `grad` and `gradnorm` over the unlabelled pool.
        overlap: of their batches.
        reference_norm: ‖ḡ_L‖.
        median_norm: the median ‖g‖ of the unlabelled pool.
        loss: the mean loss over the labelled set: how far it is fitted.
    """

    experiment: str
    seed: int
    round: int
    labels: int
    spearman: float | None
    overlap: float
    reference_norm: float
    median_norm: float
    loss: float


@dataclass(frozen=True)
class ReferenceResult:
    """Every round of every run.

    Args:
        data: what the datasets are.
        rates: each experiment's learning rate.
    """

    options: ReferenceOptions
    data: tuple[str, ...]
    rates: dict[str, float]
    rounds: tuple[ReferenceRound, ...]


def run(options: ReferenceOptions, lab: Lab) -> ReferenceResult:
    """Run every experiment with `grad`, and compare both scores in every round."""
    data: list[str] = []
    rates: dict[str, float] = {}
    rounds: list[ReferenceRound] = []
    for experiment in options.experiments:
        lab.say(f"reading the data of {experiment.name}")
        loaded = LoadedExperiment.of(experiment.spec, lab.device, "auto", lab.data_dir)
        data.append(provenance(loaded.dataset))
        with lab.one_thread():
            rates[experiment.name] = rate_of(loaded, lab)
            rounds += _rounds(loaded, rates[experiment.name], options, lab)
    return ReferenceResult(options, tuple(data), rates, tuple(rounds))


def rate_of(loaded: LoadedExperiment, lab: Lab) -> float:
    """An experiment's learning rate: its only one, or the best of a sweep."""
    rates = loaded.spec.recipe.learning_rates
    if len(rates) == 1:
        return rates[0]
    lab.say(f"{loaded.spec.name}: sweep of {len(rates)} learning rates")
    tried = loaded.try_rates([Trial(rate, seed) for rate in rates for seed in SWEEP_SEEDS])
    return swept_rate(tried, rates)


def _rounds(
    loaded: LoadedExperiment, rate: float, options: ReferenceOptions, lab: Lab
) -> list[ReferenceRound]:
    """Of every run, seed by seed; the runs go round by round together, as a GPU likes it."""
    rule = loaded.spec.strategies[0]
    seeds = range(options.seed, options.seed + options.runs)
    runs = [loaded.run(RunState(rule, seed)) for seed in seeds]
    compared: list[list[ReferenceRound]] = [[] for _ in runs]
    while not runs[0].finished:
        lab.say(f"{loaded.spec.name}: round {runs[0].round} of {runs[0].rounds}")
        fitted = loaded.fit([loaded.job(run, rate) for run in runs], None)
        for run, rounds, pool in zip(runs, compared, fitted.embed(loaded.inputs), strict=True):
            one, picks = _compare(loaded.spec.name, run, pool)
            rounds.append(one)
            run.tell(picks)
    return [one for rounds in compared for one in rounds]


def _compare(name: str, run: Run, pool: Embedding) -> tuple[ReferenceRound, Rows]:
    labeled = pool[run.rows], run.labels
    grad, norm = (
        select(
            None,
            labeled,
            pool,
            run.batch,
            strategy=rule,
            seed=run.draws,
            exclude=run.asked,
            keep_scores=True,
        )
        for rule in ("grad", "gradnorm")
    )
    assert grad.pool_scores is not None
    assert norm.pool_scores is not None
    free = np.setdiff1d(np.arange(run.size), run.asked)
    compared = ReferenceRound(
        experiment=name,
        seed=run.seed,
        round=run.round,
        labels=len(run.rows),
        spearman=rank_correlation(grad.pool_scores[free], norm.pool_scores[free]),
        overlap=overlap(grad.indices, norm.indices),
        reference_norm=grad.explain()[0].reference_norm or 0.0,
        median_norm=float(np.median(norm.pool_scores[free])),
        loss=mean_loss(*labeled),
    )
    return compared, grad.indices


def _by_experiment(result: ReferenceResult) -> dict[str, list[ReferenceRound]]:
    names = dict.fromkeys(one.experiment for one in result.rounds)
    return {name: rows_where(result.rounds, experiment=name) for name in names}


def table(result: ReferenceResult) -> StudyTable:
    """Every round, a row each."""

    def ratio(one: ReferenceRound) -> str:
        return f"{one.reference_norm / one.median_norm:.3g}" if one.median_norm else "–"

    return StudyTable.of(
        result.rounds,
        ("experiment", lambda one: one.experiment),
        ("seed", lambda one: str(one.seed)),
        ("round", lambda one: str(one.round)),
        ("labels", lambda one: f"{one.labels:,}"),
        ("Spearman", lambda one: "–" if one.spearman is None else f"{one.spearman:.4f}"),
        ("overlap", lambda one: f"{one.overlap:.3f}"),
        ("‖ḡ_L‖", lambda one: f"{one.reference_norm:.3g}"),
        ("median ‖g‖", lambda one: f"{one.median_norm:.3g}"),
        ("ratio", ratio),
        ("loss on D_L", lambda one: f"{one.loss:.3g}"),
    )


def findings(result: ReferenceResult) -> str:
    """Whether both scores choose the same; then of each experiment the lengths and the overlap."""
    runs, by_experiment = result.options.runs, _by_experiment(result)
    points, confirmed = [], 0
    for name, rounds in by_experiment.items():
        later = [one for one in rounds if one.round >= 1]
        below = [one for one in later if one.overlap <= EXPECTED]
        confirmed += bool(later) and not below
        verdict = (
            f": {'denied' if below else 'confirmed'}, {len(below)} of {len(later)} rounds at or below "
            f"{EXPECTED}"
        )
        points.append(
            f"{name} (learning rate {result.rates[name]:g}): {_summary(rounds, later)}"
            f"{verdict if later else ''}."
        )
    count = len(by_experiment)
    verdict = {count: "confirmed", 0: "denied"}.get(confirmed, "confirmed in part")
    return listed(
        f"That the batches with and without the reference overlap by more than {EXPECTED} from the "
        f"second round on, as we expected, is {verdict}: it holds in {confirmed} of {count} "
        "experiments.",
        f"Setting: runs of `grad` with {runs} seed{'s' * (runs > 1)}. Both scores are of the same "
        f"unlabelled pool and network in every round ({'; '.join(result.data)}).",
        *points,
        "The reference is without effect where ‖ḡ_L‖ is small beside ‖g‖, that is where the labelled "
        "set is fitted and the pool is not.",
    )


def _summary(rounds: list[ReferenceRound], later: list[ReferenceRound]) -> str:
    first = [one for one in rounds if one.round == 0]
    ratio = [one.reference_norm / one.median_norm for one in rounds if one.median_norm]
    loss = [one.loss for one in rounds]
    text = (
        f"‖ḡ_L‖ is {min(ratio):.2g} to {max(ratio):.2g} of the median ‖g‖, the loss on D_L "
        f"{min(loss):.2g} to {max(loss):.2g}; in round 0 the overlap of {first[0].labels} picks is "
        f"{np.mean([one.overlap for one in first]):.3f}"
    )
    if later:
        ranks = [one.spearman for one in later if one.spearman is not None]
        text += f", in rounds 1 to {later[-1].round} {min(one.overlap for one in later):.3f} to "
        text += f"{max(one.overlap for one in later):.3f}"
        text += f" with Spearman {min(ranks):.4f} to {max(ranks):.4f}" if ranks else ""
    return text


@style.styled
def draw(result: ReferenceResult) -> Figure:
    """Above, how both scores agree; below, the lengths that decide it. A column each experiment."""
    by_experiment = _by_experiment(result)
    figure = style.new_figure(1 + 3.3 * len(by_experiment), 5.2)
    grid = figure.subplots(2, len(by_experiment), squeeze=False, sharex="col", sharey="row")
    for (above, below), (name, rounds) in zip(grid.T, by_experiment.items(), strict=True):
        _agreement(above, name, rounds)
        _lengths(below, rounds)
    grid[0][0].set_ylabel("agreement with ‖g‖ alone")
    grid[1][0].set_ylabel("length")
    for row in grid:
        handles, texts = row[0].get_legend_handles_labels()
        row[0].legend(handles, texts, loc="best")
    return figure


def _lines(
    axis: Axes, rounds: Sequence[ReferenceRound], field: str, hue: str, text: str, mark: str
) -> None:
    """One field, round by round, a line each seed; the first is labelled and the others are pale."""
    is_thick = mark == "o"  # so that one line shows under the other
    for number, seed in enumerate(dict.fromkeys(one.seed for one in rounds)):
        places = [(one.round, getattr(one, field)) for one in rows_where(rounds, seed=seed)]
        axis.plot(
            *zip(*((x, y) for x, y in places if y is not None), strict=True),
            color=hue,
            marker=mark,
            markersize=5 if is_thick else 3.5,
            linewidth=2.2 if is_thick else 1.2,
            label=None if number else text,
            alpha=0.45 if number else 1,
        )


def _agreement(axis: Axes, name: str, rounds: Sequence[ReferenceRound]) -> None:
    _lines(axis, rounds, "overlap", style.rule_style("grad").colour, "overlap of the batches", "o")
    _lines(axis, rounds, "spearman", style.rule_style("powergrad").colour, "Spearman’s ρ", "s")
    axis.axhline(EXPECTED, color="black", linestyle="--", linewidth=0.9, label=f"{EXPECTED}")
    style.panel(axis, f"{name}: {rounds[0].labels} labels a round")


def _lengths(axis: Axes, rounds: Sequence[ReferenceRound]) -> None:
    _lines(axis, rounds, "median_norm", style.GREY, "median ‖g‖ of the pool", "s")
    _lines(axis, rounds, "reference_norm", style.rule_style("grad").colour, "‖ḡ_L‖", "o")
    axis.set_yscale("log")
    style.plain_numbers(axis.yaxis)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    style.panel(axis)
    axis.set_xlabel("round")


STUDY = Study(
    name="reference",
    about="does the labelled reference matter?",
    full=ReferenceOptions(),
    quick=ReferenceOptions(
        (
            Experiment("cifar10-lenet", rounds=3, rates=(0.005,)),
            Experiment("isolet-mlp", rounds=4, rates=(0.005,)),
            Experiment("digits", rates=(0.01,)),
        ),
        runs=1,
    ),
    result=ReferenceResult,
    run=run,
    draw=draw,
    findings=findings,
    table=table,
)
