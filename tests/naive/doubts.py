"""Doubts about picks, one pair of items after the other."""

import math


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b))
    return dot / lengths if lengths else 0.0


def nearest(rows, others):
    return [max(cosine(row, other) for other in others) for row in rows]
