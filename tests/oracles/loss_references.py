"""The losses of the classifier by their formulas, in float64 and one entry at a time.

K classes, N rows; a label is 0 to K - 1, K for background, -1 for a padding row. What a
loss draws at random is an argument here. Federated and balanced groups take rows and labels of one
group of images after the other, as the authors' code has them on one GPU after the other. Logits of
balanced groups: the groups by rising count, "others" first in each and then its classes in order;
objectness is the last logit of all.
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


def federated_classes(label: Labels, image_count: Sequence[int], size: int, u: Floats) -> set[int]:
    """S of one group of images, after Zhou et al. and their `get_fed_loss_inds`.

    The classes of its boxes, and while they are fewer than `size` others without replacement, with
    chances in proportion to the root of the image count. The class drawn first is the one whose
    exponential of rate sqrt(count), made of its uniform number u, is least, and so on.
    """
    chosen = {y for y in label if 0 <= y < len(image_count)}
    waiting = [
        (-math.log1p(-u[c]) / math.sqrt(count), c) for c, count in enumerate(image_count) if count
    ]
    for _, c in sorted(waiting):
        if len(chosen) < size:
            chosen.add(c)
    return chosen


def federated_loss(
    logits: Sequence[Floats], label: Sequence[Labels], chosen: list[set[int]]
) -> float:
    """The mean over groups of images of BCE over S, summed, / the samples of the group: each as
    the authors' code has it on a GPU, the mean as gradients of GPUs are averaged."""
    each = []
    for z, y, of_group in zip(logits, label, chosen, strict=True):
        samples = sum(1 for one in y if one != -1)
        total = sum(
            binary(z[i][c], int(y[i] == c)) for i in range(len(y)) if y[i] != -1 for c in of_group
        )
        each.append(total / samples if samples else 0.0)
    return sum(each) / len(each)


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


def others_taken(own: list[int], others: list[int], ratio: float, u: Floats) -> set[int]:
    """A bin's rows after Li et al.'s `_sample_others`: its own and int(ratio · their number) of the
    others, those of the least u; all of them where that is not fewer; without own rows none."""
    if not own:
        return set()
    wanted = int(len(own) * ratio)
    if wanted >= len(others):
        return {*own, *others}
    return {*own, *sorted(others, key=lambda i: u[i])[:wanted]}


def balanced_groups_loss(
    logits: Sequence[Floats],
    label: Sequence[Labels],
    bins: list[list[int]],
    ratio: float,
    u: Sequence[Sequence[Floats]],
) -> float:
    """The mean over groups of images of what the authors' code has on a GPU: for each bin of
    classes the cross-entropy summed over its rows, / max(1, their number). u: by group and bin."""
    each = []
    for z, y, random in zip(logits, label, u, strict=True):
        total = 0.0
        for classes, part, mine in zip(bins, group_logits(z, bins), random, strict=True):
            own = [i for i in range(len(y)) if y[i] in classes]
            others = [i for i in range(len(y)) if y[i] not in classes and y[i] != -1]
            rows = others_taken(own, others, ratio, mine)
            terms = [
                cross_entropy(part[i], 1 + classes.index(y[i]) if i in own else 0)
                for i in sorted(rows)
            ]
            total += sum(terms) / max(1, len(terms))
        each.append(total)
    return sum(each) / len(each)


def objectness_loss(logit: Floats, label: Labels, classes: int, count: float) -> float:
    pairs = zip(logit, label, strict=True)
    return sum(binary(x, int(y < classes)) for x, y in pairs if y != -1) / count


def objectness_by_groups(logit: Sequence[Floats], label: Sequence[Labels], classes: int) -> float:
    """The mean over groups of images of each one's mean over its samples."""
    each = [
        objectness_loss(x, y, classes, max(1, sum(1 for one in y if one != -1)))
        for x, y in zip(logit, label, strict=True)
    ]
    return sum(each) / len(each)


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
