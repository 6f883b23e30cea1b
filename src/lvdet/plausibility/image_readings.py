"""Detects image ids that fit only under another order of the images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lvdet.plausibility.class_readings import gather
from lvdet.plausibility.finding import Finding
from lvdet.plausibility.image_sample import Objects, Sample, known_classes, take_sample
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Results

#: Minimums for the objects found in another image: their number, their share beyond chance, the
#: standard errors beyond chance, the ratio to those found in their own image, and their classes.
_GAIN, _SHARE, _BEYOND, _RATIO, _CLASSES = 20, 0.12, 6, 4, 4
#: Number of images and rows used if fewer are inconclusive.
_IMAGES, _ROWS = 5_000, 1_500_000


def misread_images(
    gt: GroundTruth, results: Results, sample: Sample, objects: Objects
) -> list[Finding]:
    """Whether the detections belong to other images than their ids say."""
    classes = known_classes(gt, results)
    given = gather(gt, results, sample, objects, sample.images)
    before = float(given.found(classes).mean())
    own = before - given.chance(classes)
    if own >= _SHARE:
        return []
    sample = take_sample(gt, results, objects, images=_IMAGES, rows=_ROWS)
    for name, image in _orders(gt, sample):
        evidence = gather(gt, results, sample, objects, image)
        found = evidence.found(classes)
        if len(found) < _GAIN:
            continue
        share = float(found.mean())
        kinds = len(np.unique(evidence.target_class[found]))
        beyond = share - evidence.chance(classes)
        error = np.sqrt(share * (1 - share) / len(found))
        clear = beyond >= max(_SHARE, _BEYOND * error, _RATIO * own)
        sure = clear and evidence.sureness(classes) >= _BEYOND
        if found.sum() >= _GAIN and sure and kinds >= _CLASSES:
            return [
                Finding(
                    "images",
                    len(found),
                    {"objects": len(found), "found_as_given": before, "found_otherwise": share},
                    f"The image ids in {results.source} fit only when read {name}: "
                    f"{share:.1%} of {len(found):,} objects are found that way, {before:.1%} "
                    "as given.",
                    "Write each detection with the id of its own image.",
                )
            ]
    return []


def _orders(gt: GroundTruth, sample: Sample) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Other orders of the images, and the image that each sampled one stands for."""
    last = len(gt.images) - 1
    for step, name in ((1, "as one image earlier"), (-1, "as one image later")):
        yield name, np.clip(sample.images + step, 0, last)
    if all(gt.images.file_names):
        by_name = np.argsort(np.array(gt.images.file_names), kind="stable")
        if (by_name != np.arange(last + 1)).any():
            yield "as places in the order of the file names", by_name[sample.images]
            yield "as sorted by file name", np.argsort(by_name)[sample.images]
