"""The decision of results/default/CHOOSING.md: what is read for it, and its steps.

`choose_default.py` runs it and tells what came of it. Shapes: S seeds, T rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from askance import strategies
from askance.experiments import export
from askance.experiments.packing import file_of
from askance.experiments.seeds import seed_ranges
from askance.experiments.spec import EXTENSIBLE, differences
from askance.experiments.statistics.clusters import holm
from askance.experiments.statistics.paired import ALPHA, pairwise
from askance.experiments.statistics.table import BASELINE, ExperimentResults, experiments
from askance.experiments.statistics.untrained import leave_out
from askance.experiments.store import ResultStore

Floats = NDArray[np.float64]

CANDIDATES = (
    "badge", "grad", "grad-cover", "grad-cover-shortlist", "kcenter", "margin", "maxherding",
    "powergrad", "powermargin", "typiclust", "uherding",
)  # fmt: skip
COMPARED = (BASELINE, *CANDIDATES)
# The last round that decides where later ones have not been run: see CHOOSING.md, at its end.
LAST = {"20newsgroups-mlp": 31, "clinc150-minilm": 17}


@dataclass(frozen=True)
class Track:
    """Experiments of one kind.

    Args:
        name: as `defaults.json` has it.
        title: as the page has it.
        names: the experiments that decide.
        seeds: those that decide.
        folders: where an experiment's stores are, in the folder of results.
    """

    name: str
    title: str
    names: tuple[str, ...]
    seeds: tuple[int, ...]
    folders: tuple[str, ...]


TRACKS = (
    Track(
        "network",
        "small networks",
        (
            "20newsgroups-mlp", "cifar10-lenet", "gtsrb-lenet", "isolet-mlp", "stl10-lenet",
            "svhn-lenet",
        ),
        tuple(range(5, 15)),
        ("paper/seeds-5-24", "default/small"),
    ),
    Track(
        "encoder",
        "pretrained encoder",
        ("20newsgroups-minilm", "cifar10-efficientnet", "clinc150-minilm", "sst2-minilm"),
        tuple(range(15, 25)),
        ("default/pretrained",),
    ),
)  # fmt: skip


class NotReadyError(Exception):
    """The stores do not hold what decides; says what is missing, a line each."""


# --- reading --------------------------------------------------------------------------------------


def read(results: Path) -> dict[str, list[ExperimentResults]]:
    """The experiments that decide, by track: the rules that are compared, on the seeds that decide."""
    missing: list[str] = []
    found: dict[str, list[ExperimentResults]] = {}
    for track in TRACKS:
        for name in track.names:
            folders = [results / folder / name for folder in track.folders]
            stores = [folder for folder in folders if file_of(folder).is_file()]
            missing += [
                f"{folder}: there is no store" for folder in folders if folder not in stores
            ]
            if not stores:
                continue
            missing += _unlike(stores, track.seeds)
            (one,) = experiments(export.table(stores))
            one = one.only(COMPARED).of_seeds(track.seeds)
            rounds = _rounds_of(stores[0])
            if name in LAST and rounds > LAST[name] + 1:
                rounds = LAST[name] + 1
                places = [place for place, number in enumerate(one.rounds) if number < rounds]
                one = one.part(rounds=places)
            missing += _lacking(one, track.seeds, rounds)
            found.setdefault(track.name, []).append(one)
    if missing:
        raise NotReadyError("\n".join(dict.fromkeys(missing)))
    return found


def read_beside(results: Path) -> list[ExperimentResults]:
    """What lies with the stores that decide and does not decide."""
    deciding = {name for track in TRACKS for name in track.names}
    found = []
    for track in TRACKS:
        folder = results / track.folders[-1]
        for path in sorted(folder.glob("*")):
            if path.is_dir() and path.name not in deciding and file_of(path).is_file():
                paper = results / track.folders[0] / path.name
                stores = [path] if paper == path or not file_of(paper).is_file() else [paper, path]
                (one,) = experiments(export.table(stores))
                one = one.only(COMPARED)
                found.append(
                    leave_out(one.of_seeds(set(one.seeds) & set(track.seeds) or one.seeds))
                )
    return found


def _rounds_of(folder: Path) -> int:
    with ResultStore.read(folder) as store:
        return int(store.spec["schedule"]["rounds"]) + 1


def _lacking(one: ExperimentResults, seeds: Iterable[int], rounds: int) -> list[str]:
    """The runs that are not there, or not to their end, in words."""
    short: dict[str, list[str]] = {}
    for rule in COMPARED:
        some = [seed for seed in seeds if _rounds_there(one, rule, seed) < rounds]
        if some:
            short.setdefault(seed_ranges(some), []).append(rule)
    return [
        f"{one.name}, seeds {which}: rounds are missing of {', '.join(rules)}"
        for which, rules in short.items()
    ]


def _rounds_there(one: ExperimentResults, rule: str, seed: int) -> int:
    if rule not in one.methods or seed not in one.seeds:
        return 0
    run_T = one.accuracy_MST[one.methods.index(rule), one.seeds.index(seed)]
    return int(np.isfinite(run_T).sum())


def _unlike(folders: Sequence[Path], seeds: Iterable[int]) -> list[str]:
    """Where stores are not of one experiment: they may differ in rules, seeds and what was swept."""
    if len(folders) < 2:
        return []
    lines = []
    with ResultStore.read(folders[0]) as a, ResultStore.read(folders[1]) as b:
        both = f"{folders[0]} and {folders[1]}"
        free = {*EXTENSIBLE, "recipe.learning_rates"}
        differ = differences(a.spec, b.spec)
        lines += [f"{both} differ: {line}" for key, line in differ.items() if key not in free]
        if a.learning_rate() != b.learning_rate():
            rates = f"{a.learning_rate()} and {b.learning_rate()}"
            lines.append(f"{both} differ: their learning rates are {rates}")
        if a.info["fingerprint"] != b.info["fingerprint"]:
            lines.append(f"{both} differ: they were made with other data")
        other = [
            seed for seed in seeds if len({start for s in (a, b) for start in _starts(s, seed)}) > 1
        ]
        if other:
            lines.append(f"{both} differ: their first labels on the seeds {seed_ranges(other)}")
    return lines


def _starts(store: ResultStore, seed: int) -> set[tuple[int, ...]]:
    """The first labelled rows of the runs of a seed."""
    rows = [store.initial(rule, seed) for rule, of in store.runs if of == seed and rule in COMPARED]
    return {tuple(each.tolist()) for each in rows if each is not None}


# --- deciding -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Decision:
    """What the stores say.

    Args:
        found: the experiments, by track.
        gains: (S,) by track, experiment and rule: mean accuracy after the first round less `random`'s.
        mean: by track and rule: the mean over datasets of the mean over seeds.
        below: by rule, the experiments in which it is significantly below `random`.
        ranks: by rule, its rank on each track among the rules that are out, or among the others.
        order: the best rule first, those that are out last.
    """

    found: dict[str, list[ExperimentResults]]
    gains: dict[str, dict[str, dict[str, Floats]]]
    mean: dict[str, dict[str, float]]
    below: dict[str, list[str]]
    ranks: dict[str, list[float]]
    order: list[str]

    @property
    def out(self) -> dict[str, list[str]]:
        """The rules that are out."""
        return {rule: names for rule, names in self.below.items() if names}

    def first(self, may: Callable[[str], bool]) -> str:
        """The best of some rules."""
        return next(rule for rule in self.order if may(rule))

    @property
    def winner(self) -> str:
        """The rule that is taken."""
        return self.order[0]

    @property
    def streaming(self) -> str:
        """The best of the rules that stream."""
        return self.first(lambda rule: strategies.kind_of(strategies.get(rule)) != "batch")

    @property
    def of_probabilities(self) -> str:
        """The best of the rules that need probabilities alone."""
        return self.first(lambda rule: strategies.get(rule).needs <= {"logits"})


def decide(found: dict[str, list[ExperimentResults]]) -> Decision:
    """The decision, by the steps of CHOOSING.md."""
    gains = {
        track: {one.name: {rule: gain(one, rule) for rule in CANDIDATES} for one in many}
        for track, many in found.items()
    }
    cells = [
        (rule, name, gains_S[rule])
        for each in gains.values()
        for name, gains_S in each.items()
        for rule in CANDIDATES
    ]
    significant = holm(np.array([p_value(gains_S) for _, _, gains_S in cells]), ALPHA)
    below: dict[str, list[str]] = {rule: [] for rule in CANDIDATES}
    for (rule, name, gains_S), is_significant in zip(cells, significant, strict=True):
        if is_significant and np.nanmean(gains_S) < 0:
            below[rule].append(name)
    mean = {
        track: {rule: track_mean(many, gains[track], rule) for rule in CANDIDATES}
        for track, many in found.items()
    }
    ranks: dict[str, list[float]] = {}
    order: list[str] = []
    for rules in (
        [rule for rule in CANDIDATES if not below[rule]],
        [rule for rule in CANDIDATES if below[rule]],
    ):
        for each in mean.values():
            rank = stats.rankdata([-each[rule] for rule in rules]).tolist() if rules else []
            for rule, place in zip(rules, rank, strict=True):
                ranks.setdefault(rule, []).append(place)
        order += sorted(
            rules,
            key=lambda rule: (len(below[rule]), np.mean(ranks[rule]), -mean["encoder"][rule]),
        )
    return Decision(found, gains, mean, below, ranks, order)


def gain(one: ExperimentResults, rule: str, other: str = BASELINE) -> Floats:
    """(S,) mean accuracy over the rounds after the first, less that of another rule on the same seed.

    A seed of which no round is left is NaN.
    """
    trained = leave_out(one)
    after = [place for place, number in enumerate(one.rounds) if number > 0]
    a_ST, b_ST = (trained.accuracy_MST[one.methods.index(name)][:, after] for name in (rule, other))
    some = np.isfinite(a_ST - b_ST).any(axis=1)
    gains_S = np.full(len(one.seeds), np.nan)
    gains_S[some] = np.nanmean((a_ST - b_ST)[some], axis=1)
    return gains_S


def p_value(gains_S: Floats) -> float:
    """Of the paired t-test, two-sided."""
    return float(pairwise(np.stack([gains_S, np.zeros_like(gains_S)])).p[0])


def track_mean(
    many: Sequence[ExperimentResults], gains: dict[str, dict[str, Floats]], rule: str
) -> float:
    """The mean over datasets of the mean over seeds."""
    by_dataset: dict[str, list[float]] = {}
    for one in many:
        by_dataset.setdefault(one.dataset, []).append(float(np.nanmean(gains[one.name][rule])))
    return float(np.mean([np.mean(each) for each in by_dataset.values()]))
