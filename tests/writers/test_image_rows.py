"""One image's detections, whatever a loop has them as."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lvdet.errors import InputError
from lvdet.tables.masks import RLE
from lvdet.writers.image_rows import (
    detection_table,
    image_boxes,
    image_masks,
    image_number,
    image_rows,
    labels_to_ids,
)

torch = pytest.importorskip("torch")


def test_sizes_are_exact_or_as_precise_as_the_corners() -> None:
    corners = torch.tensor([[0.1, 0.2, 100.7, 50.3]], dtype=torch.float32)
    exact = image_boxes(corners, "xyxy", "image 1")
    x1, y1, x2, y2 = corners[0].tolist()
    assert exact.tolist() == [[x1, y1, x2 - x1, y2 - y1]]
    rounded = image_boxes(corners, "xyxy", "image 1", rounded=True)
    sizes = (corners[:, 2:] - corners[:, :2]).tolist()
    assert rounded[:, 2:].tolist() == sizes
    assert (rounded != exact).any()
    assert rounded.dtype == exact.dtype == np.float64


@pytest.mark.parametrize("rounded", [False, True])
def test_small_integers_do_not_wrap_around(rounded: bool) -> None:
    corners = np.array([[200, 10, 100, 20]], dtype=np.uint8)
    assert image_boxes(corners, "xyxy", "image 1", rounded=rounded).tolist() == [
        [200, 10, -100, 10]
    ]


@pytest.mark.parametrize("empty", [[], np.zeros((0, 4)), np.zeros(0), torch.zeros(0, 4)])
@pytest.mark.parametrize("box_format", ["xywh", "xyxy", "cxcywh"])
def test_no_detections(empty: Any, box_format: str) -> None:
    rows = image_rows([], empty, [], source="image 1", box_format=box_format)
    assert len(rows) == 0
    assert rows.box.shape == (0, 4)


@pytest.mark.parametrize(
    "masks",
    [
        [{"size": [2, 3], "counts": [1, 2, 3]}],
        np.array([[[0, 1, 0], [1, 0, 0]]], dtype=bool),
        np.array([[[0, 255, 0], [1, 0, 0]]], dtype=np.uint8),
        torch.tensor([[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]]),
        [torch.tensor([[0, 1, 0], [1, 0, 0]])],
        (np.array([[0.0, 1, 0], [1, 0, 0]]),),
    ],
    ids=["run lengths", "bool", "uint8", "floats", "list of tensors", "tuple of floats"],
)
def test_one_mask_in_every_form(masks: Any) -> None:
    found = image_masks(masks, 1, "image 1")
    assert found.kind.tolist() == [RLE]
    assert found.row(0) == b"123"
    again = image_masks(found, 1, "image 1", np.array([0]))
    assert again.row(0) == b"123"
    assert len(image_masks(masks, 1, "image 1", np.zeros(0, np.int64))) == 0


@pytest.mark.parametrize("form", [np.asarray, torch.tensor, list])
def test_masks_of_some_rows(form: Any) -> None:
    pixels = np.zeros((4, 2, 3), dtype=bool)
    pixels[[0, 1, 2, 3], [0, 1, 0, 1], [0, 0, 1, 1]] = True
    found = image_masks(form(pixels), 4, "image 1", np.array([1, 3]))
    assert [found.row(row) for row in range(len(found))] == [b"114", b"312"]


@pytest.mark.parametrize("given", [7, np.int32(7), [7], np.array([7]), torch.tensor([[7]])])
def test_ids_of_images(given: Any) -> None:
    assert image_number(given) == 7


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([7, 8], "frames: image_id has 2 values, expected one"),
        ([], "frames: image_id has 0 values, expected one"),
        (7.0, "frames: image_id is 7.0, expected an integer"),
        (None, "frames: image_id is None, expected an integer"),
        (True, "frames: image_id is True, expected an integer"),
        (2**63, "frames: image_id is 9223372036854775808, expected an integer"),
    ],
)
def test_what_identifies_no_image(given: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        image_number(given, "frames")
    assert str(caught.value) == says


@pytest.mark.parametrize(
    "class_ids", [[40, 50, 60], (40, 50, 60), np.array([40, 50, 60]), {0: 40, 1: 50, 2: 60}]
)
def test_class_ids_of_labels(class_ids: Any) -> None:
    assert labels_to_ids(torch.tensor([2, 0, 2]), class_ids, "image 1").tolist() == [60, 40, 60]
    for label in (3, -1):
        with pytest.raises(InputError, match=f"^image 1: label {label}[, ]"):
            labels_to_ids([0, label], class_ids, "image 1")


BOX = [[0.0, 0.0, 1.0, 1.0]]


@pytest.mark.parametrize(
    ("labels", "boxes", "scores", "says"),
    [
        ([1], None, [0.5], "image 1: detections need boxes or masks"),
        ([1], BOX, None, "image 1, row 0: score is nan, expected a finite number"),
        ([1], BOX, [[0.5]], "image 1: score has shape (1, 1), expected (n,)"),
        ([1, 2], [[0, 0, 1, 1], [0]], [0.5] * 2, "image 1: box is not a list of numbers: setting"),
        ([1], [BOX], [0.5], "image 1: box has shape (1, 1, 4), expected (n, 4)"),
        ([1, 2], BOX, [0.5, 0.5], "image 1: 1 box for 2 labels"),
        ([1, 2], BOX * 2, [0.5] * 3, "image 1: 3 scores for 2 labels"),
        ([1, 2], BOX, [0.5] * 3, "image 1: 1 box and 3 scores for 2 labels"),
    ],
)
def test_what_is_no_image(labels: Any, boxes: Any, scores: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        image_rows(labels, boxes, scores, source="image 1")
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_images_as_a_table() -> None:
    masks = np.ones((2, 4, 5), dtype=bool)
    both = image_rows([3, 4], BOX * 2, [0.5, 0.25], masks, source="image 9")
    none = image_rows([], [], [], source="image 8")
    table = detection_table([9, 8], [both, none], "frames")
    assert table.image_ids[table.image].tolist() == [9, 9]
    assert table.box.tolist() == BOX * 2
    assert table.masks is not None
    of_masks = detection_table([9], [both], "frames", from_masks=True)
    assert of_masks.box.tolist() == [[0, 0, 5, 4]] * 2
    bare = image_rows([3], BOX, [0.5], source="image 7")
    with pytest.raises(InputError, match="frames: some images have masks, others have none"):
        detection_table([9, 7], [both, bare], "frames")
