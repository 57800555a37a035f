"""The paper's suite: its five rules and its 18 experiments, in the order of its figures."""

from askance.experiments.statistics.suite import Suite

SUITE = Suite(
    name="paper",
    title="The paper's rules",
    citation="The paper is Khosravani & Zilles, Gradient-Discrepancy Acquisition for Pool-Based Active "
    "Learning; its matrices have its rules alone.",
    rules=("random", "entropy", "badge", "kcenter", "grad"),
    # Those of the appendix have no names in the paper.
    panels={
        "text-tabular": ("20newsgroups-mlp", "isolet-mlp", "pokerhand-mlp"),
        "images": (
            "stl10-lenet", "gtsrb-vgg16", "svhn-lenet", "cifar10-vgg16", "cifar10-resnet18",
            "cinic10-resnet18",
        ),
        "appendix": (
            "stl10-vgg16", "stl10-resnet18", "gtsrb-lenet", "gtsrb-resnet18", "svhn-vgg16",
            "svhn-resnet18", "cifar10-lenet", "cinic10-lenet", "cinic10-vgg16",
        ),
    },
    backbones=("lenet", "resnet18", "vgg16"),
    datasets=("cifar10", "svhn", "cinic10"),
)  # fmt: skip
RULES = SUITE.rules
