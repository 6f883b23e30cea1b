"""The losses of the classifier by their formulas, in float64 and one entry at a time.

K classes, N rows; a label is 0 to K - 1, K for background, -1 for a row that is no sample. What a
loss draws at random is an argument here. Logits of balanced groups: the groups by rising count,
"others" first in each and then its classes in order; objectness is the last logit of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = Sequence[int]

GROUP_BOUNDS = (0, 10, 100, 1000, math.inf)


def linear(x: Floats, weight: Floats, bias: Floats, temperature: float | None) -> Floats:
    """[N, L] w·x + b, or τ (w·x) / (|w| |x|) + b with a temperature."""
    logits = np.zeros((len(x), len(weight)))
    for i, feature in enumerate(x):
        for j, row in enumerate(weight):
            product = sum(a * b for a, b in zip(feature, row, strict=True))
            if temperature is not None:
                lengths = math.hypot(*feature) * math.hypot(*row)
                product *= temperature / lengths
            logits[i, j] = product + bias[j]
    return logits


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def binary(x: float, y: int) -> float:
    """-y log s - (1 - y) log (1 - s), s = sigmoid(x)."""
    return float(np.logaddexp(0, -x)) if y else float(np.logaddexp(0, x))


def cross_entropy(logits: Floats, place: int) -> float:
    return math.log(sum(math.exp(x - max(logits)) for x in logits)) + max(logits) - logits[place]


def softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - np.max(logits))
    return powers / powers.sum()


def softmax_loss(logits: Floats, label: Labels, count: float) -> float:
    return sum(cross_entropy(x, y) for x, y in zip(logits, label, strict=True) if y != -1) / count


def weighted_binary_loss(
    logits: Floats, label: Labels, count: float, weight: Callable[[int, int], float]
) -> float:
    """The sum of weight(i, j) · BCE(i, j) over samples and classes, / count."""
    total = 0.0
    for i, y in enumerate(label):
        if y != -1:
            for j, x in enumerate(logits[i]):
                total += weight(i, j) * binary(x, int(y == j))
    return total / count


def sigmoid_loss(logits: Floats, label: Labels, count: float) -> float:
    return weighted_binary_loss(logits, label, count, lambda i, j: 1.0)


def equalization_loss(
    logits: Floats, label: Labels, count: float, fraction: Floats, rarer_than: float
) -> float:
    """w = 1 - E T(f) (1 - y)."""
    classes = logits.shape[1]

    def weight(i: int, j: int) -> float:
        foreground = 1 if 0 <= label[i] < classes else 0
        tail = 1 if fraction[j] < rarer_than else 0
        return 1.0 - foreground * tail * (1 - int(label[i] == j))

    return weighted_binary_loss(logits, label, count, weight)


def federated_loss(logits: Floats, label: Labels, count: float, chosen: set[int]) -> float:
    return weighted_binary_loss(logits, label, count, lambda i, j: float(j in chosen))


def groups_of(instance_count: Sequence[int]) -> list[list[int]]:
    """The classes of each group that has any."""
    found = [
        [c for c, count in enumerate(instance_count) if low <= count < high]
        for low, high in pairwise(GROUP_BOUNDS)
    ]
    return [group for group in found if group]


def group_logits(logits: Floats, groups: list[list[int]]) -> list[Floats]:
    parts, begin = [], 0
    for group in groups:
        parts.append(logits[..., begin : begin + 1 + len(group)])
        begin += 1 + len(group)
    return parts


def balanced_groups_loss(
    logits: Floats, label: Labels, groups: list[list[int]], chosen: Sequence[set[int]]
) -> float:
    """The sum over groups of the mean over the group's chosen rows; group 0 is objectness."""
    total = 0.0
    for group, part, rows in zip(groups, group_logits(logits, groups), chosen, strict=True):
        terms = [
            cross_entropy(part[i], 1 + group.index(label[i]) if label[i] in group else 0)
            for i in sorted(rows)
        ]
        total += sum(terms) / len(terms) if terms else 0.0
    return total


def objectness_loss(logit: Floats, label: Labels, classes: int, count: float) -> float:
    pairs = zip(logit, label, strict=True)
    return sum(binary(x, int(y < classes)) for x, y in pairs if y != -1) / count


def group_scores(logits: Floats, groups: list[list[int]]) -> Floats:
    """[N, K] softmax within the groups."""
    scores = np.zeros((len(logits), sum(map(len, groups))))
    for group, part in zip(groups, group_logits(logits, groups), strict=True):
        for i, row in enumerate(part):
            scores[i, group] = softmax(row)[1:]
    return scores


def gradient(of: Callable[[Floats], float], at: Floats, step: float = 1e-6) -> Floats:
    """Central differences of a function of an array."""
    slopes = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        ends = []
        for side in (step, -step):
            moved = at.copy()
            moved[place] += side
            ends.append(of(moved))
        slopes[place] = (ends[0] - ends[1]) / (2 * step)
    return slopes
