"""Scores and labels that calibration is fitted on: those of AP's own match, and no others."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lvdet
from calibration.made_samples import read_samples
from cli.small_set import COCO, FOUND, LVIS
from lvdet.calibration.labelled_scores import Labelling, Samples, load_best
from lvdet.tables.results import Results
from oracles.cases import coco_case, lvis_case
from oracles.lvis_reference import drop_unknown
from oracles.pool_reference import labels_slow
from tabled import read_case
from thread_setting import on_threads

Json = dict[str, Any]


def labels(samples: Samples) -> dict[int, list[tuple[float, bool]]]:
    """Score and label of each row, by category id."""
    found: dict[int, list[tuple[float, bool]]] = {}
    for row, number in enumerate(samples.categories.ids.tolist()):
        rows = samples.rows(row)
        found[number] = list(
            zip(samples.score[rows].tolist(), samples.right[rows].tolist(), strict=True)
        )
    return found


def check_labels(case: tuple[Json, list[Json]], iou: str, folder: Path, **options: Any) -> int:
    """Against the slow reference, from tables and from files; gives the number of rows."""
    annotations, results = case
    if not drop_unknown(annotations, results):
        return 0
    gt, dt = read_case(annotations, results, folder)
    expected = labels_slow(
        annotations,
        results,
        iou,
        options.get("iou_threshold", 0.75),
        options.get("dets_per_class", 10_000),
    )
    samples = read_samples(gt, dt, iou=iou, **options)
    assert labels(samples) == expected
    files = read_samples(folder / "gt.json", folder / "dt.json", iou=iou, **options)
    assert labels(files) == expected
    assert files.source == str(folder / "dt.json")
    assert samples.offsets[0] == 0
    assert samples.offsets[-1] == len(samples) == len(files)
    if "dets_per_class" not in options and not len(results) > len(
        drop_unknown(annotations, results)
    ):
        # Nothing was dropped: the ranking has the table's rows.
        category = samples.categories.ids[samples.category]
        assert dt.score[samples.detection].tolist() == samples.score.tolist()
        assert dt.category_ids[dt.category[samples.detection]].tolist() == category.tolist()
    return len(samples)


@pytest.mark.parametrize("threshold", [0.75, 0.5, 0.33, 1.0])
def test_labels_of_boxes_in_federated_files(threshold: float, tmp_path: Path) -> None:
    number = right = 0
    for seed in range(30):
        case = lvis_case(seed, masks=False)
        number += check_labels(case, "bbox", tmp_path, iou_threshold=threshold)
        right += sum(
            label for rows in labels_slow(*case, "bbox", threshold).values() for _, label in rows
        )
    assert number > 300
    assert right > 30, "some must be right"


@pytest.mark.parametrize("threshold", [0.75, 0.5])
def test_labels_of_boxes_in_coco_files(threshold: float, tmp_path: Path) -> None:
    number = sum(
        check_labels(coco_case(seed, masks=False), "bbox", tmp_path, iou_threshold=threshold)
        for seed in range(30)
    )
    assert number > 500


@pytest.mark.parametrize("iou", ["segm", "bbox", "boundary"])
def test_labels_of_files_with_masks(iou: str, tmp_path: Path) -> None:
    number = 0
    for seed in range(12):
        number += check_labels(lvis_case(seed, masks=True), iou, tmp_path)
        number += check_labels(coco_case(seed, masks=True), iou, tmp_path)
    assert number > 200


@pytest.mark.parametrize("limit", [0, 1, 3, 10])
def test_the_best_of_a_class_are_taken_before_the_federated_filter(
    limit: int, tmp_path: Path
) -> None:
    number = 0
    for seed in range(30):
        number += check_labels(lvis_case(seed, False), "bbox", tmp_path, dets_per_class=limit)
        number += check_labels(coco_case(seed, False), "bbox", tmp_path, dets_per_class=limit)
    assert number > 100 or limit == 0


# By hand


def sampled(annotations: Json, results: list[Json], folder: Path, **options: Any) -> Any:
    return labels(read_samples(*read_case(annotations, results, folder), **options))


def test_a_small_set_by_hand(tmp_path: Path) -> None:
    """The cat is found; a dog is seen where there is verified to be none."""
    assert sampled(LVIS, FOUND, tmp_path) == {3: [(0.5, True)], 4: [(0.75, False)], 9: []}


def test_what_was_not_verified_is_left_out(tmp_path: Path) -> None:
    unverified = {"image_id": 2, "category_id": 3, "bbox": [0, 0, 10, 10], "score": 0.9}
    assert sampled(LVIS, [*FOUND, unverified], tmp_path)[3] == [(0.5, True)]
    # But it uses up the budget: the cat that was found is second of its class.
    found = sampled(LVIS, [*FOUND, unverified], tmp_path, dets_per_class=1)
    assert found == {3: [], 4: [(0.75, False)], 9: []}


def test_unmatched_where_not_all_were_annotated_is_left_out(tmp_path: Path) -> None:
    annotations = copy.deepcopy(LVIS)
    annotations["images"][0]["not_exhaustive_category_ids"] = [3]
    more = {"image_id": 1, "category_id": 3, "bbox": [60, 60, 10, 10], "score": 0.9}
    assert sampled(LVIS, [*FOUND, more], tmp_path)[3] == [(0.9, False), (0.5, True)]
    assert sampled(annotations, [*FOUND, more], tmp_path)[3] == [(0.5, True)]


def test_ignored_objects_leave_what_found_them_out(tmp_path: Path) -> None:
    annotations = copy.deepcopy(LVIS)
    annotations["annotations"][0]["ignore"] = 1
    assert sampled(annotations, FOUND, tmp_path)[3] == []


def test_what_lies_on_a_crowd_is_left_out(tmp_path: Path) -> None:
    annotations = copy.deepcopy(COCO)
    annotations["annotations"][0]["iscrowd"] = 1
    inside = [
        {"image_id": 1, "category_id": 3, "bbox": [10 + n, 10, 5, 5], "score": 0.9 - n / 10}
        for n in range(3)
    ]
    assert sampled(COCO, inside, tmp_path)[3] == [(0.9, False), (0.8, False), (0.7, False)]
    assert sampled(annotations, inside, tmp_path)[3] == []


def test_in_coco_files_every_class_counts_everywhere(tmp_path: Path) -> None:
    other = {"image_id": 2, "category_id": 9, "bbox": [0, 0, 10, 10], "score": 0.25}
    assert sampled(COCO, [*FOUND, other], tmp_path)[9] == [(0.25, False)]


def test_an_object_is_found_once_by_the_best(tmp_path: Path) -> None:
    twice = [FOUND[0], FOUND[0] | {"score": 0.75}, FOUND[0] | {"score": 0.5}]
    assert sampled(LVIS, twice, tmp_path)[3] == [(0.75, True), (0.5, False), (0.5, False)]


@pytest.mark.parametrize(("width", "right"), [(15, True), (14, False), (20, True)])
def test_the_threshold_itself_is_enough(width: int, right: bool, tmp_path: Path) -> None:
    """A part of the cat's box: IoU width / 20, at a threshold of 0.75."""
    row = FOUND[0] | {"bbox": [10, 10, width, 20]}
    assert sampled(LVIS, [row], tmp_path)[3] == [(0.5, right)]


