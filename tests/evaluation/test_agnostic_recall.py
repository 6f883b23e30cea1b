"""Class-agnostic recall, computed by hand."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lvdet
from cli.small_set import LVIS
from lvdet.files.detection_files import named_files, read_results
from lvdet.tables.results import Results
from tabled import read_case, write_case

Json = dict[str, Any]

#: A cat (rare, class 3) and a dog (common, class 4) in image 1.
CAT, DOG = [10, 10, 20, 20], [40, 40, 50, 50]


def found(image: int, category: int, bbox: list[int], score: float) -> Json:
    return {"image_id": image, "category_id": category, "bbox": bbox, "score": score}


def recall(
    folder: Path,
    results: list[Json],
    annotations: Json = LVIS,
    limit: int = 100,
    **options: Any,
) -> dict[str, float]:
    gt, dt = read_case(annotations, results, folder)
    result = lvdet.evaluate(gt, dt, protocols=[], agnostic_recall=[limit], **options)
    return dict(result.agnostic_recall[0])


def test_a_class_that_was_not_verified_finds_what_is_there(tmp_path: Path) -> None:
    """The cat is called a hot dog, of which image 1 says nothing."""
    ours = recall(tmp_path, [found(1, 9, CAT, 0.5), found(2, 9, DOG, 0.9)])
    assert ours["AR"] == 0.5
    assert (ours["ARr"], ours["ARc"]) == (1.0, 0.0)
    assert (ours["ARs"], ours["ARm"]) == (1.0, 0.0)
    assert math.isnan(ours["ARl"])
    assert math.isnan(ours["ARf"])


def test_a_limit_counts_all_classes(tmp_path: Path) -> None:
    """What overlaps nothing costs a place and no more."""
    results = [found(1, 9, [70, 0, 9, 9], 0.9), found(1, 3, CAT, 0.5), found(1, 4, DOG, 0.4)]
    assert [recall(tmp_path, results, limit=n)["AR"] for n in (1, 2, 3)] == [0.0, 0.5, 1.0]


def test_not_exhaustive_classes_change_nothing_and_ignored_objects_are_not_looked_for(
    tmp_path: Path,
) -> None:
    annotations = copy.deepcopy(LVIS)
    annotations["images"][0]["not_exhaustive_category_ids"] = [3, 4]
    annotations["annotations"][1]["ignore"] = 1
    ours = recall(tmp_path, [found(1, 4, CAT, 0.5)], annotations)
    assert (ours["AR"], ours["ARr"]) == (1.0, 1.0)
    assert math.isnan(ours["ARc"])


def test_among_objects_in_one_place_the_higher_class_wins(tmp_path: Path) -> None:
    """Whatever their order in the file: as pycocotools lists them, class by class."""
    annotations = copy.deepcopy(LVIS)
    cat, dog = annotations["annotations"]
    dog |= {"bbox": CAT, "area": 400}
    for order in ([cat, dog], [dog, cat]):
        annotations["annotations"] = order
        ours = recall(tmp_path, [found(1, 9, CAT, 0.5)], annotations)
        assert (ours["ARr"], ours["ARc"]) == (0.0, 1.0)


def test_only_some_classes(tmp_path: Path) -> None:
    """Detections and objects of others are taken away first, as under every protocol."""
    results = [found(1, 4, CAT, 0.9), found(1, 9, DOG, 0.5)]
    assert recall(tmp_path, results)["AR"] == 1.0
    assert recall(tmp_path, results, classes=["cat", "hot dog"])["AR"] == 0.0
    ours = recall(tmp_path, results[:1], groups={"pets": ["dog"], "sausages": ["hot dog"]})
    assert ours["AR_pets"] == 0.0
    assert math.isnan(ours["AR_sausages"])


def test_a_file_is_read_with_the_boxes_of_every_class(tmp_path: Path) -> None:
    """More images than those of which all boxes are kept anyway."""
    gt, dt = lvdet.simulate(images=260, classes=30, dets_per_image=20, seed=3)
    files = write_case(gt, dt, tmp_path)
    of_files, of_tables = (
        lvdet.evaluate(*pair, protocols=["old"], agnostic_recall=[5, 300])
        for pair in (files, (gt, dt))
    )
    assert 0 < of_tables.agnostic_recall[0].AR < of_tables.agnostic_recall[1].AR < 1
    assert of_files.to_dict()["agnostic_recall"] == of_tables.to_dict()["agnostic_recall"]
    unread = read_results(named_files(files[1]), gt)  # type: ignore[arg-type]
    assert isinstance(unread, Results)
    with pytest.raises(lvdet.InputError, match="read without the boxes of all classes"):
        lvdet.evaluate(gt, unread, agnostic_recall=[300])


def test_what_the_result_says(tmp_path: Path) -> None:
    gt, dt = read_case(LVIS, [found(1, 9, CAT, 0.5)], tmp_path)
    result = lvdet.evaluate(gt, dt, agnostic_recall=[300, 100])
    assert [one.budget for one in result.agnostic_recall] == ["300/image", "100/image"]
    assert result.to_dict()["agnostic_recall"][0] == {
        "budget": "300/image",
        "AR": 0.5,
        "ARs": 1.0,
        "ARm": 0.0,
        "ARl": None,
        "ARr": 1.0,
        "ARc": 0.0,
        "ARf": None,
    }
    *_, title, head, first, second = str(result).splitlines()
    assert title == "Class-agnostic recall, in percent"
    assert head.split() == ["budget", "AR", "ARs", "ARm", "ARr", "ARc"]
    assert first.split() == ["300/image", "50.00", "100.00", "0.00", "100.00", "0.00"]
    assert second.split()[0] == "100/image"
    assert repr(result).endswith("AR 300/image 50.00, 100/image 50.00)")
    assert "agnostic-recall" in result.to_latex()
    alone = lvdet.evaluate(gt, dt, protocols=[], agnostic_recall=[300])
    assert "AP" not in str(alone)
    assert "agnostic_recall" not in lvdet.evaluate(gt, dt).to_dict()
    with pytest.raises(AttributeError, match="no metric 'AP'"):
        _ = alone.agnostic_recall[0].AP


def test_a_truncated_file_misses_objects(tmp_path: Path) -> None:
    results = [
        found(image, 3, [x, y, 5, 5], 0.5) for image in (1, 2) for x in range(10) for y in range(10)
    ]
    gt, dt = read_case(LVIS, results, tmp_path)
    (warning,) = [
        text
        for text in lvdet.evaluate(gt, dt, protocols=[], agnostic_recall=[100, 1000]).warnings
        if "detections per image" in text
    ]
    assert "AR@1000 misses the dropped detections" in warning


@pytest.mark.parametrize("limit", [0.5, "300", None, True])
def test_limits_that_make_no_sense(limit: Any, tmp_path: Path) -> None:
    gt, dt = read_case(LVIS, [found(1, 3, CAT, 0.5)], tmp_path)
    with pytest.raises(lvdet.InputError, match="limit on detections is"):
        lvdet.evaluate(gt, dt, agnostic_recall=[limit])
    assert np.isfinite(lvdet.evaluate(gt, dt, agnostic_recall=[1]).agnostic_recall[0].AR)
