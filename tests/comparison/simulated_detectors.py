"""Two simulated detectors, many sets of images of them, and how often intervals are right.

Sets are drawn with replacement from a large population of simulated images, so that a set's images
are independent and the true difference, the mean over sets of that size, can be computed as
closely as one likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

import lvdet
from comparison.drawn_sets import drawn_detections, drawn_truth
from lvdet.comparison.bootstrap import LANES, Resampler
from lvdet.evaluation.load_pair import load_pair
from lvdet.evaluation.summary import NAMES, PROTOCOLS
from lvdet.limits.budgets import PerClass, PerImage
from lvdet.tables.problems import category_rows, image_rows

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tally:
    """The outcomes of the intervals of many sets, for each protocol and metric: [3, 4].

    defined: sets in which the difference is defined
    covered, half: how often the interval, and one of half its width, has the true difference
    held: how often 0 lies outside
    """

    defined: NDArray[np.int64]
    covered: NDArray[np.int64]
    half: NDArray[np.int64]
    held: NDArray[np.int64]

    def __str__(self) -> str:
        lines = []
        for row, protocol in enumerate(PROTOCOLS):
            shares = (
                f"{name} {count / max(of, 1):.3f}"
                for name, count, of in zip(NAMES, self.covered[row], self.defined[row], strict=True)
            )
            held = ", ".join(
                f"{count}/{of}" for count, of in zip(self.held[row], self.defined[row], strict=True)
            )
            lines.append(f"{protocol:<5} covered {', '.join(shares)}; held {held}")
        return "\n".join(lines)


class Population:
    """Images, and two detectors on them: the second boxes objects more tightly, and scores rare
    classes lower. Where they are `mixed`, each image of a set has one or the other by chance, so
    that both are equally good."""

    def __init__(self, images: int, classes: int, *, seed: int = 5, mixed: bool = False) -> None:
        common = {"seed": seed, "dets_per_image": 40, "decimals": (2, 9)}
        self.gt, first = lvdet.simulate(images, classes, localisation=0.6, **common)
        _, second = lvdet.simulate(images, classes, localisation=0.66, bias=1.0, **common)
        self.detectors, self.mixed = (first, second), mixed

    def limits(self, images: int) -> tuple[int, int]:
        """Limits per image and per class that drop a good part of a set of this many images."""
        return 12, images

    def true_differences(self, images: int, sets: int, *, seed: int) -> Numbers:
        """[3, 4] the mean difference over sets of this many images."""
        rng = np.random.default_rng([seed, 1])
        total, count = np.zeros((3, 4)), np.zeros((3, 4))
        for _ in range(0, sets, 4 * LANES):
            weights = np.zeros((4, len(self.gt.images), LANES), dtype=np.uint8)
            for lane in range(4 * LANES):
                drawn = np.bincount(self._draw(rng, images), minlength=len(self.gt.images))
                weights[lane // LANES, :, lane % LANES] = drawn
            first, second = (
                one.values(weights).metrics(self.gt.categories) for one in self._resamplers(images)
            )
            delta = second - first
            total += np.nansum(delta, axis=0)
            count += (~np.isnan(delta)).sum(axis=0)
        return total / np.maximum(count, 1)

    def tally(self, images: int, sets: int, *, resamples: int, truth: Numbers, seed: int) -> Tally:
        """Compares the detectors on many sets, and looks at the intervals."""
        rng = np.random.default_rng([seed, 2])
        counts = np.zeros((4, 3, 4), dtype=np.int64)
        per_image, per_class = self.limits(images)
        for number in range(sets):
            drawn = self._draw(rng, images)
            gt = drawn_truth(self.gt, drawn)
            tables = [drawn_detections(self.gt, one, drawn) for one in self.detectors]
            if self.mixed:
                coin = rng.random(images) < 0.5
                tables = [_joined(gt, tables, side) for side in (coin, ~coin)]
            result = lvdet.compare(
                gt,
                tables,
                names=["first", "second"],
                dets_per_image=per_image,
                dets_per_class=per_class,
                resamples=resamples,
                seed=number,
            )
            for row, protocol in enumerate(PROTOCOLS):
                for column, name in enumerate(NAMES):
                    item = result.compared[0].protocols[protocol][name]
                    aim = truth[row, column]
                    low, high = ((item.delta + end) / 2 for end in (item.low, item.high))
                    flags = [
                        item.low == item.low,
                        item.low <= aim <= item.high,
                        low <= aim <= high,
                        item.holds,
                    ]
                    counts[:, row, column] += flags
        return Tally(*counts)

    def _draw(self, rng: np.random.Generator, images: int) -> NDArray[np.int64]:
        return rng.integers(0, len(self.gt.images), images)

    def _resamplers(self, images: int) -> list[Resampler]:
        if images not in self._made:
            per_image, per_class = self.limits(images)
            self._made[images] = [
                Resampler(
                    load_pair(self.gt, one, None),
                    old=PerImage(per_image),
                    fixed=PerClass(per_class),
                )
                for one in self.detectors
            ]
        return self._made[images]

    @cached_property
    def _made(self) -> dict[int, list[Resampler]]:
        return {}


def _joined(
    gt: lvdet.GroundTruth,
    both: Sequence[lvdet.Detections],
    side: NDArray[np.bool_],
) -> lvdet.Detections:
    """The first one's detections in some images, the second one's in the others."""
    parts = []
    for one, there in zip(both, (side, ~side), strict=True):
        image = image_rows(gt, one)[one.image]
        category = category_rows(gt, one)[one.category]
        keep = there[image]
        parts.append((image[keep], category[keep], one.score[keep], one.box[keep]))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return lvdet.Detections(*columns, gt.images.ids, gt.categories.ids)
