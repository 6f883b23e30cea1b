"""Images that the detector was never run on, as opposed to images where it found nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lvdet.plausibility.finding import Finding
from lvdet.tables.columns import take
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows, image_rows
from lvdet.tables.results import Results

_Mask = NDArray[np.bool_]
#: With fewer images there is no pattern.
_FEWEST_IMAGES = 12
#: With fewer images with detections, nothing can be said about the others.
_FEWEST_PRESENT = 5
#: Fewer missing images, or a lower share, are not reported.
_FEWEST_MISSING, _SHARE = 3, 0.005
#: Chance of a pattern above which it may be one.
_CHANCE = 1e-9
#: A detector of plenty: the median of its detections in images that have any, …
_PLENTY = 20
#: … and how many times as many images have none as have few, which are up to this share of that.
_GAP, _FEW = 5, 0.1
#: Images with classes that the detector finds are missing at least so often as others.
_EVEN = 0.6
#: Images by which it is judged whether a class is found.
_JUDGED = 3
#: Shards of an interleaved split, at most.
_SHARDS = 64


class _Pattern(NamedTuple):
    """The images that were not run ([I]), and the pattern they form."""

    name: str
    images: _Mask
    by_share: bool = False


def missing_images(gt: GroundTruth, results: Results) -> list[Finding]:
    """Whether images of the annotations lack detections that they should have."""
    of_id = image_rows(gt, results.ranking)
    counts = np.zeros(len(gt.images), dtype=np.int64)
    np.add.at(counts, of_id[of_id >= 0], results.per_image[of_id >= 0])
    missing = counts == 0
    number = int(missing.sum())
    if number < max(_FEWEST_MISSING, _SHARE * len(counts)) or len(counts) < _FEWEST_IMAGES:
        return []
    if len(counts) - number < _FEWEST_PRESENT:
        return []
    patterns = list(_patterns(counts))
    if not patterns:
        return []
    pairs = _Pairs(gt, results)
    for pattern in patterns:
        silent = pattern.images & missing
        if pairs.chance(silent, ~pattern.images) > _CHANCE:
            continue
        if pattern.by_share and not pairs.spread(silent):
            continue
        first = gt.images.ids[np.flatnonzero(silent)[0]]
        return [
            Finding(
                "missing-images",
                int(silent.sum()),
                {"images": int(silent.sum()), "of": len(counts), "first_image_id": int(first)},
                f"{int(silent.sum()):,} of {len(counts):,} images have no detections in "
                f"{results.source} (first image_id {first}) and apparently the detector was never "
                f"run on them: {pattern.name}.",
                "Run the detector on every image, and write the results of all processes.",
            )
        ]
    return []


def _patterns(counts: NDArray[np.int64]) -> Iterator[_Pattern]:
    """Possible patterns; counts: [I] detections of each image, by ascending id."""
    missing = counts == 0
    images, there = len(counts), ~missing
    for step in range(2, min(_SHARDS, images // 4) + 1):  # one of each batch written
        start = int(np.flatnonzero(there)[0]) % step
        one = np.arange(images) % step == start
        if not there[~one].any() and there[one].mean() > 0.5:
            yield _Pattern(f"only every {_ordinal(step)} image is present", ~one)
            return
    typical = np.median(counts[there])
    few = int((there & (counts <= max(3, _FEW * typical))).sum())
    if typical >= _PLENTY and missing.sum() >= _GAP * few:
        yield _Pattern(f"the others have {typical:,.0f} detections each (median)", missing, True)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], missing, [False]]).astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - begins))
    begin, end = int(begins[longest]), int(ends[longest])
    block = np.zeros(images, dtype=bool)
    block[begin:end] = True
    if end - begin >= _FEWEST_MISSING and (~block).any():
        where = "the last ones by id" if end == images else "consecutive by id"
        yield _Pattern(f"they are {where}", block)
    for step in range(2, min(_SHARDS, images // 4) + 1):
        empty = np.bincount(np.arange(images)[there] % step, minlength=step) == 0
        if empty.any():
            shard = empty[np.arange(images) % step]
            yield _Pattern(f"they are every {_ordinal(step)} image by id", shard)
            return


def _ordinal(number: int) -> str:
    """2nd, 3rd, 4th."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10)
    return f"{number}{ending or 'th'}"


class _Pairs:
    """Images and the classes of their objects, each once, and which of them the file has."""

    def __init__(self, gt: GroundTruth, results: Results) -> None:
        classes = len(gt.categories)
        key = np.unique(gt.image.astype(np.int64) * classes + gt.category)
        self._image, self._class = key // classes, key % classes
        ranking = results.ranking
        image = take(image_rows(gt, ranking), ranking.image).astype(np.int64)
        kind = take(category_rows(gt, ranking), ranking.category)
        rows = np.unique((image * classes + kind)[(image >= 0) & (kind >= 0)])
        self._found = np.isin(key, rows, assume_unique=True)
        self._classes, self._images = classes, len(gt.images)

    def spread(self, silent: _Mask) -> bool:
        """Whether images without detections are just as frequent among those with classes that the
        detector finds; otherwise it simply found nothing in them."""
        there = ~silent[self._image]
        total = np.bincount(self._class[there], minlength=self._classes)
        found = np.bincount(self._class[there & self._found], minlength=self._classes)
        judged, strong = np.zeros((2, self._images), dtype=bool)
        judged[self._image[(total >= _JUDGED)[self._class]]] = True
        strong[self._image[((total >= _JUDGED) & (2 * found >= total))[self._class]]] = True
        others = silent[judged & ~strong]
        return bool(
            strong.any() and silent[strong].mean() >= _EVEN * (others.mean() if len(others) else 0)
        )

    def chance(self, silent: _Mask, elsewhere: _Mask) -> float:
        """The probability that a detector finds nothing in any of these images if it finds each
        class as often as elsewhere."""
        known = elsewhere[self._image]
        of = self._class[known]
        total = np.bincount(of, minlength=self._classes)
        found = np.bincount(of[self._found[known]], minlength=self._classes)
        missed = np.where(total >= _JUDGED, 1 - found / (total + 1), 1)
        here = silent[self._image]
        logs = np.log(missed[self._class[here]])
        # Classes of an image are found or missed together: the surest of them counts.
        surest = np.zeros(self._images)
        np.minimum.at(surest, self._image[here], logs)
        return float(np.exp(surest.sum()))
