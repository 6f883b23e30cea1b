"""What is an error where only some classes were looked for: cases computed by hand."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import lvdet
from diagnosis.error_sets import Json, kinds_by_row
from tabled import read_case

#: A cat at the left, a dog at the right; nobody looked for a fox, and horses are known absent.
IMAGE: Json = {
    "id": 1,
    "height": 100,
    "width": 200,
    "neg_category_ids": [3],
    "not_exhaustive_category_ids": [],
}
CAT, DOG, HORSE, FOX = 1, 2, 3, 4
CATEGORIES = [
    {"id": CAT, "name": "cat", "frequency": "r"},
    {"id": DOG, "name": "dog", "frequency": "f"},
    {"id": HORSE, "name": "horse", "frequency": "f"},
    {"id": FOX, "name": "fox", "frequency": "c"},
]
LEFT, RIGHT, NOWHERE = [10, 10, 40, 40], [110, 10, 40, 40], [160, 60, 20, 20]


def thing(number: int, category: int, box: list[int], **more: int) -> Json:
    area = box[2] * box[3]
    return {"id": number, "image_id": 1, "category_id": category, "bbox": box, "area": area} | more


def said(category: int, box: list[float], score: float) -> Json:
    return {"image_id": 1, "category_id": category, "bbox": box, "score": score}


OBJECTS = [thing(1, CAT, LEFT), thing(2, DOG, RIGHT)]


def diagnosed(
    folder: Path,
    *results: Json,
    objects: list[Json] = OBJECTS,
    image: Json = IMAGE,
    coco: bool = False,
    **options: object,
) -> tuple[list[str], lvdet.Diagnosis]:
    if coco:
        image = {name: image[name] for name in ("id", "height", "width")}
    content = {"images": [image], "categories": CATEGORIES, "annotations": objects}
    gt, dt = read_case(content, list(results), folder)
    found = lvdet.diagnose(gt, dt, **options)  # type: ignore[arg-type]
    return kinds_by_row(found, len(results)), found


@pytest.mark.parametrize(
    ("category", "box", "kind"),
    [
        (CAT, LEFT, "right"),
        (FOX, LEFT, "not counted"),  # nobody looked for foxes: it may be one
        (FOX, NOWHERE, "not counted"),
        (HORSE, LEFT, "classification"),  # known absent: it is the cat
        (DOG, LEFT, "classification"),
        (HORSE, NOWHERE, "background"),
        (CAT, NOWHERE, "background"),
        (HORSE, [10, 10, 40, 10], "both"),
        (CAT, [10, 10, 40, 12], "localisation"),
        (CAT, [110, 10, 40, 12], "both"),  # on the dog, and badly
    ],
)
def test_one_detection(category: int, box: list[float], kind: str, tmp_path: Path) -> None:
    kinds, diagnosis = diagnosed(tmp_path, said(category, box, 0.5))
    assert kinds == [kind]
    counts = {name: diagnosis.counts[name]["all"] for name in diagnosis.kinds[:5]}
    assert counts == {name: int(name == kind) for name in counts}


def test_everything_counts_in_coco(tmp_path: Path) -> None:
    kinds, _ = diagnosed(tmp_path, said(FOX, LEFT, 0.5), said(FOX, NOWHERE, 0.4), coco=True)
    assert kinds == ["classification", "background"]


def test_of_a_class_not_exhaustively_annotated_only_matches_count(tmp_path: Path) -> None:
    image = IMAGE | {"not_exhaustive_category_ids": [CAT]}
    rows = [said(CAT, LEFT, 0.5), said(CAT, NOWHERE, 0.9), said(CAT, LEFT, 0.4)]
    kinds, diagnosis = diagnosed(tmp_path, *rows, said(CAT, RIGHT, 0.3), image=image)
    assert kinds == ["right", "not counted", "not counted", "not counted"]
    assert diagnosis.counts["false positives"]["all"] == 0
    # A dog taken for a horse, where dogs are not exhaustive: the dog that is there was one.
    image = IMAGE | {"not_exhaustive_category_ids": [DOG]}
    kinds, _ = diagnosed(tmp_path, said(HORSE, RIGHT, 0.5), image=image)
    assert kinds == ["classification"]


def test_ignored_objects_are_no_targets(tmp_path: Path) -> None:
    objects = [thing(1, CAT, LEFT, ignore=1), thing(2, DOG, RIGHT)]
    rows = [said(CAT, LEFT, 0.5), said(HORSE, LEFT, 0.4), said(CAT, [10, 10, 40, 12], 0.3)]
    kinds, diagnosis = diagnosed(tmp_path, *rows, objects=objects)
    assert kinds == ["not counted", "background", "background"]
    assert diagnosis.counts["missed"]["all"] == 1  # the dog


def test_crowds_are_no_targets(tmp_path: Path) -> None:
    objects = [thing(1, CAT, LEFT, iscrowd=1), thing(2, DOG, RIGHT, iscrowd=0)]
    rows = [said(CAT, LEFT, 0.5), said(CAT, LEFT, 0.4), said(HORSE, LEFT, 0.4)]
    kinds, diagnosis = diagnosed(tmp_path, *rows, objects=objects, coco=True)
    assert kinds == ["not counted", "not counted", "background"]
    assert diagnosis.counts["missed"]["all"] == 1


def test_a_half_exactly_is_localisation_where_the_object_is_taken(tmp_path: Path) -> None:
    """As tidecv tests it: a duplicate only above the limit."""
    half, more = [10, 10, 40, 20], [10, 10, 40, 21]
    kinds, _ = diagnosed(tmp_path, said(CAT, LEFT, 0.9), said(CAT, half, 0.5), said(CAT, more, 0.4))
    assert kinds == ["right", "localisation", "duplicate"]
    kinds, _ = diagnosed(tmp_path, said(CAT, half, 0.5))
    assert kinds == ["right"]


def test_a_tenth_exactly(tmp_path: Path) -> None:
    tenth = [10, 10, 40, 4]
    kinds, _ = diagnosed(tmp_path, said(CAT, tenth, 0.9), said(HORSE, tenth, 0.5))
    assert kinds == ["localisation", "background"]


def test_its_own_class_is_looked_at_first(tmp_path: Path) -> None:
    """A localisation error even where another class fits."""
    objects = [thing(1, CAT, LEFT), thing(2, DOG, [10, 10, 40, 16])]
    kinds, _ = diagnosed(tmp_path, said(CAT, [10, 10, 40, 16], 0.9), objects=objects)
    assert kinds == ["localisation"]


def test_a_missed_object_is_one_nothing_points_at(tmp_path: Path) -> None:
    _, diagnosis = diagnosed(tmp_path, said(HORSE, LEFT, 0.5))
    assert diagnosis.missed.tolist() == [1]
    assert diagnosis.counts["missed"] == {"all": 1, "r": 0, "c": 0, "f": 1}
    assert diagnosis.counts["false negatives"] == {"all": 2, "r": 1, "c": 0, "f": 1}


def test_costs_worked_out(tmp_path: Path) -> None:
    """A horse that is the cat, above a second such; the dog is missed. AP is 0 for both classes."""
    rows = [said(HORSE, LEFT, 0.9), said(HORSE, LEFT, 0.8), said(DOG, NOWHERE, 0.7)]
    _, diagnosis = diagnosed(tmp_path, *rows)
    assert diagnosis.ap["all"] == diagnosis.ap["r"] == diagnosis.ap["f"] == 0
    assert math.isnan(diagnosis.ap["c"])  # no fox to find
    cost = diagnosis.costs["classification"]
    assert (cost["all"], cost["r"], cost["f"]) == (pytest.approx(0.5), pytest.approx(1), 0)
    assert math.isnan(cost["c"])
    # Without the dog, dogs are undefined; of the frequent classes none is left.
    assert diagnosis.costs["missed"]["all"] == 0
    assert math.isnan(diagnosis.costs["missed"]["f"])
    assert diagnosis.costs["background"]["all"] == 0
    assert diagnosis.counts["classification"] == {"all": 2, "r": 0, "c": 0, "f": 2}


def test_a_better_error_of_the_other_kind_goes_first(tmp_path: Path) -> None:
    """Of all errors that point at an object one is mended; here not that of localisation."""
    rows = [said(HORSE, LEFT, 0.9), said(CAT, [10, 10, 40, 12], 0.8)]
    _, diagnosis = diagnosed(tmp_path, *rows)
    assert diagnosis.costs["classification"]["r"] > 0.4  # behind it stands the other still
    assert diagnosis.costs["localisation"]["r"] == 0
    _, diagnosis = diagnosed(
        tmp_path, *reversed([row | {"score": 1 - row["score"]} for row in rows])
    )
    assert diagnosis.costs["classification"]["r"] == 0
    assert diagnosis.costs["localisation"]["r"] == pytest.approx(1)


def test_confusions_have_a_direction(tmp_path: Path) -> None:
    rows = [said(DOG, LEFT, 0.5), said(CAT, RIGHT, 0.4), said(HORSE, LEFT, 0.3)]
    rows += [said(HORSE, [10, 10, 40, 38], 0.75), said(HORSE, [10, 10, 40, 36], 0.25)]
    _, diagnosis = diagnosed(tmp_path, *rows)
    pairs = [
        (row["detected"]["name"], row["actual"]["name"], row["count"], row["highest_score"])
        for row in diagnosis.confusions.rows(10)
    ]
    assert pairs == [("horse", "cat", 3, 0.75), ("dog", "cat", 1, 0.5), ("cat", "dog", 1, 0.4)]
    assert diagnosis.confusions.rows(1)[0]["score_sum"] == pytest.approx(1.3)
    assert len(diagnosis.confusions) == 3


def test_the_budget_comes_first(tmp_path: Path) -> None:
    """Of two cats the worse is cut; its object is missed, and the dropped one is not an error."""
    objects = [thing(1, CAT, LEFT), thing(2, CAT, RIGHT)]
    rows = [said(CAT, LEFT, 0.9), said(CAT, RIGHT, 0.8), said(CAT, NOWHERE, 0.7)]
    kinds, diagnosis = diagnosed(tmp_path, *rows, objects=objects, dets_per_class=1)
    assert kinds == ["right", "not counted", "not counted"]
    assert diagnosis.counts["missed"]["all"] == 1
    assert diagnosis.budget == "1/class"


def test_only_some_classes(tmp_path: Path) -> None:
    rows = [said(HORSE, LEFT, 0.9), said(DOG, NOWHERE, 0.7)]
    kinds, diagnosis = diagnosed(tmp_path, *rows, classes=["dog"])
    assert kinds == ["not counted", "background"]
    assert diagnosis.counts["false negatives"]["all"] == 1
    assert diagnosis.per_class["name"].tolist() == ["dog"]
    assert diagnosis.missed.tolist() == [1]
    assert np.isnan(diagnosis.class_ap).tolist() == [True, False, True, True]
    assert diagnosis.class_counts[[0, 2, 3]].sum() == 0
    kinds, _ = diagnosed(tmp_path, *rows, classes=["horse"])
    assert kinds == ["classification", "not counted"]


def test_own_groups(tmp_path: Path) -> None:
    _, diagnosis = diagnosed(tmp_path, said(CAT, LEFT, 0.9), groups={"pets": ["cat", DOG]})
    assert diagnosis.ap["pets"] == pytest.approx(0.5)
    assert diagnosis.costs["missed"]["pets"] == pytest.approx(0.5)
    with pytest.raises(lvdet.InputError, match="'all' is reserved for all classes"):
        diagnosed(tmp_path, said(CAT, LEFT, 0.9), groups={"all": ["cat"]})


@pytest.mark.parametrize(
    "limits", [(0.5, 0.0), (0.1, 0.5), (0.5, 0.5), (1.5, 0.1), (math.nan, 0.1)]
)
def test_limits_out_of_order_are_refused(limits: tuple[float, float], tmp_path: Path) -> None:
    with pytest.raises(lvdet.InputError, match="expected 0 < background < foreground <= 1"):
        diagnosed(tmp_path, said(CAT, LEFT, 1), foreground=limits[0], background=limits[1])


def test_other_limits(tmp_path: Path) -> None:
    box = [10, 10, 40, 28]  # IoU 0.7
    kinds, diagnosis = diagnosed(tmp_path, said(CAT, box, 0.9), foreground=0.75, background=0.7)
    assert (kinds, diagnosis.metric) == (["localisation"], "AP75")
    assert "cost in points of AP75 (10000/class)" in str(diagnosis)


def test_among_equal_overlaps_the_first_object_is_the_target(tmp_path: Path) -> None:
    twins = [thing(1, CAT, LEFT), thing(2, DOG, LEFT), thing(3, CAT, RIGHT), thing(4, CAT, RIGHT)]
    rows = [said(HORSE, LEFT, 0.9), said(CAT, [110, 10, 40, 12], 0.8), said(CAT, NOWHERE, 0.7)]
    for objects, first in ((twins, [1, 3]), (twins[::-1], [2, 4])):
        kinds, diagnosis = diagnosed(tmp_path, *rows, objects=objects)
        assert kinds == ["classification", "localisation", "background"]
        target = dict(zip(diagnosis.rows.detection, diagnosis.rows.target, strict=True))
        assert [objects[target[row]]["id"] for row in (0, 1)] == first
        assert target[2] == -1  # it overlaps nothing
