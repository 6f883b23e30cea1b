"""Partials of any parts of the images evaluate to the single run, byte for byte."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from lvdet.evaluation.truncation import Cuts
from lvdet.limits.budgets import apply
from lvdet.partials import part_columns
from lvdet.tables.results import Results
from oracles.cases import coco_case, lvis_case
from oracles.lvis_reference import cut_per_class, evaluate_lvis
from partitions import merged_somehow, parts_of, written
from tabled import assert_agree, read_case

limits = st.one_of(
    st.integers(0, 12).map(lvdet.PerImage),
    st.integers(0, 12).map(lvdet.PerClass),
    st.integers(0, 4).map(lvdet.PerImageClass),
)
chains = st.lists(st.lists(limits, min_size=1, max_size=3), max_size=2)
ELEVEN = np.linspace(0.3, 0.9, 11).tolist()
some_limit = st.one_of(st.none(), st.integers(0, 12))


def ask(evaluate: Any) -> str:
    """What is written, or the error."""
    try:
        return written(evaluate())
    except lvdet.InputError as error:
        return str(error)


@st.composite
def settings_of_a_run(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of `evaluate`, for any annotations."""
    protocols = draw(st.sets(st.sampled_from(["old", "fixed", "pool"]), min_size=1))
    return {
        "protocols": sorted(protocols),
        "dets_per_image": draw(some_limit),
        "dets_per_class": draw(some_limit),
        "budgets": draw(chains),
        "exact_lvis": draw(st.booleans()),
        "thresholds": draw(
            st.sampled_from([None, None, [0.5], np.linspace(0.3, 0.9, 11).tolist()])
        ),
    }


@given(
    seed=st.integers(0, 100_000),
    coco=st.booleans(),
    iou=st.sampled_from(["bbox", "segm", "boundary", None]),
    settings=settings_of_a_run(),
    subset=st.booleans(),
    levels=st.sampled_from([1, 2, 4, 1000]),
    count=st.integers(1, 5),
    sampled=st.booleans(),
)
def test_any_partition_and_tree_give_the_single_run(
    seed: int,
    coco: bool,
    iou: str | None,
    settings: dict[str, Any],
    subset: bool,
    levels: int,
    count: int,
    sampled: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    masks = iou != "bbox"
    case = (coco_case if coco else lvis_case)(seed, masks)
    gt, dt = read_case(*case, tmp_path_factory.getbasetemp())
    dt = dt.with_scores(np.round(dt.score * levels) / levels)
    if subset:
        settings = settings | {
            "classes": gt.categories.ids[::2].tolist(),
            "groups": {"novel": gt.categories.ids[:2].tolist()},
        }
    single = ask(lambda: lvdet.evaluate(gt, dt, iou=iou, **settings))
    with pytest.MonkeyPatch.context() as patch:
        if not sampled:  # so that only what budgets can keep is kept
            patch.setattr(part_columns, "DRAWN_IMAGES", 0)
        parts = parts_of(gt, dt, seed, count, iou=iou, **settings)
        merged = merged_somehow(parts, seed)
    together = ask(lambda: merged.evaluate(gt))
    if sampled or not single.startswith("{"):
        assert together == single
    else:
        found, expected = json.loads(together), json.loads(single)
        assert found["protocols"] == expected["protocols"]
        assert found["inputs"] == expected["inputs"]


@pytest.mark.parametrize("like", ["lvis", "detectron2", "yolo-world", "coco"])
def test_presets_and_per_class_tables(like: str, tmp_path: Path) -> None:
    case = (coco_case if like == "coco" else lvis_case)(5, True)
    gt, dt = read_case(*case, tmp_path)
    single = lvdet.evaluate(gt, dt, like=like)
    merged = merged_somehow(parts_of(gt, dt, 3, 4, like=like), 1)
    assert written(merged.evaluate(gt)) == written(single)
    assert merged.evaluate(gt).to_csv() == single.to_csv()


def test_budgets_bound_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_columns, "DRAWN_IMAGES", 0)
    gt, dt = lvdet.simulate(images=40, classes=30, dets_per_image=100, seed=2)
    settings = {"protocols": ["fixed", "pool"], "dets_per_class": 20}
    parts = parts_of(gt, dt, 0, 4, **settings)
    merged = merged_somehow(parts, 0)
    for one in [*parts, merged]:
        counts = np.bincount(one.part.category)
        assert counts.max() == 20
    assert merged.total == len(dt)
    assert written(merged.evaluate(gt)) == written(lvdet.evaluate(gt, dt, **settings))
    by_image = parts_of(gt, dt, 0, 4, protocols=["old"], dets_per_image=7)
    assert all(np.bincount(one.part.image).max() == 7 for one in by_image)


