"""What the study `theory` measures: the bound along floored gradient descent, and Proposition A.1
along paths.

For the bound a network is trained by `FlooredSGD` on S, the points outside S being held out, with
the sizes of
Luo, Luo & Li's experiment on MNIST: γ_t = ε_t = 0.01, momentum 0.9, S_J half of S, T = 990, η = 1,
δ = 0.1.

For the proposition F is the mean loss on S and G that on S_J. A *walk* is T = 150 points of a
training; from its end a full-batch run goes on until ‖∇F‖ is small, and where it ends is θ*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from askance.data import Dataset
from askance.errors import InputError
from askance.paper.studies.contraction_run import HALF, digits, kept_epochs, stacks
from askance.paper.studies.lab import Lab, network, provenance
from askance.paper.studies.measures import contraction
from askance.paper.studies.paths import TwoLayers, subset_weights, train
from askance.paper.studies.samples import DrawnSample, draw_points
from askance.paper.theory import ContractionRate, FlooredSGD, bound, rates
from askance.seeding import Draws
from askance.training import TrainingJob

LEFT = 10  # steps that must follow t₀, so that ρ is no matter of the last few


@dataclass(frozen=True)
class Walk:
    """A training whose path is looked at.

    Args:
        batch: points in a mini-batch; None for all at once.
        every: epochs from one point of the path to the next.
    """

    optimiser: str
    batch: int | None
    learning_rate: float
    every: int = 1


WALKS = (
    *(Walk(name, batch, 1e-4) for name in ("momentum", "sgd", "adam") for batch in (8, None)),
    Walk("momentum", None, 0.5, every=4),
)


@dataclass(frozen=True)
class TheoryOptions:
    """What is measured: draws of S, S_J and initial weights from `seed` on.

    Args:
        points: of S, for the proposition.
        bound_points: of S, for the bound: the others are held out.
        size: γ_t and ε_t of the floored steps.
        floored_steps: T of the bound.
        indices: T of a walk.
        end_rate: the learning rate of the full-batch run to θ*, with momentum.
        end_gradient: ‖∇F‖ at which it ends.
        end_steps: or after so many steps.
    """

    dataset: str = "german"
    points: int = 1_000
    bound_points: int = 800
    hidden: int = 128
    size: float = 0.01
    momentum: float = 0.9
    floored_steps: int = 990
    eta: float = 1.0
    delta: float = 0.1
    walks: tuple[Walk, ...] = WALKS
    indices: int = 150
    end_rate: float = 0.5
    end_gradient: float = 5e-4
    end_steps: int = 20_000
    draws: int = 5
    seed: int = 0


@dataclass(frozen=True)
class FlooredRun:
    """One floored training and its bound.

    Args:
        d: parameters.
        loss: the mean loss on S at the start and at the end.
        prior_risk, risk, held_out: shares of errors at the end on S_J, on S_I and on the points
            outside S.
        terms: the bound's three, as the paper prints it.
        proved: the bound as it was proved.
        simplified: the bound with κ‖DF(t₀)‖² in the sum's place, t₀ the first index of Assumption 1.
        first: that t₀.
        floored: the share of entries of γ_t g_t/ε_t, over all steps, that the floor leaves above 0.
    """

    seed: int
    d: int
    loss: tuple[float, float]
    prior_risk: float
    risk: float
    held_out: float
    terms: tuple[float, float, float]
    proved: float
    simplified: float
    first: int
    floored: float


@dataclass(frozen=True)
class WalkRates:
    """Proposition A.1 along one walk.

    Args:
        steps: of the full-batch run to θ*.
        gradients: ‖∇F‖, ‖∇G‖ and ‖∇Δ‖ at θ*; the proposition takes them for 0.
        distances: ‖θ_t − θ*‖ at the first and the last index.
        whole: the constants from t₀ = 1.
        best: those with the smallest ρ, `LEFT` steps at least following t₀.
        rhos: ρ at every t₀ of `kept_epochs`, as far as there is one.
        held: at how many t₀, with as many steps following, q < 1 and ρ < 1.
        fell: at how many of these ‖∇Δ‖ falls in every step from t₀ on.
    """

    walk: Walk
    seed: int
    steps: int
    gradients: tuple[float, float, float]
    distances: tuple[float, float]
    whole: ContractionRate
    best: ContractionRate
    rhos: tuple[float, ...]
    held: int
    fell: int


@dataclass(frozen=True)
class TheoryResult:
    """Every floored training and every walk; `data` says what the dataset is."""

    options: TheoryOptions
    data: str
    floored: tuple[FlooredRun, ...]
    walks: tuple[WalkRates, ...]


def run(options: TheoryOptions, lab: Lab) -> TheoryResult:
    """The bound of every draw, then every walk of every draw."""
    if options.indices <= LEFT + 1:
        raise InputError(f"a walk needs more than {LEFT + 1} indices, got {options.indices}")
    dataset = lab.load(options.dataset)
    every_draw = [Draws(options.seed + number) for number in range(options.draws)]
    with lab.one_thread():
        floored = []
        for number, draws in enumerate(every_draw):
            lab.say(f"floored gradient descent: draw {number + 1} of {options.draws}")
            floored.append(_floored(dataset, options, draws, lab))
        samples = [_sample(dataset, options, draws, lab) for draws in every_draw]
        walks: list[WalkRates] = []
        for walk in options.walks:
            lab.say(f"{walk.optimiser}, batch {walk.batch or 'full'}, rate {walk.learning_rate:g}")
            for some in stacks(samples, options.hidden):
                walks += _walk(walk, options, some)
    return TheoryResult(options, provenance(dataset), tuple(floored), tuple(walks))


def _floored(dataset: Dataset, options: TheoryOptions, draws: Draws, lab: Lab) -> FlooredRun:
    """Train by floored steps on S, and put the path into the bound."""
    total = sum(len(split) for split in (dataset.train, dataset.val, dataset.test))
    if not 1 < options.bound_points < total:
        raise InputError(
            f"bound_points must be from 2 to {total - 1}, so that points are held out; "
            f"got {options.bound_points}"
        )
    x, y = draw_points(dataset, total, draws)
    order = torch.from_numpy(draws.generator("held out").permutation(total))
    x, y = (part[order].to(lab.device) for part in (x.flatten(1).double(), y))
    n, m = options.bound_points, options.bound_points // 2  # a random order: S_J is its first half
    model = network("two-layer", dataset, hidden=options.hidden)(draws).to(lab.device).double()
    weights = list(model.parameters())
    optimizer = FlooredSGD(weights, options.size, options.size, options.momentum)
    prior: list[Tensor] = []
    norms: list[float] = []
    floored = 0

    def loss(count: int) -> Tensor:
        optimizer.zero_grad()
        value: Tensor = cross_entropy(model(x[:count]), y[:count])
        value.backward()
        return value

    def on_prior() -> Tensor:
        value = loss(m)
        prior[:] = [p.grad.clone() for p in weights if p.grad is not None]
        return value

    def on_whole() -> Tensor:
        nonlocal floored
        value = loss(n)
        gap = torch.cat(
            [
                (p.grad - g).flatten()
                for p, g in zip(weights, prior, strict=True)
                if p.grad is not None
            ]
        )
        norms.append(float(gap.norm()))
        floored += int((gap.abs() >= 1).sum())  # γ_t = ε_t
        return value

    losses = [optimizer.step(on_whole, on_prior).item() for _ in range(options.floored_steps)]
    with torch.no_grad():
        wrong = model(x).argmax(dim=1).ne(y).double()
        after = float(cross_entropy(model(x[:n]), y[:n]))
    d = sum(p.numel() for p in weights)
    risk, first = float(wrong[m:n].mean()), contraction(norms).first
    bounded = partial(
        bound, risk, norms, gamma=options.size, epsilon=options.size, n=n, m=m, d=d,
        delta=options.delta, eta=options.eta,
    )  # fmt: skip
    terms = bounded()
    return FlooredRun(
        draws.seed,
        d,
        (digits(losses[0]), digits(after)),
        digits(float(wrong[:m].mean())),
        digits(risk),
        digits(float(wrong[n:].mean())),
        (digits(terms.empirical), digits(terms.confidence), digits(terms.discrepancy)),
        proved=digits(bounded(source="luo").total),
        simplified=digits(bounded(first=first).total),
        first=first,
        floored=floored / (d * len(norms)),
    )


def _sample(dataset: Dataset, options: TheoryOptions, draws: Draws, lab: Lab) -> DrawnSample:
    """S, S_J and initial weights as the study `contraction` draws them."""
    build = network("two-layer", dataset, hidden=options.hidden)
    drawn = DrawnSample.of(
        dataset, build, draws, points=options.points, shares=(HALF,), device=lab.device
    )
    return drawn.double()


def _walk(walk: Walk, options: TheoryOptions, samples: Sequence[DrawnSample]) -> list[WalkRates]:
    """The same walk for several draws, side by side."""
    x_RLD = torch.stack([one.inputs for one in samples])
    y_RL = torch.stack([one.labels for one in samples])
    networks = TwoLayers([one.start for one in samples])
    epochs = options.indices * walk.every
    jobs = [
        TrainingJob(np.arange(options.points), one.labels.cpu(), walk.learning_rate, one.draws)
        for one in samples
    ]
    order_REL = torch.stack([torch.from_numpy(job.order(epochs)) for job in jobs])
    path = train(
        networks, x_RLD, y_RL, order_REL.to(x_RLD.device), optimiser=walk.optimiser,
        learning_rate=walk.learning_rate, batch=walk.batch,
    )  # fmt: skip
    points_T = [_flat(networks) for epoch in path if epoch % walk.every == 0]
    steps_R, ends_R = run_to_the_end(networks, x_RLD, y_RL, options)
    return [
        _rates(walk, one, [at[r] for at in points_T], steps, end)
        for r, (one, steps, end) in enumerate(zip(samples, steps_R, ends_R, strict=True))
    ]


def run_to_the_end(
    networks: TwoLayers, x_RLD: Tensor, y_RL: Tensor, options: TheoryOptions
) -> tuple[list[int], list[Tensor]]:
    """Full batches until ‖∇F‖ is small: how many steps, and each network's θ*."""
    count = len(networks)
    optimizer = torch.optim.SGD(networks.weights, lr=options.end_rate, momentum=0.9, fused=True)
    ends: dict[int, tuple[int, Tensor]] = {}
    for step in range(options.end_steps + 1):
        optimizer.zero_grad(set_to_none=True)
        networks.losses(x_RLD, y_RL).sum().backward()
        grads = [w.grad.flatten(1) for w in networks.weights if w.grad is not None]
        small_R = torch.cat(grads, dim=1).norm(dim=1) <= options.end_gradient
        weights = _flat(networks)
        for r in range(count):
            if r not in ends and (bool(small_R[r]) or step == options.end_steps):
                ends[r] = step, weights[r]
        if len(ends) == count:
            break
        optimizer.step()
    return [ends[r][0] for r in range(count)], [ends[r][1] for r in range(count)]


