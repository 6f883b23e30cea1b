"""Detects boxes that fit only in another format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.files.box_formats import from_format, normalized
from lvdet.plausibility.finding import Finding
from lvdet.plausibility.image_sample import Objects, Sample
from lvdet.plausibility.pairing import Pairing
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Results

_Boxes: TypeAlias = NDArray[np.float64]
#: Number of detections used per image, the highest-scored ones.
_PER_IMAGE = 40
#: If this share of the objects is found, boxes are correct.
_FINE = 0.5
#: If more than this share is found, boxes have the right size.
_LITTLE = 0.2
#: Number of images on which all readings are tried.
_FEW_IMAGES = 30
#: Another reading has to find this share of the objects, …
_SHARE = 0.25
#: … including this many, and this share, that the boxes as given miss, …
_GAIN, _GAIN_SHARE = 12, 0.15
#: … and this many times as many as it loses of those found as given.
_RATIO = 6
#: Sides that networks resize images to.
_SIDES = (320, 384, 416, 448, 480, 512, 544, 576, 608, 640, 672, 736, 768, 800, 832, 896, 960,
          1024, 1152, 1280, 1333, 1536)  # fmt: skip
_FACTORS = (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)
#: Minimum number and share of boxes whose centre is outside their image. Detectors clip their
#: boxes, or place the centres inside.
_OUTSIDE, _OUTSIDE_SHARE = 20, 0.02


class Reading(NamedTuple):
    """A way to interpret boxes.

    name:   "as given" or another, such as "read as corners"
    boxes:  x, y, w, h from the file's four numbers and the sizes (width, height) of the images
    format: the format with which `convert` repairs such a file, "" if it cannot
    """

    name: str
    boxes: Callable[[_Boxes, _Boxes], _Boxes]
    format: str = ""


def _read(name: str, box: _Boxes, size: _Boxes) -> _Boxes:
    return from_format(name, box, size)


def _columns(places: list[int], name: str, box: _Boxes, size: _Boxes) -> _Boxes:
    return from_format(name, box[:, places])


def _mirrored(box: _Boxes, size: _Boxes) -> _Boxes:
    found = box.copy()
    found[:, 0] = size[:, 0] - box[:, 0] - box[:, 2]
    return found


def _upside_down(box: _Boxes, size: _Boxes) -> _Boxes:
    found = box.copy()
    found[:, 1] = size[:, 1] - box[:, 1] - box[:, 3]
    return found


def _scaled(factor: float, box: _Boxes, size: _Boxes) -> _Boxes:
    found: _Boxes = box * factor
    return found


def _of_longer_side(side: int, box: _Boxes, size: _Boxes) -> _Boxes:
    found: _Boxes = box * size.max(axis=1, keepdims=True) / side
    return found


def _of_shorter_side(side: int, longest: int, box: _Boxes, size: _Boxes) -> _Boxes:
    factor = np.minimum(side / size.min(axis=1), longest / size.max(axis=1))
    found: _Boxes = box / factor[:, None]
    return found


def _of_square(side: int, box: _Boxes, size: _Boxes) -> _Boxes:
    found: _Boxes = box * np.tile(size, 2) / side
    return found


def _of_letterbox(side: int, box: _Boxes, size: _Boxes) -> _Boxes:
    factor = side / size.max(axis=1, keepdims=True)
    pad = (side - size * factor) / 2
    found: _Boxes = np.concatenate([box[:, :2] - pad, box[:, 2:]], axis=1) / factor
    return found


_AS_GIVEN = Reading("as given", partial(_read, "xywh"))
_PLAIN = (
    Reading("read as corners [x1, y1, x2, y2]", partial(_read, "xyxy"), "xyxy"),
    Reading("read as centres [cx, cy, w, h]", partial(_read, "cxcywh"), "cxcywh"),
    Reading("read as [y, x, h, w]", partial(_columns, [1, 0, 3, 2], "xywh")),
    Reading("read as [y1, x1, y2, x2]", partial(_columns, [1, 0, 3, 2], "xyxy")),
    Reading("read as [x, y, h, w]", partial(_columns, [0, 1, 3, 2], "xywh")),
    Reading("read as [y, x, w, h]", partial(_columns, [1, 0, 2, 3], "xywh")),
    Reading("mirrored left to right", _mirrored),
    Reading("turned upside down", _upside_down),
)
_FRACTIONS = (
    Reading("read as fractions of the image", partial(_read, "xywhn"), "xywhn"),
    Reading("read as corners in fractions of the image", partial(_read, "xyxyn"), "xyxyn"),
    Reading("read as centres in fractions of the image", partial(_read, "cxcywhn"), "cxcywhn"),
)


def _resized() -> Iterator[Reading]:
    """Pixels of resized images."""
    for factor in _FACTORS:
        yield Reading(f"multiplied by {factor:g}", partial(_scaled, factor))
    for side in _SIDES:
        yield Reading(
            f"read as pixels of images resized to {side} on the longer side",
            partial(_of_longer_side, side),
        )
        yield Reading(
            f"read as pixels of images stretched to {side} × {side}", partial(_of_square, side)
        )
        yield Reading(
            f"read as pixels of images letterboxed to {side} × {side}",
            partial(_of_letterbox, side),
        )
    for side, longest in ((600, 1000), (640, 1333), (800, 1333), (1024, 1333), (800, 1440)):
        yield Reading(
            f"read as pixels of images resized to {longest} × {side}",
            partial(_of_shorter_side, side, longest),
        )


class _Trial:
    """The highest-scored detections of a sample, to be interpreted in many ways."""

    def __init__(self, gt: GroundTruth, sample: Sample, objects: Objects) -> None:
        self._gt, self._box = gt, sample.box
        self._size = _sizes(gt, sample)
        self._pairing = Pairing.of(sample, objects, sample.images)

    def found(self, reading: Reading) -> NDArray[np.bool_]:
        """[G] the objects found under this reading, whatever their class."""
        box = reading.boxes(self._box, self._size)
        box[:, 2:] = np.maximum(box[:, 2:], 0)  # negative sides are another format's
        return self._pairing.found(self._pairing.overlapping(self._gt, box))


def misread_boxes(
    gt: GroundTruth, results: Results, sample: Sample, objects: Objects
) -> Finding | None:
    """Whether boxes fit only in another reading, judged on a sample of verified detections."""
    top = sample.where(sample.row_rank < _PER_IMAGE)
    trial = _Trial(gt, top, objects)
    given = trial.found(_AS_GIVEN)
    if not len(given) or given.mean() >= _FINE:
        return None
    small = len(top.box) >= _OUTSIDE and float(np.abs(top.box).max(initial=0)) <= 2
    rest = _resized() if given.mean() < _LITTLE else ()
    # A few images show which readings deserve more.
    few = _Trial(gt, top.where(top.row_image < _FEW_IMAGES).first(_FEW_IMAGES), objects)
    before = few.found(_AS_GIVEN)
    promising = [
        reading
        for reading in (_FRACTIONS if small else (*_PLAIN, *rest))
        if few.found(reading).sum() >= before.sum() + 0.05 * len(before)
    ]
    best: tuple[float, Reading] | None = None
    for reading in promising:
        read = trial.found(reading)
        share = float(read.mean())
        gain, loss = int((read & ~given).sum()), int((given & ~read).sum())
        if gain < max(_GAIN, _GAIN_SHARE * len(given), _RATIO * loss) or share < _SHARE:
            continue
        if best is None or share > best[0]:
            best = share, reading
    if best is None:
        return None
    share, reading = best
    source = results.source
    if reading.format:
        sizes = f" --images {gt.source}" if normalized(reading.format) else ""
        remedy = (
            f"Repair it with: lvdet convert {source} -o FIXED.json "
            f"--box-format {reading.format}{sizes}."
        )
    else:
        remedy = "Write boxes as [x, y, width, height] in pixels of the original image."
    as_given = float(given.mean())
    return Finding(
        "boxes",
        len(given),
        {"objects": len(given), "found_as_given": as_given, "found_otherwise": share},
        f"The boxes in {source} fit only when {reading.name}: {share:.1%} of {len(given):,} "
        f"objects in {len(top.images):,} sampled images are found that way, {as_given:.1%} as "
        "given.",
        remedy,
    )


def boxes_outside(gt: GroundTruth, results: Results, sample: Sample) -> Finding | None:
    """Whether the centres of many boxes lie outside their images, judged on a sample of verified
    detections."""
    size = _sizes(gt, sample)
    centre = sample.box[:, :2] + sample.box[:, 2:] / 2
    beyond = (centre < 0) | ((centre > size) & (size > 0))  # 0 where the size is not known
    outside: NDArray[np.bool_] = np.any(beyond, axis=1)
    count = int(outside.sum())
    if count < _OUTSIDE or count < _OUTSIDE_SHARE * len(outside):
        return None
    return Finding(
        "boxes-outside",
        count,
        {"boxes": len(outside), "outside": count},
        f"{count:,} of {len(outside):,} boxes of {results.source} on {len(sample.images):,} "
        "images have their centre outside their image.",
        "Write boxes as [x, y, width, height] in pixels of the original image.",
    )


def _sizes(gt: GroundTruth, sample: Sample) -> _Boxes:
    """[R, 2] width and height of the image of each detection."""
    image = sample.images[sample.row_image]
    sizes: _Boxes = np.stack([gt.images.width[image], gt.images.height[image]], axis=1).astype(
        np.float64
    )
    return sizes
