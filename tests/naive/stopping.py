"""The stopping rules as their definitions read, item by item."""

import math


def kappa(one, other):
    """(A_o − A_e)/(1 − A_e), counted by hand; NaN where it is 0/0."""
    n = len(one)
    agree = sum(1 for a, b in zip(one, other, strict=True) if a == b) / n
    expected = 0.0
    for name in {*one, *other}:
        in_one = sum(1 for a in one if a == name)
        in_other = sum(1 for b in other if b == name)
        expected += (in_one / n) * (in_other / n)
    if len({*one, *other}) == 1:
        return math.nan
    return (agree - expected) / (1 - expected)


def is_stable(predictions, least, window):
    """Whether the last `window` pairs of successive predictions agree by `least` in the mean."""
    if len(predictions) < window + 1:
        return False
    total = 0.0
    for place in range(len(predictions) - window, len(predictions)):
        total += kappa(predictions[place - 1], predictions[place])
    return total / window >= least


def is_plateau(labels, accuracies, gain, over):
    """Whether the mean accuracy of the last `over` labels is less than `gain` above that before."""
    recent, before = [], []
    for place in range(len(labels)):
        if labels[place] > labels[-1] - over:
            recent.append(place)
    first = recent[0]
    for place in range(first - len(recent), first):
        if place < 0:
            return False
        before.append(place)

    def mean(values, places):
        return sum(values[place] for place in places) / len(places)

    distance = mean(labels, recent) - mean(labels, before)
    return (mean(accuracies, recent) - mean(accuracies, before)) / distance * over < gain
