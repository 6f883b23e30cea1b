"""Results of transformers' post-processing, which are plain dicts of tensors."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lvdet.errors import InputError
from lvdet.integrations.transformers import TrainerMetrics, detections_from_transformers
from oracles.cases import coco_case


def results(rows: int) -> dict[str, torch.Tensor]:
    corners = torch.arange(4 * rows, dtype=torch.float32).reshape(rows, 4)
    return {"scores": torch.rand(rows), "labels": torch.arange(rows), "boxes": corners}


def test_a_row_per_detection() -> None:
    found = [results(2), results(0), results(1)]
    table = detections_from_transformers(found, torch.tensor([5, 6, 9]), class_ids={0: 8, 1: 3})
    assert table.image_ids[table.image].tolist() == [5, 5, 9]
    assert table.category_ids[table.category].tolist() == [8, 3, 8]
    np.testing.assert_array_equal(table.box, [[0, 1, 2, 2], [4, 5, 2, 2], [0, 1, 2, 2]])
    np.testing.assert_array_equal(table.score[:2], found[0]["scores"])


def test_nothing_found_is_an_empty_table() -> None:
    assert len(detections_from_transformers([results(0)], [1])) == 0
    assert len(detections_from_transformers([], [])) == 0


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (results(2) | {"labels": torch.zeros(3, dtype=torch.int64)}, "columns differ in length"),
        (results(2) | {"boxes": torch.zeros(2, 3)}, r"boxes are float32 with shape \(2, 3\)"),
        (results(2) | {"labels": torch.tensor([0.5, 1])}, "labels is 0.5, expected a 64-bit"),
        (results(2) | {"scores": torch.tensor([0.5, torch.nan])}, "score is nan"),
    ],
)
def test_what_makes_no_table(one: dict[str, torch.Tensor], says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        detections_from_transformers([one], [4])
    assert "\n" not in str(error.value)


def test_image_ids_are_integers() -> None:
    with pytest.raises(InputError, match="image id is 'a', expected an integer"):
        detections_from_transformers([results(1)], ["a"])


def test_images_need_a_size(tmp_path: Path) -> None:
    dataset, _ = coco_case(3, masks=False)
    for image in dataset["images"]:
        image.pop("height", None)
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(dataset))
    metrics = TrainerMetrics(
        path, SimpleNamespace(post_process_object_detection=lambda *_, **__: [])
    )
    labels = [{"image_id": np.array([dataset["images"][0]["id"]])}]
    output = (np.zeros((1, 2, 3)), np.zeros((1, 2, 4)))
    evaluation = SimpleNamespace(predictions=output, label_ids=labels)
    with pytest.raises(InputError, match="has no size"):
        metrics(evaluation)