def test_the_budget_is_10_000_a_class() -> None:
    count = 10_003
    gt, _ = lvdet.simulate(images=1, classes=1, style="coco", seed=0)
    number = int(gt.categories.ids[0])
    score = np.linspace(0, 1, count)
    box = np.tile([0.0, 0.0, 1.0, 1.0], (count, 1))
    dt = lvdet.Detections.from_arrays(
        np.full(count, gt.images.ids[0]), np.full(count, number), score, box
    )
    samples = read_samples(gt, dt)
    assert len(samples) == 10_000
    assert samples.score.tolist() == score[::-1][:10_000].tolist()
    assert len(read_samples(gt, dt, dets_per_class=count)) == count


def test_scores_that_rounding_moved_out_are_moved_back(tmp_path: Path) -> None:
    rows = [FOUND[0] | {"score": 1 + 5e-7}, FOUND[1] | {"score": -5e-7}]
    assert sampled(LVIS, rows, tmp_path) == {3: [(1.0, True)], 4: [(0.0, False)], 9: []}


def test_scores_that_are_logits(tmp_path: Path) -> None:
    gt, dt = read_case(LVIS, [FOUND[0] | {"score": -1.25}, FOUND[1]], tmp_path)
    with pytest.raises(lvdet.InputError, match=r"score is -1\.25, expected 0 to 1"):
        read_samples(gt, dt)


