"""What each part of `grad-cover` is worth: other weights, widths, candidates and samples.

    python benchmarks/cover_ablations.py --workers 16        # writes results/ablations/

Four experiments on frozen features, of the pretrained track, their first ten rounds, seeds 0 to 4. Each
form differs from `grad-cover` in what its line says. All forms of a seed begin with the same labels.
A run is stored as soon as it is done, in the JSON file of its experiment; the same command goes on
where it was stopped. With `--page` nothing is run, and the page is written from the files alone.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import RESULTS, load, machine, parser, save

from askance import Embedding, strategies
from askance.experiments import spec as specs
from askance.experiments.rounds import LoadedExperiment
from askance.experiments.statistics.table import ExperimentResults
from askance.experiments.statistics.thirds import gains, mean_gains
from askance.loop import Run, lockstep
from askance.picking.audience import Audience, sq_dists_between, sq_dists_to_nearest
from askance.report.formatting import format_interval
from askance.report.markdown import table
from askance.strategies import Pointwise, Strategy
from askance.strategies.grad_cover import GradCover, GradCoverShortlist
from askance.strategies.powergrad import PowerGrad

EXPERIMENTS = ("cifar10-efficientnet", "banking77-minilm", "trec-minilm", "sst2-minilm")
SEEDS, ROUNDS = 5, 9
SCRIPT = "python benchmarks/cover_ablations.py --page"
HEAD = f"""# What each part of `grad-cover` is worth

<!-- Written by `{SCRIPT}`. -->

`linear` on the features of a pretrained encoder that stays as it is; the first ten rounds of the
pretrained track, seeds 0 to 4. The first line of each table is what the form in use gains over
`random`, in points of test accuracy, mean over the rounds after the first. The other lines are another
form **less** that one. Brackets are Student's 95% interval over the seeds; the last column is the mean
of the datasets.

