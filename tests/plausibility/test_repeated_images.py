"""Images whose detections are in a file more than once, and what is left without the repeats."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lvdet
from lvdet.plausibility.repeated_images import repeated_images, repeated_rows, without_repeats
from lvdet.tables.detections import Detections
from lvdet.tables.results import Results
from tabled import Tables


@pytest.fixture(scope="module", params=["lvis", "coco"])
def honest(request: pytest.FixtureRequest) -> Tables:
    return lvdet.simulate(images=60, classes=40, dets_per_image=50, style=request.param, seed=2)


def doubled(dt: Detections, images: int, times: int = 2) -> Detections:
    again = np.flatnonzero(dt.image < images)
    return dt[np.concatenate([np.arange(len(dt)), *[again] * (times - 1)])]


@pytest.mark.parametrize("times", [2, 3])
@pytest.mark.parametrize("images", [1, 7, 60])
def test_all_but_the_first_of_each_row_repeat(honest: Tables, images: int, times: int) -> None:
    _, dt = honest
    results = Results.of(doubled(dt, images, times))
    rows, found = repeated_rows(results)
    assert np.sort(rows).tolist() == list(range(len(dt), len(results.ranking)))
    assert sorted(found.tolist()) == list(range(images))
    left, dropped = without_repeats(results)
    assert dropped == len(rows)
    assert left.total == len(left.ranking) == len(dt)
    assert np.array_equal(left.detections.box, dt.box)
    assert np.array_equal(left.per_image, np.bincount(dt.image))
    assert np.array_equal(left.per_class, np.bincount(dt.category))
    assert repeated_images(left) == []


def test_equal_rows_of_an_honest_image_stay(honest: Tables) -> None:
    """Whoever has an image twice has its equal rows four times."""
    _, dt = honest
    twin = dt[np.insert(np.arange(len(dt)), 1, 0)]
    assert repeated_images(Results.of(twin)) == []
    left, dropped = without_repeats(Results.of(doubled(twin, 3)))
    assert dropped == int((twin.image < 3).sum())
    assert np.array_equal(left.detections.box, twin.box)


def test_order_of_the_rows_does_not_matter(honest: Tables) -> None:
    _, dt = honest
    mixed = doubled(dt, 7)
    mixed = mixed[np.random.default_rng(0).permutation(len(mixed))]
    (found,) = repeated_images(Results.of(mixed))
    assert (found.count, found.evidence["detections"]) == (7, (dt.image < 7).sum())


def test_few_detections_count_where_images_come_in_separate_runs(honest: Tables) -> None:
    _, dt = honest
    few = dt[np.unique(dt.image, return_index=True)[1]]
    (found,) = repeated_images(Results.of(doubled(few, 7)))
    assert found.count == 7


def test_another_score_or_box_is_no_exact_repeat(honest: Tables) -> None:
    """But another run of the image, of which nothing is dropped."""
    _, dt = honest
    twice = doubled(dt, 7)
    score, box = twice.score.copy(), twice.box.copy()
    score[len(dt) :] *= 0.999
    box[len(dt) :, 0] += 0.01
    for again in (twice.with_scores(score), replace(twice, box=box)):
        (found,) = repeated_images(Results.of(again))
        assert (found.kind, found.count) == ("images-run-twice", 7)
        assert found.evidence["first_image_id"] == dt.image_ids[0]
        assert without_repeats(Results.of(again))[1] == 0


def test_exact_repeats_and_other_runs_are_told_apart(honest: Tables) -> None:
    _, dt = honest
    twice = doubled(dt, 7)
    score = twice.score.copy()
    score[len(dt) :][twice.image[len(dt) :] < 3] *= 0.999
    exact, run_twice = repeated_images(Results.of(twice.with_scores(score)))
    assert (exact.kind, exact.count) == ("repeated-images", 4)
    assert (run_twice.kind, run_twice.count) == ("images-run-twice", 3)


def test_parts_of_images_in_separate_places_are_no_second_run(honest: Tables) -> None:
    """As of detectors that write some classes, or the best scores, first."""
    _, dt = honest
    for first in (dt.category % 2 == 0, dt.score > np.median(dt.score)):
        parts = dt[np.append(np.flatnonzero(first), np.flatnonzero(~first))]
        assert repeated_images(Results.of(parts)) == []


def test_of_many_images_run_twice_some_are_looked_at() -> None:
    _, dt = lvdet.simulate(images=300, classes=10, dets_per_image=10, style="coco", seed=2)
    twice = doubled(dt, 300)
    score = np.append(dt.score, 0.999 * dt.score)
    (found,) = repeated_images(Results.of(twice.with_scores(score)))
    assert found.count > 150
    assert "of 200 checked" in found.sentence


def test_threads_change_nothing(honest: Tables) -> None:
    results = Results.of(doubled(honest[1], 33))
    found = []
    for threads in (1, 2, 4):
        lvdet.set_threads(threads)
        found.append(repeated_rows(results)[0].tolist())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("ending", [".json", ".parquet", ".jsonl"])
def test_numbers_without_repeats_are_those_of_the_honest_file(
    honest: Tables, ending: str, tmp_path: Path
) -> None:
    gt, dt = honest
    path = tmp_path / f"dt{ending}"
    lvdet.write_detections(doubled(dt, 7), path)
    expected = lvdet.evaluate(gt, dt)
    result = lvdet.evaluate(gt, path, drop_duplicates=True)
    dropped = int((dt.image < 7).sum())
    assert result.inputs["duplicates_dropped"] == dropped
    assert f"{dropped:,} duplicates dropped" in str(result)
    for name in ("old", "fixed", "pool"):
        assert dict(result[name]) == pytest.approx(dict(expected[name]), abs=0, nan_ok=True)
    assert not any("more than once" in text for text in result.warnings)
    assert lvdet.evaluate(gt, path)["fixed"].AP < expected["fixed"].AP
    audit = lvdet.audit(gt, path, drop_duplicates=True)
    assert audit.implausible == []
    assert audit.old == pytest.approx(lvdet.audit(gt, dt).old, abs=0, nan_ok=True)
    compared = lvdet.compare(gt, [dt, path], resamples=100, drop_duplicates=True)
    assert compared.inputs["detections"][1]["duplicates_dropped"] == dropped
    assert compared.compared[0].protocols["fixed"]["AP"].delta == 0
    swept = lvdet.sweep(gt, path, dets_per_image=[100], drop_duplicates=True)
    assert swept.inputs["duplicates_dropped"] == dropped