def test_no_detections(tmp_path: Path) -> None:
    assert sampled(LVIS, [], tmp_path) == {3: [], 4: [], 9: []}


# Samples themselves, by plain loops

CLASSES = 5


def made(rows: list[tuple[int, float, bool]]) -> Samples:
    """Samples of five classes of the rows (class, score, right), of descending score in a class."""
    rows = sorted(rows, key=lambda row: (row[0], -row[1]))
    offsets = [sum(row[0] < one for row in rows) for one in range(CLASSES + 1)]
    return Samples(
        np.array([row[1] for row in rows], dtype=np.float64),
        np.array([row[2] for row in rows], dtype=bool),
        np.arange(len(rows), dtype=np.int32) * 3,
        np.array(offsets, dtype=np.int64),
        lvdet.Categories(np.arange(CLASSES), tuple("abcde"), np.array(["r", "c", "f", "c", "r"])),
    )


ROWS = st.lists(
    st.tuples(st.integers(0, CLASSES - 1), st.integers(0, 6).map(lambda n: n / 6), st.booleans()),
    max_size=40,
)


@given(ROWS)
def test_counts_and_classes(rows: list[tuple[int, float, bool]]) -> None:
    samples = made(rows)
    assert len(samples) == len(rows)
    assert samples.counts().tolist() == [
        sum(row[0] == one for row in rows) for one in range(CLASSES)
    ]
    assert samples.right_counts().tolist() == [
        sum(row[0] == one and row[2] for row in rows) for one in range(CLASSES)
    ]
    assert samples.category.tolist() == sorted(row[0] for row in rows)
    for one in range(CLASSES):
        assert (samples.category[samples.rows(one)] == one).all()
        assert len(samples.score[samples.rows(one)]) == samples.counts()[one]


@given(ROWS, st.data())
def test_where(rows: list[tuple[int, float, bool]], data: st.DataObject) -> None:
    samples = made(rows)
    keep = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    some = samples.where(np.array(keep, dtype=bool))
    kept = [row for row, wanted in enumerate(keep) if wanted]
    assert some.score.tolist() == [samples.score[row] for row in kept]
    assert some.right.tolist() == [samples.right[row] for row in kept]
    assert some.detection.tolist() == [samples.detection[row] for row in kept]
    assert some.category.tolist() == [samples.category[row] for row in kept]
    assert len(some.offsets) == CLASSES + 1
    assert some.categories is samples.categories


@given(ROWS, st.lists(st.integers(0, 2), min_size=CLASSES, max_size=CLASSES))
def test_grouped(rows: list[tuple[int, float, bool]], group: list[int]) -> None:
    """By group and descending score; equal scores in the order of classes and of their rows."""
    samples = made(rows)
    found = samples.grouped(np.array(group, dtype=np.int32), 3)
    order = sorted(
        range(len(samples)), key=lambda row: (group[samples.category[row]], -samples.score[row])
    )
    assert found.score.tolist() == samples.score[order].tolist()
    assert found.right.tolist() == samples.right[order].tolist()
    assert found.detection.tolist() == samples.detection[order].tolist()
    of_group = [group[samples.category[row]] for row in order]
    assert found.category.tolist() == of_group
    assert found.counts().tolist() == [of_group.count(one) for one in range(3)]
    for again in on_threads(lambda: samples.grouped(np.array(group, dtype=np.int32), 3), 1, 3):
        assert again.detection.tolist() == found.detection.tolist()


# What is kept of results and of annotations


@st.composite
def masked_results(draw: st.DrawFn) -> tuple[Results, list[int], np.ndarray[Any, Any]]:
    """Results of which some rows can be matched, which those are, and a mask over all rows."""
    count = draw(st.integers(0, 25))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    table = lvdet.Detections.from_arrays(
        rng.integers(1, 4, count),
        rng.integers(10, 13, count),
        rng.random(count),
        rng.random((count, 4)),
    )
    whole = Results.of(table)
    keep = rng.random(count) < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    if draw(st.booleans()):
        return whole, list(range(count)), keep
    rows = np.flatnonzero(rng.random(count) < 0.5).astype(np.int32)
    some = Results(whole.ranking, table[rows], rows, count + 7, whole.per_image, whole.per_class)
    return some, rows.tolist(), keep