@given(seed=st.integers(0, 1000), cap=st.integers(20, 60), above=st.booleans())
def test_truncation_is_seen_in_partials(seed: int, cap: int, above: bool) -> None:
    """Results with a class cap: whether a limit per image re-ranks them depends on rows of other
    classes and on rows that no budget keeps."""
    gt, dt = lvdet.simulate(images=5, classes=6, dets_per_image=200, seed=seed)
    keep = apply([lvdet.PerClass(cap)], dt)
    assert keep is not None
    dt = dt[keep]
    certain = Cuts.of(gt, Results.of(dt)).certain
    settings = {
        "protocols": ["old"],
        "dets_per_image": certain + above,
        "classes": gt.categories.ids[::2].tolist(),
    }
    single = lvdet.evaluate(gt, dt, **settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(part_columns, "DRAWN_IMAGES", 0)
        merged = merged_somehow(parts_of(gt, dt, seed, 3, **settings), seed)
    assert written(merged.evaluate(gt)) == written(single)


@pytest.mark.parametrize("wrong", ["corners", "classes", "percentages"])
def test_implausible_files_are_seen_in_partials(wrong: str) -> None:
    """The sample shows it, although budgets keep little else."""
    gt, dt = lvdet.simulate(images=60, classes=12, dets_per_image=60, seed=1)
    if wrong == "corners":
        box = dt.box.copy()
        box[:, 2:] += box[:, :2]
        dt = replace(dt, box=box)
    elif wrong == "classes":
        dt = replace(dt, category_ids=dt.category_ids + 1)
    else:
        score = 100 * dt.score
        score[7] = 99.5
        dt = dt.with_scores(score)
    settings = {"protocols": ["fixed"], "dets_per_class": 3}
    single = lvdet.evaluate(gt, dt, **settings)
    assert single.warnings
    parts = parts_of(gt, dt, 0, 3, **settings)
    for tree in range(4):
        assert written(merged_somehow(parts, tree).evaluate(gt)) == written(single)


@pytest.mark.parametrize(
    "column", ["id", "image", "category", "box", "area", "ignore", "crowd", "negative", "images"]
)
def test_other_annotations_are_other_ground_truth(column: str, tmp_path: Path) -> None:
    gt, dt = read_case(*lvis_case(3, False), tmp_path)
    one = lvdet.Partial.of(gt, dt)
    assert gt.negative is not None
    if column == "negative":
        changed: Any = replace(gt.negative, category=gt.negative.category[::-1].copy())
        changed.category[0] = (changed.category[0] + 1) % len(gt.categories)
    elif column == "images":
        changed = replace(gt.images, width=gt.images.width + np.int32(1))
    else:
        changed = getattr(gt, column).copy()
        first = changed.reshape(-1)[:1]
        first[:] = ~first if changed.dtype == bool else (first == 0) + 0
    with pytest.raises(lvdet.InputError, match="is not the ground truth of this partial"):
        one.evaluate(replace(gt, **{column: changed}))
    assert one.evaluate(replace(gt))


def test_numbers_are_those_of_lvis(tmp_path: Path) -> None:
    annotations, results = lvis_case(11, masks=False, quirks=False)
    gt, dt = read_case(annotations, results, tmp_path)
    merged = merged_somehow(parts_of(gt, dt, 1, 4, dets_per_image=5, dets_per_class=8), 2)
    found = merged.evaluate(gt)
    assert_agree(found["old"], evaluate_lvis(annotations, results, "bbox", 5), "old")
    cut = cut_per_class(results, 8)
    assert_agree(found["fixed"], evaluate_lvis(annotations, cut, "bbox", -1), "fixed")


def test_paths_and_shards_with_a_first_row(tmp_path: Path) -> None:
    gt, dt = lvdet.simulate(images=30, classes=20, dets_per_image=30, seed=4)
    dt = dt.with_scores(np.round(dt.score * 4) / 4)  # ties: file order decides
    dt = dt[np.argsort(dt.image, kind="stable")]
    lvdet.write_ground_truth(gt, tmp_path / "gt.json")
    half = int(np.searchsorted(dt.image, 15))
    lvdet.write_detections(dt[:half], tmp_path / "a.json")
    lvdet.write_detections(dt[half:], tmp_path / "b.parquet")
    settings = {"dets_per_class": 9}
    a = lvdet.Partial.of(tmp_path / "gt.json", tmp_path / "a.json", **settings)
    b = lvdet.Partial.of(tmp_path / "gt.json", tmp_path / "b.parquet", first_row=half, **settings)
    found = lvdet.Partial.merge([b, a]).evaluate(tmp_path / "gt.json").to_dict()
    expected = lvdet.evaluate(
        tmp_path / "gt.json", [tmp_path / "a.json", tmp_path / "b.parquet"], **settings
    ).to_dict()
    assert found["protocols"] == expected["protocols"]
    assert found["warnings"] == expected["warnings"]


def partial(gt: lvdet.GroundTruth, dt: lvdet.Detections, **settings: Any) -> lvdet.Partial:
    return lvdet.Partial.of(gt, dt, **settings)


def test_what_cannot_be_merged_is_one_line(tmp_path: Path) -> None:
    gt, dt = read_case(*lvis_case(3, True), tmp_path)
    other, _ = read_case(*lvis_case(4, True), tmp_path)
    one = partial(gt, dt, iou="bbox")

    def refused(*parts: lvdet.Partial) -> str:
        with pytest.raises(lvdet.InputError) as error:
            lvdet.Partial.merge(parts)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert refused(one, one) == (
        f"cannot merge partials: image_id {one.image_ids[0]} is in more than one of them"
    )
    assert refused(one, partial(other, dt[:0])) == (
        "cannot merge partials of different ground truth"
    )
    assert refused(one, partial(gt, dt[:0], iou="bbox", dets_per_class=7)) == (
        "cannot merge partials of different settings: dets_per_class is None in one and 7 in "
        "another"
    )
    assert refused(one, partial(gt, dt, iou="segm")) == (
        "cannot merge partials of different settings: iou is bbox in one and segm in another"
    )
    assert refused() == "there are no partials to merge"
    assert gt.masks is not None
    moved = replace(gt, masks=gt.masks[np.arange(len(gt))[::-1]])
    halves = [partial(one, dt[dt.image == image]) for image, one in enumerate((gt, moved))]
    assert refused(*halves) == "cannot merge partials of different ground truth: its masks differ"
    first, second = (np.flatnonzero(dt.image == image) for image in (0, 1))
    unmasked = lvdet.Detections.from_arrays(
        dt.image_ids[dt.image[second]],
        dt.category_ids[dt.category[second]],
        dt.score[second],
        dt.box[second],
    )
    assert refused(partial(gt, dt[first], iou="bbox"), partial(gt, unmasked, iou="bbox")) == (
        "cannot merge partials of different detections: masks is True in one and False in another"
    )
    assert refused(partial(gt, dt[first]), partial(gt, unmasked)) == (
        "cannot merge partials of different detections: iou is segm in one and bbox in another"
    )
    with pytest.raises(lvdet.InputError, match="is not the ground truth of this partial"):
        one.evaluate(other)


def test_arguments_that_cannot_be(tmp_path: Path) -> None:
    gt, dt = read_case(*lvis_case(3, False), tmp_path)
    for settings, what in (
        ({"positions": np.arange(len(dt))[::-1]}, "positions fall"),
        ({"positions": [0.5]}, "positions are float64"),
        ({"images": [10**9]}, "is not among the images"),
        ({"images": [*dt.image_ids.tolist(), 10**9]}, "image_id 1000000000 is not in"),
        ({"protocols": ["no"]}, "unknown protocol"),
        ({"like": "no"}, "unknown preset"),
        ({"iou": "no"}, "expected one of bbox"),
    ):
        with pytest.raises(lvdet.InputError, match=what):
            partial(gt, dt, **settings)
    with pytest.raises(lvdet.InputError, match="expected a table or a path"):
        partial(gt, 5)  # type: ignore[arg-type]


def test_empty_parts_join_any_others(tmp_path: Path) -> None:
    gt, dt = read_case(*lvis_case(8, True), tmp_path)
    none = lvdet.Detections.from_arrays([], [], [], np.zeros((0, 4)))
    empty = lvdet.Partial.of(gt, none, images=[])
    merged = lvdet.Partial.merge([empty, lvdet.Partial.of(gt, dt), empty])
    found, expected = merged.evaluate(gt).to_dict(), lvdet.evaluate(gt, dt).to_dict()
    assert found["protocols"] == expected["protocols"]
    assert written(empty.evaluate(gt)) == written(lvdet.evaluate(gt, none))


def test_a_partial_names_its_size(tmp_path: Path) -> None:
    gt, dt = read_case(*lvis_case(8, False), tmp_path)
    one = lvdet.Partial.of(gt, dt)
    assert repr(one) == f"Partial({len(dt.image_ids)} images, {len(dt)} of {len(dt)} detections)"
    assert len(one) == one.total == len(dt)


def test_no_engine_of_another_kind_is_loaded() -> None:
    code = "import lvdet, sys; lvdet.Partial; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
