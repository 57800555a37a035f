"""Every study on `digits`, in seconds: what the tests of the whole frame run."""

from dataclasses import replace

import askance.paper.studies as studies
from askance.paper.studies import (
    contraction_run,
    cost,
    geometry_run,
    grand_run,
    labels_run,
    reference,
    shift,
    theory_run,
)

OPTIONS = {
    "geometry": geometry_run.GeometryOptions(
        dataset="digits", points=200, batches=(5, 12), epochs=10, starts=2, chance=4, hidden=16
    ),
    "shift": shift.ShiftOptions(
        inside="digits", outside="digits", model="mlp", training=60, test=50, epochs=2,
        learning_rate=0.01, precision="float32", networks=2,
    ),
    "contraction": contraction_run.ContractionOptions(
        datasets=("digits",), points=60, epochs=4, draws=2, hidden=8, optimisers=("momentum",)
    ),
    "cost": cost.CostOptions(
        dataset="digits", pool=300, batch=10, rounds=2, networks=(("mlp", 1),), repeats=1,
        precision="float32",
    ),
    "reference": reference.ReferenceOptions(
        (reference.Experiment("digits", rounds=3, epochs=3, rates=(0.01,)),), runs=2
    ),
    "labels": labels_run.LabelsOptions(
        (reference.Experiment("digits", rounds=2, epochs=3, rates=(0.05,)),), runs=2
    ),
    "grand": grand_run.GrandOptions(
        (reference.Experiment("digits", epochs=8, rates=(0.05,)),), labeled=60, points=80, batch=8,
        networks=2, early=(0, 2), draws=2,
    ),
    "theory": theory_run.TheoryOptions(
        dataset="digits", points=40, bound_points=60, hidden=6, floored_steps=20, indices=15,
        walks=(theory_run.Walk("sgd", 8, 0.01), theory_run.Walk("momentum", None, 0.05, every=2)),
        end_rate=0.1, end_gradient=0.05, end_steps=400, draws=2,
    ),
}  # fmt: skip


def tiny(name):
    """The study with these options in both of its forms."""
    return replace(studies.get(name), full=OPTIONS[name], quick=OPTIONS[name])
