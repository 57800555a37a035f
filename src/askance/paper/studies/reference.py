"""Does the labelled reference matter? `grad` ranks by ‖ḡ_L − g(x)‖; how far is that from ‖g(x)‖ alone?

A network trained until its labelled set is fitted has ḡ_L ≈ 0 there, and then the reference can move
nothing. In every round of real runs of `grad`, both scores are taken of the same unlabelled pool with
the same network: Spearman's ρ between them, the share of the batch they have in common, and the length
of ḡ_L beside the median length of g.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from askance.embedding import Embedding
from askance.experiments import spec
from askance.experiments.rounds import Bench, State, Trial
from askance.experiments.spec import Spec
from askance.figures import style
from askance.loop import Run
from askance.paper.studies.lab import Lab, mean_loss, one_thread, provenance
from askance.paper.studies.measures import overlap, rank_correlation
from askance.paper.studies.study import Study, Table
from askance.selection import select
from askance.training import SWEEP_SEEDS, best_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# What the prototypes found from the second round on.
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
        known = spec.load(self.name).override(strategies=["grad"]).to_dict()
        if self.rounds is not None:
            known["schedule"]["rounds"] = self.rounds
        if self.epochs is not None:
            known["recipe"]["epochs"] = self.epochs
        if self.rates is not None:
            known["recipe"]["learning_rates"] = list(self.rates)
        return Spec.from_dict(known, f"{self.name}, as studied")


@dataclass(frozen=True)
class Options:
    """What is measured: runs of `grad` with seeds from `seed` on."""

    experiments: tuple[Experiment, ...] = (Experiment("cifar10-lenet"), Experiment("isolet-mlp"))
    runs: int = 3
    seed: int = 0


FULL = Options()
QUICK = Options(
    (
        Experiment("cifar10-lenet", rounds=3, rates=(0.005,)),
        Experiment("isolet-mlp", rounds=4, rates=(0.005,)),
        Experiment("digits", rates=(0.01,)),
    ),
    runs=1,
)


@dataclass(frozen=True)
class Round:
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
class Result:
    """Args:
    data: what the datasets are.
    rates: each experiment's learning rate.
    """

    options: Options
    data: tuple[str, ...]
    rates: dict[str, float]
    rounds: tuple[Round, ...]


def run(options: Options, lab: Lab) -> Result:
    data: list[str] = []
    rates: dict[str, float] = {}
    rounds: list[Round] = []
    for experiment in options.experiments:
        lab.say(f"reading the data of {experiment.name}")
        bench = Bench.of(experiment.spec, lab.device, "auto", lab.data_dir)
        data.append(provenance(bench.dataset))
        with one_thread(lab.device):
            rates[experiment.name] = _rate(bench, lab)
            rounds += _rounds(bench, rates[experiment.name], options, lab)
    return Result(options, tuple(data), rates, tuple(rounds))


def _rate(bench: Bench, lab: Lab) -> float:
    rates = bench.spec.recipe.learning_rates
    if len(rates) == 1:
        return rates[0]
    lab.say(f"{bench.spec.name}: sweep of {len(rates)} learning rates")
    tried = bench.try_rates([Trial(rate, seed) for rate in rates for seed in SWEEP_SEEDS])
    return best_rate({(one.learning_rate, one.seed): one.accuracy for one in tried}, rates)


def _rounds(bench: Bench, rate: float, options: Options, lab: Lab) -> list[Round]:
    """Of every run, seed by seed; the runs go round by round together, as a GPU likes it."""
    rule = bench.spec.strategies[0]
    seeds = range(options.seed, options.seed + options.runs)
    runs = [bench.run(State(rule.label, rule, seed)) for seed in seeds]
    found: list[list[Round]] = [[] for _ in runs]
    while not runs[0].finished:
        lab.say(f"{bench.spec.name}: round {runs[0].round} of {runs[0].rounds}")
        fitted = bench.fit([bench.job(run, rate) for run in runs], None)
        for run, rounds, pool in zip(runs, found, fitted.embed(bench.inputs), strict=True):
            compared, picks = _compare(bench.spec.name, run, pool)
            rounds.append(compared)
            run.tell(picks)
    return [one for rounds in found for one in rounds]


def _compare(name: str, run: Run, pool: Embedding) -> tuple[Round, NDArray[np.int64]]:
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
    found = Round(
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
    return found, grad.indices


def _names(result: Result) -> list[str]:
    return list(dict.fromkeys(one.experiment for one in result.rounds))


def _of(result: Result, name: str) -> list[Round]:
    return [one for one in result.rounds if one.experiment == name]


def table(result: Result) -> Table:
    columns = (
        "experiment", "seed", "round", "labels", "Spearman", "overlap", "‖ḡ_L‖", "median ‖g‖",
        "ratio", "loss on D_L",
    )  # fmt: skip
    rows = tuple(
        (
            one.experiment,
            str(one.seed),
            str(one.round),
            f"{one.labels:,}",
            "–" if one.spearman is None else f"{one.spearman:.4f}",
            f"{one.overlap:.3f}",
            f"{one.reference_norm:.3g}",
            f"{one.median_norm:.3g}",
            f"{one.reference_norm / one.median_norm:.3g}" if one.median_norm else "–",
            f"{one.loss:.3g}",
        )
        for one in result.rounds
    )
    return Table(columns, rows)


def findings(result: Result) -> str:
    runs = result.options.runs
    sentences = [
        f"Runs of `grad` with {runs} seed{'s' * (runs > 1)}, both scores of the same unlabelled pool "
        f"and network in every round ({'; '.join(result.data)}).",
    ]
    held: list[str] = []
    for name in _names(result):
        rounds = _of(result, name)
        later = [one for one in rounds if one.round >= 1]
        below = [one for one in later if one.overlap <= EXPECTED]
        if later and not below:
            held.append(name)
        verdict = "denied" if below else "confirmed"
        verdict += f", {len(below)} of {len(later)} rounds at or below {EXPECTED}"
        sentences.append(
            f"{name} (learning rate {result.rates[name]:g}): {_told(rounds, later)}"
            + (f": {verdict}." if later else ".")
        )
    names = _names(result)
    verdict = {len(names): "confirmed", 0: "denied"}.get(len(held), "confirmed in part")
    sentences.append(
        f"The prototypes' finding, an overlap above {EXPECTED} from the second round on, is {verdict}: "
        f"it holds in {len(held)} of {len(names)} experiments. The reference is without effect where "
        f"‖ḡ_L‖ is small beside ‖g‖, that is where the labelled set is fitted and the pool is not."
    )
    return " ".join(sentences)


def _told(rounds: list[Round], later: list[Round]) -> str:
    first = [one for one in rounds if one.round == 0]
    ratio = [one.reference_norm / one.median_norm for one in rounds if one.median_norm]
    loss = [one.loss for one in rounds]
    said = (
        f"‖ḡ_L‖ is {min(ratio):.2g} to {max(ratio):.2g} of the median ‖g‖, the loss on D_L "
        f"{min(loss):.2g} to {max(loss):.2g}; in round 0 the overlap of {first[0].labels} picks is "
        f"{np.mean([one.overlap for one in first]):.3f}"
    )
    if later:
        ranks = [one.spearman for one in later if one.spearman is not None]
        said += f", in rounds 1 to {later[-1].round} {min(one.overlap for one in later):.3f} to "
        said += f"{max(one.overlap for one in later):.3f}"
        said += f" with Spearman {min(ranks):.4f} to {max(ranks):.4f}" if ranks else ""
    return said


@style.styled
def draw(result: Result) -> Figure:
    names = _names(result)
    figure = style.new(1 + 3.3 * len(names), 5.2)
    grid = figure.subplots(2, len(names), squeeze=False, sharex="col", sharey="row")
    for column, name in enumerate(names):
        _agreement(grid[0][column], result, name)
        _lengths(grid[1][column], result, name)
        if column == 0:
            grid[0][0].set_ylabel("agreement with ‖g‖ alone")
            grid[1][0].set_ylabel("length")
    for row in grid:
        handles, texts = row[0].get_legend_handles_labels()
        row[0].legend(handles, texts, loc="best")
    return figure


def _lines(
    axis: Axes, result: Result, name: str, field: str, hue: str, text: str, mark: str
) -> None:
    seeds = dict.fromkeys(one.seed for one in _of(result, name))
    for number, seed in enumerate(seeds):
        rounds = [one for one in _of(result, name) if one.seed == seed]
        places = [(one.round, getattr(one, field)) for one in rounds]
        places = [(x, y) for x, y in places if y is not None]
        thick = mark == "o"  # so that one line shows under the other
        axis.plot(
            *zip(*places, strict=True),
            color=hue,
            marker=mark,
            markersize=5 if thick else 3.5,
            linewidth=2.2 if thick else 1.2,
            label=None if number else text,
            alpha=0.45 if number else 1,
        )


def _agreement(axis: Axes, result: Result, name: str) -> None:
    _lines(axis, result, name, "overlap", style.look("grad").colour, "overlap of the batches", "o")
    _lines(axis, result, name, "spearman", style.look("powergrad").colour, "Spearman’s ρ", "s")
    axis.axhline(EXPECTED, color="black", linestyle="--", linewidth=0.9, label=f"{EXPECTED}")
    style.panel(axis, f"{name}: {_of(result, name)[0].labels} labels a round")


def _lengths(axis: Axes, result: Result, name: str) -> None:
    from matplotlib.ticker import MaxNLocator

    _lines(axis, result, name, "median_norm", style.GREY, "median ‖g‖ of the pool", "s")
    _lines(axis, result, name, "reference_norm", style.look("grad").colour, "‖ḡ_L‖", "o")
    axis.set_yscale("log")
    style.plain_numbers(axis.yaxis)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    style.panel(axis)
    axis.set_xlabel("round")


_ABOUT = "does the labelled reference matter?"
STUDY = Study("reference", _ABOUT, FULL, QUICK, Result, run, draw, findings, table)