Rules were designed with seeds 0 to 4 of TREC and Banking77 in view. So these tables say what a part is
worth where it was chosen, and no more; they decide nothing.
"""


class SquaredWeights(GradCover):
    """w(e) = s(e)²."""

    def weigh(self, rows: Embedding, reference: Any) -> torch.Tensor:
        return super().weigh(rows, reference) ** 2


class NothingCovered(GradCover):
    """Labelled points set the width and cover nothing."""

    def audience(self, rows: Embedding, reference: Any) -> Audience:
        audience = super().audience(rows, reference)
        return replace(audience, covered_M=torch.zeros_like(audience.covered_M))


class PairWidth(GradCover):
    """σ² is `bandwidth` times the median squared distance of all pairs of the sample."""

    def audience(self, rows: Embedding, reference: Any) -> Audience:
        audience = super().audience(rows, reference)
        sq_width = self._sq_width(sq_dists_between(audience.unit_MD))
        nearest_M = sq_dists_to_nearest(audience.unit_MD, self.covered_by(reference))
        return replace(audience, sq_width=sq_width, covered_M=torch.exp(-nearest_M / sq_width))


class ShortlistByScore(GradCoverShortlist):
    """Candidates are drawn ∝ s instead of s²."""

    def shortlisted(self, n: int) -> tuple[Pointwise, int]:
        _, count = super().shortlisted(n)
        return PowerGrad(beta=1.0, grad=self.grad), count


@dataclass(frozen=True)
class Form:
    """A form of the rule: which table it is in, what the table calls it, and how it is made."""

    part: str
    words: str
    build: Callable[[], Strategy]


LONGEST = ("sample=all", "uncovered")  # they begin, so that no process is left with one at the end
EVERY_ROW = 10**9  # a sample of more rows than a pool has is the pool
BASE = "grad-cover"
FORMS: dict[str, Form] = {
    "random": Form("", "", partial(strategies.get, "random")),
    BASE: Form(
        "", "w = s, σ² × 3, every point a candidate, sample 4,000", partial(strategies.get, BASE)
    ),
    "w=gradnorm": Form("Weights w(e)", "‖g(e)‖", partial(GradCover, weights="gradnorm")),
    "w=equal": Form("Weights w(e)", "1", partial(GradCover, weights="equal")),
    "w=margin": Form("Weights w(e)", "1 − (p₁ − p₂)", partial(GradCover, weights="margin")),
    "w=s2": Form("Weights w(e)", "s(e)²", SquaredWeights),
    "width=1": Form("Width σ²", "1 × the same median", partial(GradCover, bandwidth=1.0)),
    "width=9": Form("Width σ²", "9 × the same median", partial(GradCover, bandwidth=9.0)),
    "width=pairs": Form(
        "Width σ²", "the median over pairs of the sample", partial(PairWidth, bandwidth=1.0)
    ),
    "width=1,w=margin": Form(
        "Width σ²",
        "1 × the same median, w = 1 − (p₁ − p₂): uherding",
        partial(strategies.get, "uherding"),
    ),
    "sample=500": Form("Sample", "500 points", partial(GradCover, sample=500)),
    "sample=1000": Form("Sample", "1,000 points", partial(GradCover, sample=1_000)),
    "sample=all": Form("Sample", "the whole pool", partial(GradCover, sample=EVERY_ROW)),
    "uncovered": Form("Labelled points", "count as covering nothing", NothingCovered),
    "3n,s2,w=1": Form(
        "Candidates",
        "3n drawn ∝ s², w = 1: grad-cover-shortlist",
        partial(strategies.get, "grad-cover-shortlist"),
    ),
    "10n,s2,w=1": Form(
        "Candidates", "10n drawn ∝ s², w = 1", partial(GradCoverShortlist, candidates=10)
    ),
    "3n,s,w=1": Form("Candidates", "3n drawn ∝ s, w = 1", ShortlistByScore),
    "10n,s,w=1": Form(
        "Candidates", "10n drawn ∝ s, w = 1", partial(ShortlistByScore, candidates=10)
    ),
    "3n,s2,w=s": Form(
        "Candidates",
        "3n drawn ∝ s², w = s",
        partial(GradCoverShortlist, weights="discrepancy"),
    ),
    "10n,s2,w=s": Form(
        "Candidates",
        "10n drawn ∝ s², w = s",
        partial(GradCoverShortlist, candidates=10, weights="discrepancy"),
    ),
}


@cache
def loaded(experiment: str) -> LoadedExperiment:
    """An experiment with its features, once a process; they come from the encoder's cache."""
    torch.set_num_threads(1)
    spec = specs.load(experiment).override(strategies=["random"], rounds=ROUNDS)
    return LoadedExperiment.of(spec, torch.device("cpu"), "one")


def play(experiment: str, form: str, seed: int) -> tuple[list[float], float]:
    """One run: its test accuracy in each round, and its seconds."""
    here, start = loaded(experiment), time.perf_counter()
    run = Run(
        here.inputs,
        here.oracle,
        FORMS[form].build(),
        batch=here.spec.schedule.batch,
        rounds=here.spec.schedule.rounds,
        seed=seed,
        label=form,
    )
    test, accuracies = here.dataset.test, []
    for _ in lockstep([run]):
        fitted = here.fit([here.job(run, 1.0)])
        accuracies.append(fitted.evaluate(test.inputs, test.labels)[0].accuracy)
        run.ask(fitted.embed(here.inputs)[0])
    return accuracies, time.perf_counter() - start


