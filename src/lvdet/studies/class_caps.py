"""Which class cap, applied before the limit per image, raises AP-Old most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lvdet.evaluation.pair import Pair
from lvdet.limits.budgets import PerClass, PerImage
from lvdet.rendering.table_text import percent

#: The search stops when caps differ by less than this share, or after this many rounds.
_CLOSE = 0.01
_ROUNDS = 4
#: Caps tried on each side of the best one in a round.
_SIDE = 3


@dataclass(frozen=True, repr=False)
class ClassCap:
    """The class cap, among those tried, that raises AP-Old most.

    best: the cap; tried: AP-Old at each cap, by ascending cap
    before, after: AP, APr, APc, APf of AP-Old without a cap, and with the best
    """

    best: int
    tried: dict[int, float]
    before: dict[str, float]
    after: dict[str, float]

    def __repr__(self) -> str:
        gain = f"AP-Old {percent(self.before['AP'])} to {percent(self.after['AP'])}"
        return f"ClassCap({self.best:,} per class, {gain}, best of {len(self.tried):,})"


def largest_class(pair: Pair) -> int:
    """The number of detections of the largest class, among those that budgets count."""
    members = pair.counted_classes(pair.every_class)
    counts = pair.results.per_class
    if members is not None:
        counts = counts[members]
    return int(counts.max(initial=0))


def search_caps(pair: Pair, dets_per_image: int, most: int) -> ClassCap:
    """Tries caps from 1 to `most`, each twice the previous one, then ever closer around the best of
    them; ties go to the largest cap."""
    image, classes = PerImage(dets_per_image), pair.every_class
    most = max(most, 1)
    tried: dict[int, float] = {}

    def attempt(caps: Sequence[int]) -> int:
        for cap in caps:
            if cap not in tried:
                tried[cap] = pair.average([PerClass(cap), image], classes)["AP"]
        return max(tried, key=lambda cap: (np.nan_to_num(tried[cap]), cap))

    best = attempt([*(1 << power for power in range(most.bit_length())), most])
    for _ in range(_ROUNDS):
        ordered = sorted(tried)
        place = ordered.index(best)
        sides = ordered[max(place - 1, 0)], ordered[min(place + 1, len(ordered) - 1)]
        if max(abs(side - best) for side in sides) <= max(1, _CLOSE * best):
            break
        steps = np.arange(1, _SIDE + 1) / (_SIDE + 1)
        best = attempt(
            [round(best * (side / best) ** step) for side in sides for step in steps.tolist()]
        )
    return ClassCap(
        best,
        dict(sorted(tried.items())),
        pair.average([image], classes),
        pair.average([PerClass(best), image], classes),
    )
