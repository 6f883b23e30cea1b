"""To and from supervision's own `Detections`."""

from __future__ import annotations

import numpy as np
import pytest
import supervision as sv

import lvdet
from lvdet.errors import InputError
from lvdet.integrations.supervision import detections_from_supervision, detections_to_supervision

pytestmark = pytest.mark.frameworks


def made(rows: int, seed: int, masks: bool) -> sv.Detections:
    rng = np.random.default_rng(seed)
    corner = rng.integers(0, 30, (rows, 2)).astype(np.float32)
    return sv.Detections(
        xyxy=np.concatenate([corner, corner + rng.integers(1, 9, (rows, 2))], axis=1),
        confidence=rng.random(rows).astype(np.float32),
        class_id=rng.integers(0, 3, rows),
        mask=rng.random((rows, 40, 50)) < 0.3 if masks else None,
    )


@pytest.mark.parametrize("masks", [False, True])
def test_there_and_back(masks: bool) -> None:
    images = {7: made(5, 1, masks), 3: sv.Detections.empty(), 4: made(2, 2, masks)}
    table = detections_from_supervision(images)
    assert len(table) == 7
    assert (table.masks is not None) == masks
    for image_id, one in images.items():
        back = detections_to_supervision(table, image_id)
        np.testing.assert_array_equal(back.xyxy, one.xyxy)
        np.testing.assert_array_equal(back.confidence, one.confidence)
        np.testing.assert_array_equal(back.class_id, one.class_id)
        if masks and len(one):
            np.testing.assert_array_equal(back.mask, one.mask)


def test_class_ids_and_names() -> None:
    gt, _ = lvdet.simulate(images=3, classes=5, seed=1)
    table = detections_from_supervision([(1, made(4, 1, False))], class_ids=gt.categories.ids)
    expected = gt.categories.ids[made(4, 1, False).class_id]
    back = detections_to_supervision(table, 1, gt.categories)
    np.testing.assert_array_equal(back.class_id, expected)
    names = dict(zip(gt.categories.ids.tolist(), gt.categories.names, strict=True))
    assert back["class_name"].tolist() == [names[one] for one in expected]


def test_compact_masks_are_pixels_too() -> None:
    one = made(3, 1, True)
    pixels = one.mask
    boxes = sv.mask_to_xyxy(pixels)
    compact = sv.CompactMask.from_dense(pixels, boxes, image_shape=pixels.shape[1:])
    table = detections_from_supervision(
        {
            1: sv.Detections(
                xyxy=boxes, mask=compact, confidence=one.confidence, class_id=one.class_id
            )
        }
    )
    np.testing.assert_array_equal(detections_to_supervision(table, 1).mask, pixels)


def test_what_is_missing_is_said() -> None:
    one = made(2, 1, False)
    one.confidence = None
    with pytest.raises(InputError, match="supervision, image 5: confidence is None"):
        detections_from_supervision({5: one})
    with pytest.raises(
        InputError, match=r"image 5: label \d, expected 0 to 0, an index into the class ids"
    ):
        detections_from_supervision({5: made(9, 1, False)}, class_ids=[4])
