"""What the kernels do at the edges of what they may be given."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lvdet
from cli.run_lvdet import python_program
from lvdet import _native
from lvdet.files.collect import new_collector
from lvdet.limits.budgets import apply
from lvdet.matching.match import found_columns, match, truth_columns
from lvdet.matching.match_options import MatchOptions
from match_bytes import match_bytes
from tabled import write_case
from thread_setting import on_threads, threads


def one_image(scores: list[float]) -> lvdet.Detections:
    rows = len(scores)
    return lvdet.Detections.from_arrays([1] * rows, [1] * rows, scores, np.ones((rows, 4)))


@pytest.mark.parametrize("count", [1, 2])
def test_a_budget_over_the_widest_range_of_scores(count: int) -> None:
    """Their difference is more than a double holds."""
    dt = one_image([1e308, -1e308] * 200)
    with threads(count):
        keep = apply([lvdet.PerImage(250)], dt)
    assert keep is not None
    assert keep.sum() == 250
    assert keep[0::2].all()
    assert keep[1::2][:50].all()


def test_a_budget_over_scores_that_hardly_differ() -> None:
    smallest = np.nextafter(0.0, 1.0)
    dt = one_image([0.0, smallest, -0.0, smallest * 2, smallest])
    keep = apply([lvdet.PerImage(3)], dt)
    assert keep is not None
    assert keep.tolist() == [False, True, False, True, True]


def test_more_threads_than_the_system_gives(tmp_path: Path) -> None:
    """Where no thread can be started, the caller does all the work."""
    tables = lvdet.simulate(images=40, classes=30, dets_per_image=50, seed=2)
    paths = write_case(*tables, tmp_path)
    code = (
        "import sys, resource, lvdet, json\n"
        "limit = int(sys.argv[3])\n"
        "import lvdet.evaluation.protocols\n"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit)) if limit else None\n"
        "lvdet.set_threads(1000)\n"
        "gt = lvdet.read_ground_truth(sys.argv[1])\n"
        "dt = lvdet.read_detections(sys.argv[2])\n"
        "print(json.dumps(lvdet.evaluate(gt, dt).to_dict()['protocols']))"
    )
    # A thread takes 8 MB of addresses for its stack: 600 MB give far fewer than 1,000.
    free, tight = (python_program(code, *paths, limit).good().out for limit in ("0", "600000000"))
    assert free == tight
    assert "old" in json.loads(free)


@pytest.mark.parametrize("iou", ["segm", "boundary"])
def test_threads_share_masks_and_change_no_byte(iou: str) -> None:
    """Enough cells that each thread has several blocks of them."""
    gt, dt = lvdet.simulate(images=150, classes=100, dets_per_image=100, masks=True, seed=4)
    one, three = on_threads(lambda: match(gt, dt, MatchOptions(iou=iou)), 1, 3)
    assert len(one) > 2000
    assert match_bytes(one) == match_bytes(three)


def test_threads_share_boxes_and_change_no_byte() -> None:
    """More rows than one block of ranking holds."""
    gt, dt = lvdet.simulate(images=700, classes=300, dets_per_image=300, seed=5)
    assert len(dt) > 3 * 65_536
    one, three = on_threads(lambda: match(gt, dt), 1, 3)
    assert match_bytes(one) == match_bytes(three)
    budgets = [lvdet.PerClass(100), lvdet.PerImage(40), lvdet.PerImageClass(2)]
    masks = on_threads(lambda: apply(budgets, dt), 1, 2, 5)
    assert len({mask.tobytes() for mask in masks if mask is not None}) == 1


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    """Its size was taken before; what was promised does not come."""
    path = tmp_path / "dt.json"
    lvdet.write_detections(one_image([0.5] * 200_000), path)
    code = (
        "import sys, os, lvdet\n"
        "real = os.fstat\n"
        "from lvdet.files.collect import new_collector\n"
        "fd = os.open(sys.argv[1], os.O_RDWR)\n"
        "import threading, time\n"
        "def cut():\n"
        "    os.ftruncate(fd, 1000)\n"
        "threading.Timer(0.002, cut).start()\n"
        "try:\n"
        "    out = new_collector().read_json(fd, True, 1, 4096, None)\n"
        "    print('failure' if out['failure'] else 'whole')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__)\n"
    )
    assert python_program(code, path).good().out.strip() in ("failure", "whole")


@pytest.mark.parametrize(
    "scores", [[float("nan")], [float("inf")], [1.0, float("-inf")]], ids=["nan", "inf", "-inf"]
)
def test_scores_without_an_order_are_refused_wherever_they_come_from(scores: list[float]) -> None:
    with pytest.raises(lvdet.InputError, match="score is"):
        one_image(scores)
    with pytest.raises(lvdet.InputError, match="score is"):
        one_image([0.5] * len(scores)).with_scores(scores)


def test_lists_that_lead_out_of_the_table_are_refused() -> None:
    gt, _ = lvdet.simulate(images=2, classes=3, dets_per_image=5)
    assert gt.negative is not None
    bad = replace(gt.negative, offsets=np.array([0, 10**9, len(gt.negative.category)]))
    with pytest.raises(lvdet.InputError, match="offsets"):
        replace(gt, negative=bad)
    with pytest.raises(lvdet.InputError, match="strictly increasing"):
        replace(gt.categories, ids=gt.categories.ids[::-1].copy())


def test_an_overlap_of_no_known_name_is_refused() -> None:
    """And not taken for that of boxes."""
    gt, dt = lvdet.simulate(images=2, classes=3, dets_per_image=5)
    with pytest.raises(ValueError, match='overlap is "mask", expected bbox, segm or boundary'):
        _native.MatchSettings(
            overlap="mask",
            thresholds=[0.5],
            area_low=[0.0],
            area_high=[1e10],
            drop_empty=False,
            area_from_box=True,
            partners_at=-1,
        )
    with pytest.raises(ValueError, match='overlap is ""'):
        _native.nearest_objects(
            truth_columns(gt, masks=False),
            found_columns(gt, dt, masks=False),
            target=np.ones(len(gt), dtype=np.uint8),
            rows=np.arange(len(dt), dtype=np.int32),
            overlap="",
            threads=1,
        )


@pytest.mark.parametrize("count", [1, 4])
def test_a_mask_that_cannot_be_read_ends_all_threads(count: int) -> None:
    """The others are at work on theirs when it is met."""
    gt, dt = lvdet.simulate(images=150, classes=100, dets_per_image=100, masks=True, seed=4)
    assert dt.masks is not None
    data = dt.masks.data.copy()
    data[dt.masks.offsets[:-1]] = 0  # below every character of a run
    damaged = replace(dt, masks=replace(dt.masks, data=data))
    with threads(count), pytest.raises(lvdet.InputError, match="RLE counts are corrupt"):
        match(gt, damaged, MatchOptions(iou="segm"))


@pytest.mark.parametrize("count", [1, 3])
def test_a_reader_tells_how_far_it_is_and_stops_when_told(tmp_path: Path, count: int) -> None:
    path = tmp_path / "dt.json"
    lvdet.write_detections(one_image([0.5] * 20_000), path)
    control = np.zeros(2, dtype=np.int64)
    with path.open("rb") as file:
        out = new_collector().read_json(file.fileno(), True, count, 4096, control)
        assert out["failure"] is None
        assert out["rows"] == 20_000
        # Nearly all of it: what stands between chunks is not counted.
        assert 0.99 * path.stat().st_size < control[0] <= path.stat().st_size
        control[:] = 0, 1
        with pytest.raises(RuntimeError, match="cancelled"):
            new_collector().read_json(file.fileno(), True, count, 4096, control)
        assert control[0] == 0


def test_what_was_collected_outlives_the_collector() -> None:
    collector = new_collector()
    ids, box = np.arange(5, dtype=np.int64), np.arange(20.0).reshape(5, 4)
    assert collector.add(ids, ids, np.arange(5.0), box, None)
    columns = collector.collected(True)
    del collector
    assert columns["score"].tolist() == [0, 1, 2, 3, 4]
    assert (columns["box"] == box).all()
    assert columns["image_ids"].tolist() == ids.tolist()


def test_columns_outlive_their_arrays() -> None:
    """A kernel's arguments are kept alive for as long as the kernel may use them."""
    gt, dt = lvdet.simulate(images=20, classes=10, dets_per_image=20, seed=1)
    expected = match(gt, dt)
    settings = _native.MatchSettings(
        overlap="bbox",
        thresholds=expected.thresholds.tolist(),
        area_low=[0.0],
        area_high=[1e10],
        drop_empty=True,
        area_from_box=True,
        partners_at=-1,
    )
    truth, found = truth_columns(gt, masks=False), found_columns(gt, dt, masks=False)
    del gt, dt
    for _ in range(2):  # the same columns serve again
        out = _native.match(truth, found, settings, 1)
        assert (out["detection"] == expected.detection).all()
        wrong, hits, bits = out["outcomes"]
        assert (wrong == expected.outcomes.wrong & 1).all()
        assert (hits == expected.outcomes.hits).all()
        assert (bits == expected.outcomes.bits[:, :1]).all()
