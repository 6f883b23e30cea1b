"""Results of transformers' post-processing, which are plain dicts of tensors."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import lvdet
from lvdet.errors import InputError
from lvdet.integrations.transformers import (
    TrainerMetrics,
    detections_from_transformers,
    ground_truth_from_transformers,
)
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


def test_sizes_are_as_precise_as_the_model_s_boxes() -> None:
    corners = torch.tensor([[0.1, 0.2, 100.7, 50.3]])
    one = {"scores": torch.rand(1), "labels": torch.zeros(1, dtype=torch.int64), "boxes": corners}
    table = detections_from_transformers([one], [5])
    assert table.box[0, 2:].tolist() == (corners[0, 2:] - corners[0, :2]).tolist()


def test_nothing_found_is_an_empty_table() -> None:
    assert len(detections_from_transformers([results(0)], [1])) == 0
    assert len(detections_from_transformers([], [])) == 0


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (results(2) | {"labels": torch.arange(3)}, "image 4: 2 boxes and 2 scores for 3 labels"),
        (results(2) | {"boxes": torch.zeros(2, 3)}, r"box has shape \(2, 3\), expected \(n, 4\)"),
        (results(2) | {"labels": torch.tensor([0.5, 1])}, "row 0: label is 0.5, expected a 64-bit"),
        (results(2) | {"scores": torch.tensor([0.5, torch.nan])}, "score is nan"),
    ],
)
def test_what_makes_no_table(one: dict[str, torch.Tensor], says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        detections_from_transformers([one], [4])
    assert "\n" not in str(error.value)


def test_image_ids_are_integers() -> None:
    with pytest.raises(InputError, match="image_id is 'a', expected an integer"):
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


def test_the_metrics_are_those_of_a_table_and_keep_what_the_budgets_need(tmp_path: Path) -> None:
    """Batch by batch, with an image that comes again, and labels that are not class ids."""
    gt, dt = lvdet.simulate(images=400, classes=4, dets_per_image=10, seed=3)
    class_ids = gt.categories.ids.tolist()
    found = {}
    for image in gt.images.ids.tolist():
        rows = dt[dt.image_ids[dt.image] == image]
        box = torch.tensor(rows.box)
        box[:, 2:] += box[:, :2]
        labels = [class_ids.index(one) for one in rows.category_ids[rows.category]]
        scores = torch.tensor(rows.score)
        found[image] = {"boxes": box, "scores": scores, "labels": torch.tensor(labels)}
    batches = [[*found][begin : begin + 3] for begin in range(0, len(found), 3)]
    shown = iter([*batches, batches[0]])
    processor = SimpleNamespace(
        post_process_object_detection=lambda *_, **__: [found[one] for one in next(shown)]
    )
    metrics = TrainerMetrics(
        *(gt, processor), class_ids=class_ids, protocols=["fixed"], dets_per_class=50
    )
    for batch in [*batches, batches[0]]:
        output = (np.zeros((len(batch), 2, 3)), np.zeros((len(batch), 2, 4)))
        labels = [{"image_id": torch.tensor([one])} for one in batch]
        given = SimpleNamespace(predictions=output, label_ids=labels)
        assert metrics(given, compute_result=False) == {}
    assert len(metrics._metric.partial()) < 0.7 * len(dt)  # 200 images are kept whole
    shown = iter([batches[1]])
    output = (np.zeros((3, 2, 3)), np.zeros((3, 2, 4)))
    labels = [{"image_id": one} for one in batches[1]]
    numbers = metrics(SimpleNamespace(predictions=output, label_ids=labels))
    table = detections_from_transformers([*found.values()], found, class_ids=class_ids)
    expected = lvdet.evaluate(gt, table, protocols=["fixed"], dets_per_class=50)
    assert numbers["fixed_AP"] == pytest.approx(expected["fixed"].AP, abs=1e-12)
    assert metrics.result is not None
    assert any("given again" in one for one in metrics.result.warnings)
    shown = iter([batches[1]])
    metrics(SimpleNamespace(predictions=output, label_ids=labels))  # nothing is left of the first
    assert metrics.result.inputs["detection_count"] == sum(
        len(found[one]["scores"]) for one in batches[1]
    )
    assert not any("given again" in one for one in metrics.result.warnings)


@pytest.mark.parametrize("class_ids", [np.array([7, 9, 11]), [7, 9, 11], {0: 7, 1: 9, 5: 11}])
def test_class_ids_of_annotations(class_ids: object) -> None:
    target = {
        "image_id": torch.tensor([3]),
        "orig_size": torch.tensor([100, 120]),
        "class_labels": torch.tensor([1, 0]),
        "boxes": torch.tensor([[0.5, 0.5, 0.1, 0.2]] * 2),
    }
    gt = ground_truth_from_transformers([target], class_ids=class_ids)  # type: ignore[arg-type]
    assert gt.categories.ids.tolist() == [7, 9, 11]
    assert gt.categories.ids[gt.category].tolist() == [9, 7]
    wrong = target | {"class_labels": torch.tensor([3, 0])}
    with pytest.raises(InputError, match="transformers, image 3: label 3"):
        ground_truth_from_transformers([wrong], class_ids=class_ids)  # type: ignore[arg-type]
    short = target | {"class_labels": torch.tensor([1])}
    with pytest.raises(InputError, match="transformers, image 3: 2 boxes for 1 label"):
        ground_truth_from_transformers([short])


def label(image: int, **more: object) -> dict[str, object]:
    """Two objects in an image of 20 x 40 pixels, which the processor halved."""
    return {
        "image_id": torch.tensor([image]),
        "orig_size": torch.tensor([20, 40]),
        "class_labels": torch.tensor([1, 0]),
        "boxes": torch.tensor([[0.5, 0.5, 0.5, 0.5], [0.125, 0.25, 0.25, 0.5]]),
        **more,
    }


def test_labels_are_annotations() -> None:
    gt = ground_truth_from_transformers([label(9), label(4)], class_ids={0: 7, 1: 3})
    assert gt.images.ids.tolist() == [4, 9]
    assert (gt.images.height[0], gt.images.width[0]) == (20, 40)
    assert gt.categories.ids.tolist() == [3, 7]
    assert gt.images.ids[gt.image].tolist().count(9) == 2
    of_nine = gt.image == 1
    assert gt.box[of_nine].tolist() == [[10, 5, 20, 10], [0, 0, 10, 10]]
    assert gt.area[of_nine].tolist() == [200, 100]
    assert gt.categories.ids[gt.category[of_nine]].tolist() == [3, 7]
    assert not gt.crowd.any()
    assert not gt.federated


def test_areas_are_those_of_the_original_image() -> None:
    scaled = {"size": torch.tensor([10, 20]), "area": torch.tensor([30.0, 12.5])}
    gt = ground_truth_from_transformers([label(1, **scaled, iscrowd=torch.tensor([0, 1]))])
    assert gt.area.tolist() == [120, 50]
    assert gt.crowd.tolist() == [False, True]
    assert gt.categories.ids.tolist() == [0, 1]


def test_metrics_of_batches_are_those_of_the_table() -> None:
    """What a processor makes of the output is evaluated as lvdet evaluates the same table."""
    gt = ground_truth_from_transformers([label(1), label(2)])

    def post_process(output: object, threshold: float, target_sizes: torch.Tensor) -> list[object]:
        assert threshold == 0
        assert target_sizes.tolist() == [[20, 40]]
        return [
            {
                "scores": torch.tensor([0.9, 0.6]),
                "labels": torch.tensor([1, 0]),
                "boxes": torch.tensor([[10.0, 5, 30, 15], [20.0, 0, 30, 10]]),
            }
        ]

    metrics = TrainerMetrics(gt, SimpleNamespace(post_process_object_detection=post_process))
    output = (np.zeros((1, 2, 3)), np.zeros((1, 2, 4)))
    first, second = (SimpleNamespace(predictions=output, label_ids=[label(n)]) for n in (1, 2))
    assert metrics(first, compute_result=False) == {}
    found = metrics(second)
    # One class is found in every image and the other in none.
    assert found["fixed_AP"] == pytest.approx(0.5)
    assert found["old_AP50"] == pytest.approx(0.5)
    assert "old_APr" not in found
    assert metrics.result is not None
    assert found["fixed_AP"] == metrics.result["fixed"].AP
    # The next evaluation begins anew: of two objects it finds one, which is recall 0 to 50 of 101.
    assert metrics(first)["fixed_AP"] == pytest.approx(51 / 101 / 2)


def test_what_cannot_be_evaluated_in_a_trainer() -> None:
    gt = ground_truth_from_transformers([label(1)])
    metrics = TrainerMetrics(gt, SimpleNamespace(post_process_object_detection=None))
    good = (np.zeros((1, 2, 3)), np.zeros((1, 2, 4)))
    with pytest.raises(InputError, match="has no image 5"):
        metrics(SimpleNamespace(predictions=good, label_ids=[label(5)]))
    for arrays, shapes in ((good[:1], r"\(1, 2, 3\)"), ((), "none")):
        with pytest.raises(
            InputError, match=f"no logits and boxes among arrays of shapes {shapes}"
        ):
            metrics(SimpleNamespace(predictions=arrays, label_ids=[label(1)]))
    with pytest.raises(InputError, match="1 results for 2 image ids"):
        detections_from_transformers([results(1)], [1, 2])
