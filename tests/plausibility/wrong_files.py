"""Well-formed results that are not what their owner thinks, by what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth

Wrong = Callable[[GroundTruth, Detections], Detections]
Boxes = NDArray[np.float64]


def _image(gt: GroundTruth, dt: Detections) -> NDArray[np.int64]:
    """[N] row of the image of each detection."""
    return np.searchsorted(gt.images.ids, dt.image_ids)[dt.image]


def _sizes(gt: GroundTruth, dt: Detections) -> Boxes:
    at = _image(gt, dt)
    return np.stack([gt.images.width[at], gt.images.height[at]], axis=1).astype(np.float64)


def _boxes(change: Callable[[Boxes, Boxes], Boxes]) -> Wrong:
    def wrong(gt: GroundTruth, dt: Detections) -> Detections:
        return replace(dt, box=np.ascontiguousarray(change(dt.box, _sizes(gt, dt))))

    return wrong


def _ids(change: Callable[[GroundTruth, NDArray[np.int64]], NDArray[np.int64]]) -> Wrong:
    return lambda gt, dt: replace(dt, category_ids=change(gt, dt.category_ids))


def _scores(change: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> Wrong:
    return lambda gt, dt: dt.with_scores(change(dt.score))


def _some(keep: Callable[[NDArray[np.int64], int], NDArray[np.bool_]]) -> Wrong:
    return lambda gt, dt: dt[keep(_image(gt, dt), len(gt.images))]


def _twice(rows: Callable[[NDArray[np.int64]], NDArray[np.bool_]]) -> Wrong:
    def wrong(gt: GroundTruth, dt: Detections) -> Detections:
        again = np.flatnonzero(rows(_image(gt, dt)))
        return dt[np.append(np.arange(len(dt)), again)]

    return wrong


def corners(box: Boxes, size: Boxes) -> Boxes:
    return np.concatenate([box[:, :2], box[:, :2] + box[:, 2:]], axis=1)


def centres(box: Boxes, size: Boxes) -> Boxes:
    return np.concatenate([box[:, :2] + box[:, 2:] / 2, box[:, 2:]], axis=1)


def fractions(box: Boxes, size: Boxes) -> Boxes:
    return box / np.tile(size, 2)


def mirrored(box: Boxes, size: Boxes) -> Boxes:
    left = size[:, :1] - box[:, :1] - box[:, 2:3]
    return np.concatenate([left, box[:, 1:]], axis=1)


def _resized(box: Boxes, size: Boxes) -> Boxes:
    factor = np.minimum(800 / size.min(axis=1), 1333 / size.max(axis=1))
    return box * factor[:, None]


def _run_twice(gt: GroundTruth, dt: Detections) -> Detections:
    """Seven images come again from another batch, a little different."""
    rng = np.random.default_rng(4)
    again = dt[_image(gt, dt) < 7]
    moved = again.box + rng.normal(0, 0.01, again.box.shape) * np.tile(again.box[:, 2:], 2)
    moved[:, 2:] = np.maximum(moved[:, 2:], 0)
    rows = np.append(np.arange(len(dt)), np.flatnonzero(_image(gt, dt) < 7))
    return replace(
        dt[rows],
        box=np.concatenate([dt.box, moved]),
        score=np.append(dt.score, again.score * rng.uniform(0.99, 1, len(again))),
    )


def _far_off(box: Boxes, size: Boxes) -> Boxes:
    """One box in twenty lies right of its image."""
    found = box.copy()
    found[::20, 0] += 10_000
    return found


def _permuted(gt: GroundTruth, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    other = np.random.default_rng(0).permutation(gt.categories.ids)
    return other[np.searchsorted(gt.categories.ids, ids)]


def _by_name(gt: GroundTruth, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(np.argsort(np.array(gt.categories.names)))
    return order[np.searchsorted(gt.categories.ids, ids)].astype(np.int64)


def _shifted_images(gt: GroundTruth, dt: Detections) -> Detections:
    place = np.searchsorted(gt.images.ids, dt.image_ids)
    return replace(dt, image_ids=np.roll(gt.images.ids, 1)[place])


def _ordered_like_names(gt: GroundTruth, dt: Detections) -> Detections:
    """Image k in the order of ids is written with the id of image k in the order of names."""
    place = np.searchsorted(gt.images.ids, dt.image_ids)
    return replace(dt, image_ids=gt.images.ids[np.argsort(gt.images.file_names)][place])


#: What is wrong, the kind of the finding, and how such a file comes about.
WRONG: dict[str, tuple[str, Wrong]] = {
    "seven images twice": ("repeated-images", _twice(lambda image: image < 7)),
    "every row twice": ("repeated-images", _twice(lambda image: image >= 0)),
    "seven images run twice": ("images-run-twice", _run_twice),
    "first of each batch": ("missing-images", _some(lambda image, count: image % 4 == 0)),
    "interrupted": ("missing-images", _some(lambda image, count: image < 0.7 * count)),
    "a shard missing": ("missing-images", _some(lambda image, count: image % 8 != 3)),
    "a middle part missing": (
        "missing-images",
        _some(lambda image, count: (image < 0.4 * count) | (image > 0.6 * count)),
    ),
    "corners": ("boxes", _boxes(corners)),
    "centres": ("boxes", _boxes(centres)),
    "fractions": ("boxes", _boxes(fractions)),
    "corners in fractions": ("boxes", _boxes(lambda b, s: fractions(corners(b, s), s))),
    "centres in fractions": ("boxes", _boxes(lambda b, s: fractions(centres(b, s), s))),
    "y, x, h, w": ("boxes", _boxes(lambda b, s: b[:, [1, 0, 3, 2]])),
    "x, y, h, w": ("boxes", _boxes(lambda b, s: b[:, [0, 1, 3, 2]])),
    "mirrored": ("boxes", _boxes(mirrored)),
    "half the size": ("boxes", _boxes(lambda b, s: b / 2)),
    "the network's size": ("boxes", _boxes(_resized)),
    "outside the image": ("boxes-outside", _boxes(_far_off)),
    "ids one higher": ("classes", _ids(lambda gt, ids: ids + 1)),
    "ids one lower": ("classes", _ids(lambda gt, ids: ids - 1)),
    "places by id": (
        "classes",
        _ids(lambda gt, ids: np.searchsorted(gt.categories.ids, ids).astype(np.int64)),
    ),
    "places by name": ("classes", _ids(_by_name)),
    "classes permuted": ("classes", _ids(_permuted)),
    "images shifted": ("images", _shifted_images),
    "images in the order of names": ("images", _ordered_like_names),
    "scores of 1": ("constant-scores", _scores(np.ones_like)),
    "logits": ("score-scale", _scores(lambda s: np.log((s + 1e-4) / (1.0002 - s)))),
    "percentages": ("score-scale", _scores(lambda s: 100 * s)),
    "lower is better": ("reversed-scores", _scores(lambda s: 1 - s)),
}
