"""What an image of a loop may hold: messages name the image and the key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lvdet
from lvdet.errors import InputError

SQUARE = np.zeros((1, 6, 8))
SQUARE[0, 1:4, 2:6] = 1
TARGET = {"image_id": 7, "boxes": [[2.0, 1, 6, 4]], "labels": [3]}
FOUND = TARGET | {"scores": [0.5]}


@pytest.mark.parametrize(
    ("found", "target", "says"),
    [
        (FOUND, None, "without gt, each image needs a target"),
        (5, TARGET, "predictions of image 7: of type int, expected a mapping"),
        (TARGET, TARGET, "predictions of image 7: has no 'scores'"),
        (FOUND, {"image_id": 7, "labels": [3]}, "target of image 7: has no 'boxes'"),
        (FOUND | {"scores": [0.5, 1]}, TARGET, "predictions of image 7: 2 scores for 1 label"),
        (FOUND, TARGET | {"area": [np.inf]}, "target of image 7: area is not finite"),
        (FOUND, TARGET | {"area": [1.0, 2]}, r"area has shape \(2,\), expected \(1,\)"),
        (FOUND, TARGET | {"boxes": [[1.0, 2, 3]]}, r"box has shape \(1, 3\), expected"),
        (FOUND, TARGET | {"labels": [3, 4]}, "target of image 7: 1 box for 2 labels"),
    ],
)
def test_what_is_refused(found: Any, target: Any, says: str) -> None:
    metric = lvdet.DetectionMetric()
    with pytest.raises(InputError, match=says) as error:
        metric.update([found], None if target is None else [target])
    assert "\n" not in str(error.value)


def test_masks_of_an_image_have_one_size() -> None:
    metric = lvdet.DetectionMetric(iou="segm")
    small = FOUND | {"masks": SQUARE[:, :5].astype(bool)}
    with pytest.raises(InputError, match="5 x 8 and 6 x 8"):
        metric.update([small], [TARGET | {"masks": SQUARE.astype(bool)}])


def test_pixels_may_be_floats_of_0_and_1() -> None:
    numbers = []
    for pixels in (SQUARE, SQUARE.astype(bool)):
        metric = lvdet.DetectionMetric(iou="segm")
        metric.update([FOUND | {"masks": pixels}], [TARGET | {"masks": pixels}])
        numbers.append(metric.compute()["fixed"].AP)
    assert numbers == [pytest.approx(1.0)] * 2