def measure(
    experiments: Sequence[str], forms: Sequence[str], seeds: int, workers: int, folder: Path
) -> None:
    """Play what the files of `folder` lack, and add each run to its file."""
    stored = {name: load(folder / f"{name}.json") for name in experiments}
    for name in experiments:  # here first, so that features are encoded once if they must be
        spec = loaded(name).spec
        about = {"experiment": name, "dataset": spec.dataset, "identity": spec.identity}
        if stored[name] and any(stored[name][key] != value for key, value in about.items()):
            raise SystemExit(f"{folder}/{name}.json is of another experiment; move it away")
        batch = spec.schedule.batch
        about |= {"labels": [batch * (number + 1) for number in range(spec.schedule.rounds + 1)]}
        stored[name] = {"accuracy": {}, "seconds": {}} | stored[name] | about
        stored[name]["machine"] = machine("torch", "numpy", "scipy")
    left = [
        (name, form, seed)
        for name in experiments
        for form in sorted(forms, key=lambda form: form not in LONGEST)
        for seed in range(seeds)
        if str(seed) not in stored[name]["accuracy"].get(form, {})
    ]
    print(f"{len(left)} runs to do", flush=True)
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context) as pool:
        tasks = {pool.submit(play, *what): what for what in left}
        for count, task in enumerate(as_completed(tasks), 1):
            name, form, seed = tasks[task]
            accuracies, seconds = task.result()
            for key, value in (("accuracy", accuracies), ("seconds", round(seconds, 1))):
                stored[name][key].setdefault(form, {})[str(seed)] = value
            save(folder / f"{name}.json", stored[name])
            print(f"{count}/{len(left)} {name} {form} seed {seed}: {seconds:.0f} s", flush=True)


def results_of(stored: dict[str, Any]) -> ExperimentResults:
    """The runs of a file as a table; a round that is not there is NaN."""
    seeds = sorted({int(seed) for runs in stored["accuracy"].values() for seed in runs})
    nothing = [np.nan] * len(stored["labels"])
    forms = tuple(form for form in FORMS if form in stored["accuracy"])
    accuracy_MST = np.array(
        [
            [stored["accuracy"][form].get(str(seed), nothing) for seed in seeds]
            for form in forms
        ]
    )  # fmt: skip
    return ExperimentResults(
        stored["experiment"],
        stored["dataset"],
        "linear",
        forms,
        tuple(seeds),
        tuple(range(len(stored["labels"]))),
        np.broadcast_to(np.array(stored["labels"], dtype=np.float64), accuracy_MST.shape),
        accuracy_MST,
    )


def render(files: Sequence[dict[str, Any]]) -> str:
    """The page, of files that all have every form."""
    many = [results_of(stored) for stored in files]
    heads = ["form", *(f"{one.dataset} ({one.labels_MST[0, 0, -1]:,.0f} labels)" for one in many)]

    def line(words: str, form: str, other: str) -> list[str]:
        each = [gains(one, form, other)[0] for one in many]
        mean = mean_gains(many, form, other)[0]
        return [words, *(format_interval(gain, share=True) for gain in (*each, mean))]

    parts = [HEAD]
    for part in dict.fromkeys(form.part for form in FORMS.values() if form.part):
        base = line(f"{FORMS[BASE].words}: over random", BASE, "random")
        rows = [
            line(form.words, name, BASE)
            for name, form in FORMS.items()
            if form.part == part and all(name in one.methods for one in many)
        ]
        parts += [f"## {part}\n", table([*heads, "mean"], [base, *rows]) + "\n"]
    where = files[0]["machine"]
    seconds = [s for stored in files for runs in stored["seconds"].values() for s in runs.values()]
    parts.append(
        f"{len(seconds)} runs, {sum(seconds) / 60:,.0f} minutes of one core in all, on "
        f"{where['cpu']} with {where['cores']} cores.\n"
    )
    return "\n".join(parts)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options.add_argument("--experiments", nargs="+", default=list(EXPERIMENTS))
    options.add_argument("--forms", nargs="+", default=list(FORMS), choices=list(FORMS))
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--out", type=Path, default=RESULTS / "ablations")
    options.add_argument("--page", action="store_true", help="write the page alone")
    given = options.parse_args()
    if not given.page:
        measure(given.experiments, given.forms, given.seeds, given.workers, given.out)
    files = [load(given.out / f"{name}.json") for name in given.experiments]
    if not all(files):
        raise SystemExit(f"{given.out} has not the file of every experiment; run it without --page")
    (given.out / "README.md").write_text(render(files), encoding="utf-8")


if __name__ == "__main__":
    main()