def _flat(networks: TwoLayers) -> Tensor:
    """(R, d): every network's weights in a row."""
    return torch.cat([w.detach().flatten(1) for w in networks.weights], dim=1)


def _rates(
    walk: Walk, sample: DrawnSample, points_T: list[Tensor], steps: int, end: Tensor
) -> WalkRates:
    """The constants along one path, given its points and θ*."""
    points, shapes = sample.points, [weight.shape for weight in sample.start]
    count = len(sample.labels)
    whole_1L = torch.full((1, count), 1 / count, dtype=torch.float64)
    gap_1L = subset_weights(count, [sample.subsets[HALF]])
    # Of F, of G = F − Δ, and of Δ.
    w_JL = torch.cat([whole_1L, whole_1L - gap_1L, gap_1L]).to(end.device)

    def norms(flat: Tensor) -> list[float]:
        """‖∇F‖, ‖∇G‖ and ‖∇Δ‖."""
        parts = flat.split([shape.numel() for shape in shapes])
        weights = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
        return [float(one) for one in points.discrepancies(weights, w_JL)[:, 0]]

    distances = [float((at - end).norm()) for at in points_T]
    if not all(distances):
        raise InputError(
            f"a walk ({walk.optimiser}, learning rate {walk.learning_rate:g}) ends at θ* itself: give "
            f"it fewer indices, or end_gradient a smaller value"
        )
    found = rates(distances, [norms(at)[2] for at in points_T])
    early = found[: len(found) - LEFT + 1]  # `LEFT` steps at least from t₀ to T
    best = min(early, key=lambda one: one.rho)
    at_end = norms(end)
    kept = kept_epochs(len(points_T))[:-1]
    return WalkRates(
        walk,
        sample.draws.seed,
        steps,
        (digits(at_end[0]), digits(at_end[1]), digits(at_end[2])),
        (digits(distances[0]), digits(distances[-1])),
        whole=_short(found[0]),
        best=_short(best),
        rhos=tuple(digits(found[first - 1].rho, 4) for first in kept),
        held=sum(one.holds for one in early),
        fell=sum(one.observed < 1 for one in early),
    )


def _short(rate: ContractionRate) -> ContractionRate:
    numbers = (rate.q, rate.mu, rate.smoothness, rate.observed)
    return ContractionRate(rate.first, *(digits(number) for number in numbers))
