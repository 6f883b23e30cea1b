"""`check` tells all that is wrong in one go."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

import lvdet
from files.annotation_files import lvis


def test_all_kinds_of_problems_at_once(tmp_path: Path) -> None:
    content = copy.deepcopy(lvis())
    good = content["annotations"][0]
    next_id = 1 + max(a["id"] for a in content["annotations"])
    first = len(content["annotations"])
    content["annotations"] += [
        good | {"id": next_id, "bbox": [1, 2, 3]},
        dict(good),
        good | {"id": next_id + 1, "category_id": 99_999},
        good | {"id": next_id + 2, "area": -1.0},
        good | {"id": next_id + 3, "image_id": 77_777},
    ]
    content["images"].append(dict(content["images"][0]))
    gt, dt = tmp_path / "gt.json", tmp_path / "dt.json"
    gt.write_text(json.dumps(content))
    record = {"image_id": good["image_id"], "category_id": good["category_id"], "score": 0.5}
    dt.write_text(
        json.dumps([record, record | {"bbox": [1, 1, 1, 1], "image_id": 88_888}, {"score": 1}])
    )
    told = [str(problem) for problem in lvdet.check(gt, dt)]
    expected = [
        (f"annotation row {first},", "bbox has 3 numbers"),
        (f"annotation row {first + 1}:", "occurs more than once"),
        (f"annotation row {first + 2}:", "category_id 99999 is not in"),
        (f"annotation row {first + 3}:", "area -1"),
        (f"annotation row {first + 4}:", "image_id 77777 is not in"),
        ("image row", "occurs more than once"),
        ("dt.json, row 0", "neither bbox nor segmentation"),
        ("dt.json, row 1", "image_id 88888 is not in"),
        ("dt.json, row 2", "there is no image_id"),
    ]
    for place, what in expected:
        assert [t for t in told if place in t and what in t], (place, what, told)


def test_an_empty_segmentation_is_no_mask(tmp_path: Path) -> None:
    """As files of boxes write it."""
    content = copy.deepcopy(lvis())
    for annotation in content["annotations"]:
        annotation["segmentation"] = []
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(content))
    assert lvdet.check(path) == []
    assert lvdet.read_ground_truth(path).masks is None


def test_boxes_need_no_image_size_in_coco_files(tmp_path: Path) -> None:
    content = {
        "images": [{"id": 1}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "area": 25}
        ],
    }
    path = tmp_path / "gt.json"
    path.write_text(json.dumps(content))
    gt = lvdet.read_ground_truth(path, masks=False)
    dt = lvdet.read_detections(
        [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "score": 0.5}]
    )
    assert lvdet.evaluate(gt, dt)["old"].AP50 > 0.99
    assert lvdet.check(path) == []
    content["annotations"][0]["segmentation"] = [[0, 0, 5, 0, 5, 5]]
    path.write_text(json.dumps(content))
    assert any("there is no height" in str(problem) for problem in lvdet.check(path))


def test_an_empty_segmentation_is_no_mask_in_records_either() -> None:
    record = {"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": []}
    assert lvdet.read_detections([record | {"bbox": [0, 0, 1, 1]}]).masks is None
    with pytest.raises(lvdet.InputError, match="neither bbox nor segmentation"):
        lvdet.read_detections([record])
