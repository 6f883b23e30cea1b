"""`check` finds every problem of the input at once."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import lvdet
from files.annotation_files import coco, lvis
from files.record_files import Json, save
from oracles.cases import coco_case, lvis_case

FOUND: list[Json] = [
    {"image_id": 4, "category_id": 90, "bbox": [1, 2, 3, 4], "score": 0.5},
    {"image_id": 30, "category_id": 2, "bbox": [1, 2, 3, 4], "score": 0.25},
]


def check(folder: Path, content: Any, results: Any = None) -> list[tuple[str, int | None, str]]:
    """(table, row, what) of each problem, with a place in the file where that is known."""
    gt = save(folder / "gt.json", content)
    dt = None if results is None else save(folder / "dt.json", results)
    problems = lvdet.check(gt, dt)
    for problem in problems:
        assert len(str(problem).splitlines()) == 1
        assert "gt.json" in str(problem) or "dt.json" in str(problem)
        if problem.row is not None:
            assert f"row {problem.row:,}" in str(problem)
    return [(problem.table, problem.row, problem.what) for problem in problems]


@pytest.mark.parametrize("make", [coco, lvis])
def test_good_files(make: Any, tmp_path: Path) -> None:
    assert check(tmp_path, make()) == []
    assert check(tmp_path, make(), FOUND) == []
    assert check(tmp_path, make(), []) == []
    assert check(tmp_path, gzip.compress(json.dumps(make()).encode())) == []


@pytest.mark.parametrize("seed", range(12))
def test_good_random_files(seed: int, tmp_path: Path) -> None:
    content, results = (lvis_case if seed % 2 else coco_case)(seed, seed % 4 < 2, quirks=False)
    assert check(tmp_path, content, results) == []


def test_every_problem_of_the_results(tmp_path: Path) -> None:
    records: list[Json] = [dict(FOUND[0]) for _ in range(12)]
    records[1]["score"] = "high"
    records[2] = {"category_id": 1.5}
    records[4]["bbox"] = [1, 2, 3]
    records[6] |= {"score": None, "bbox": None}
    records[7]["segmentation"] = {"size": [50, 20], "counts": "~"}
    records[8]["segmentation"] = [[1, 2, 3]]
    records[10]["image_id"] = 2**70
    found = check(tmp_path, lvis(), records)
    assert [(row, what) for _, row, what in found][:11] == [
        (1, "score is a string, expected a number"),
        (2, "category_id is 1.5, expected an integer"),
        (2, "image_id is missing"),
        (2, "score is missing"),
        (2, "has neither bbox nor segmentation"),
        (4, "bbox has 3 numbers, expected 4 [x, y, w, h]"),
        (6, "bbox is null, expected a list of numbers"),
        (6, "score is null, expected a number"),
        (7, "RLE counts are corrupt (50 x 20)"),
        (8, "a polygon of segmentation has 3 numbers, expected at least 3 x, y points"),
        (10, f"image_id is {2**70}, expected an integer"),
    ]


def test_a_problem_is_told_once(tmp_path: Path) -> None:
    records = [FOUND[0], FOUND[0] | {"image_id": "x"}, FOUND[0] | {"category_id": None}]
    assert [(row, what) for _, row, what in check(tmp_path, lvis(), records)] == [
        (1, 'image_id "x" is neither an id nor a file name in the annotations'),
        (2, "category_id is null, expected an integer"),
    ]


def test_a_problem_of_a_class_is_told_once(tmp_path: Path) -> None:
    content = lvis()
    content["categories"][1]["frequency"] = None
    assert len(check(tmp_path, content)) == 1


def test_every_number_that_cannot_be(tmp_path: Path) -> None:
    records: list[Json] = [dict(FOUND[0]) for _ in range(7)]
    records[1]["score"] = float("nan")
    records[2]["bbox"] = [1, float("inf"), 3, 4]
    records[4]["bbox"] = [1, 2, -3, 4]
    records[6]["score"] = float("-inf")
    assert check(tmp_path, lvis(), records) == [
        ("", 1, "score is nan, expected a finite number"),
        ("", 2, "bbox is [1, inf, 3, 4], expected finite numbers"),
        ("", 4, "bbox is [1, 2, -3, 4], expected a non-negative width and height"),
        ("", 6, "score is -inf, expected a finite number"),
    ]


def test_results_that_do_not_belong_to_the_annotations(tmp_path: Path) -> None:
    records: list[Json] = [dict(FOUND[0]) for _ in range(8)]
    records[2]["image_id"] = records[5]["image_id"] = 555
    records[3]["image_id"] = -1
    records[4]["category_id"] = records[6]["category_id"] = records[7]["category_id"] = 77
    gt = tmp_path / "gt.json"
    assert sorted(check(tmp_path, lvis(), records)) == [
        ("", 2, f"image_id 555 is not in {gt} (2 detections)"),
        ("", 3, f"image_id -1 is not in {gt} (1 detection)"),
        ("", 4, f"category_id 77 is not in {gt} (3 detections)"),
    ]


def test_masks_of_another_size(tmp_path: Path) -> None:
    records: list[Json] = [dict(FOUND[0]) for _ in range(4)]
    records[1]["segmentation"] = {"size": [20, 50], "counts": [1000]}
    records[2]["segmentation"] = {"size": [50, 20], "counts": [1000]}
    records[3]["segmentation"] = {"size": [40, 60], "counts": [2400]}
    assert check(tmp_path, lvis(), records) == [
        ("", 1, "mask is 20 x 50, but image 4 is 50 x 20"),
        ("", 3, "mask is 40 x 60, but image 4 is 50 x 20"),
    ]


def test_every_problem_of_the_annotations(tmp_path: Path) -> None:
    content = lvis()
    content["annotations"][0]["bbox"] = [1, 2]
    content["annotations"][2] = {"id": "x"}
    content["images"][1]["height"] = -5
    content["categories"][2]["frequency"] = "q"
    assert sorted(check(tmp_path, content)) == [
        ("annotation", 0, "bbox has 2 numbers, expected 4 [x, y, w, h]"),
        *(("annotation", 2, f"{key} is missing") for key in ("area", "bbox", "category_id")),
        ("annotation", 2, "id is a string, expected an integer"),
        ("annotation", 2, "image_id is missing"),
        ("category", 2, 'frequency is not "r", "c" or "f"'),
        ("image", 1, "height is -5, expected 0 to 1,000,000"),
    ]


def test_ids_of_the_annotations(tmp_path: Path) -> None:
    content = lvis()
    content["annotations"] += [dict(content["annotations"][0]) for _ in range(2)]
    content["annotations"][3]["image_id"] = 99
    content["annotations"][4]["category_id"] = 98
    content["images"].append(content["images"][0])
    content["categories"].append(content["categories"][2])
    assert sorted(check(tmp_path, content)) == [
        ("annotation", 3, "image_id 99 is not in the file's list of images"),
        ("annotation", 4, "category_id 98 is not in the file's list of categories"),
        ("category", 3, "category id 90 occurs more than once"),
        ("image", 3, "image id 30 occurs more than once"),
    ]


def test_values_of_the_annotations(tmp_path: Path) -> None:
    content = lvis()
    content["annotations"] += [content["annotations"][0] | {"id": 50 + k} for k in range(3)]
    content["annotations"][1]["id"] = 11
    content["annotations"][3]["area"] = -1
    content["annotations"][4]["bbox"] = [0, 0, 1, float("nan")]
    content["annotations"][5]["segmentation"] = {"size": [5, 5], "counts": [25]}
    rows = [(row, what.split(",")[0]) for _, row, what in check(tmp_path, content)]
    assert rows == [
        (1, "annotation id 11 occurs more than once"),
        (3, "bbox is [1.5"),
        (4, "bbox is [0"),
        (5, "mask is 5 x 5"),
    ]


def test_both_files_at_once(tmp_path: Path) -> None:
    found = check(tmp_path, "[]", "{")
    assert [what for _, _, what in found] == [
        "this is a list, like a results file, expected an annotation file: an object with "
        "images, annotations and categories",
        "the file is truncated here",
    ]
    content = lvis()
    content["annotations"][0]["area"] = "x"
    found = check(tmp_path, content, [FOUND[0] | {"score": "x"}])
    assert [(table, row) for table, row, _ in found] == [("annotation", 0), ("", 0)]


def test_files_that_are_not_there(tmp_path: Path) -> None:
    problems = lvdet.check(tmp_path / "a.json", tmp_path / "b.json")
    assert len(problems) == 2
    assert "a.json" in str(problems[0])
    assert "b.json" in str(problems[1])


def test_all_shards_are_looked_at(tmp_path: Path) -> None:
    gt = save(tmp_path / "gt.json", lvis())
    folder = tmp_path / "results"
    folder.mkdir()
    save(folder / "1.json", FOUND)
    save(folder / "2.json", "[{}]")
    save(folder / "3.jsonl", "{}")
    save(folder / "4.parquet", "")
    save(folder / "5.json", [FOUND[0] | {"image_id": 5}])
    texts = [str(problem) for problem in lvdet.check(gt, folder)]
    for name in (
        "2.json, row 0",
        "3.jsonl, row 0",
        "4.parquet",
        "5.json, row 0: image_id 5 is not in",
    ):
        assert any(name in text for text in texts), texts
    assert not any("1.json" in text for text in texts)


def test_ten_thousand_problems_and_more(tmp_path: Path) -> None:
    records = [FOUND[0] | {"score": None}] * 12_000
    assert len(check(tmp_path, lvis(), records)) >= 10_000


def test_an_empty_segmentation_is_no_mask(tmp_path: Path) -> None:
    """As files of boxes write it."""
    content = lvis()
    for annotation in content["annotations"]:
        annotation["segmentation"] = []
    path = save(tmp_path / "gt.json", content)
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
    path = save(tmp_path / "gt.json", content)
    gt = lvdet.read_ground_truth(path, masks=False)
    dt = lvdet.read_detections(
        [{"image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 5], "score": 0.5}]
    )
    assert lvdet.evaluate(gt, dt)["old"].AP50 > 0.99
    assert lvdet.check(path) == []
    content["annotations"][0]["segmentation"] = [[0, 0, 5, 0, 5, 5]]
    save(path, content)
    assert any("height is missing" in str(problem) for problem in lvdet.check(path))


def test_an_empty_segmentation_is_no_mask_in_records_either() -> None:
    record = {"image_id": 1, "category_id": 1, "score": 0.5, "segmentation": []}
    assert lvdet.read_detections([record | {"bbox": [0, 0, 1, 1]}]).masks is None
    with pytest.raises(lvdet.InputError, match="neither bbox nor segmentation"):
        lvdet.read_detections([record])