@settings(max_examples=150)
@given(masked_results())
def test_results_of_a_mask(case: tuple[Results, list[int], np.ndarray[Any, Any]]) -> None:
    results, rows, keep = case
    some = results.where(keep)
    kept = [row for row in range(len(keep)) if keep[row]]
    old, new = results.ranking, some.ranking
    assert len(new) == len(kept)
    assert new.score.tolist() == [old.score[row] for row in kept]
    assert new.image.tolist() == [old.image[row] for row in kept]
    assert new.category.tolist() == [old.category[row] for row in kept]
    assert new.image_ids is old.image_ids
    assert new.category_ids is old.category_ids
    inner = [place for place, row in enumerate(rows) if keep[row]]
    assert some.detections.box.tolist() == [results.detections.box[i].tolist() for i in inner]
    assert some.detections.score.tolist() == [results.detections.score[i] for i in inner]
    if results.rows is None:
        assert some.rows is None
        assert len(some.detections) == len(new)
    else:
        assert some.rows is not None
        assert some.rows.dtype == np.int32
        assert some.rows.tolist() == [kept.index(rows[place]) for place in inner]
        assert new.score[some.rows].tolist() == some.detections.score.tolist()
    # What is known of the file stays.
    assert some.total == results.total
    assert some.per_image is results.per_image
    assert some.per_class is results.per_class
    assert some.source == results.source


@given(masked_results())
def test_results_with_other_scores(case: tuple[Results, list[int], np.ndarray[Any, Any]]) -> None:
    results, rows, _ = case
    score = np.arange(len(results.ranking)) / 100
    new = results.with_scores(score)
    assert new.ranking.score.tolist() == score.tolist()
    assert new.detections.score.tolist() == [score[row] for row in rows]
    assert new.detections.box.tolist() == results.detections.box.tolist()
    assert new.ranking.category is results.ranking.category
    assert new.rows is results.rows
    assert new.total == results.total


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("by", ["mask", "index"])
def test_annotations_of_a_mask(masks: bool, by: str) -> None:
    gt, _ = lvdet.simulate(images=8, classes=6, masks=masks, seed=1)
    keep = np.arange(len(gt)) % 3 == 1
    rows = [row for row in range(len(gt)) if row % 3 == 1]
    some = gt.where(keep if by == "mask" else np.flatnonzero(keep))
    assert len(some) == len(rows) > 0
    for name in ("id", "image", "category", "box", "area", "ignore", "crowd"):
        assert getattr(some, name).tolist() == [getattr(gt, name)[row].tolist() for row in rows]
    assert (some.masks is None) == (not masks)
    if some.masks is not None:
        assert gt.masks is not None
        assert [some.masks.row(place) for place in range(len(rows))] == [
            gt.masks.row(row) for row in rows
        ]
    assert some.images is gt.images
    assert some.categories is gt.categories
    assert some.negative is gt.negative
    assert some.not_exhaustive is gt.not_exhaustive
    assert some.source == gt.source


def test_nothing_of_the_annotations() -> None:
    gt, dt = lvdet.simulate(images=8, classes=6, seed=1)
    none = gt.where(np.zeros(len(gt), dtype=bool))
    assert len(none) == 0
    assert math.isnan(lvdet.evaluate(none, dt)["fixed"].AP)


def test_a_pair_has_the_best_of_each_class_alone() -> None:
    gt, dt = lvdet.simulate(images=20, classes=6, dets_per_image=30, seed=1)
    pair = load_best(gt, dt, Labelling(dets_per_class=5))
    ranking = pair.results.ranking
    number = ranking.category_ids[ranking.category]
    for one in dt.category_ids.tolist():
        every = sorted(dt.score[dt.category_ids[dt.category] == one].tolist(), reverse=True)
        assert sorted(ranking.score[number == one].tolist(), reverse=True) == every[:5]
    assert pair.results.total == len(dt)
