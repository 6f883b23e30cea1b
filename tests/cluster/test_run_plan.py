"""The plan's arithmetic, on numbers that can be checked by hand, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import lvdet
from cli.run_lvdet import lvdet_call, lvdet_command
from cli.small_set import FOUND, LVIS, pair, save
from lvdet.cluster.run_plan import Calibration, planned
from lvdet.files.collect import ROOM
from lvdet.limits.needs import Need, everything

#: A shard of 1 MB with 10,000 detections, read in 2 s.
ONE = Calibration(
    nbytes=1_000_000,
    rows=10_000,
    portion_bytes=200_000,
    part_bytes=300_000,
    truth_bytes=5_000,
    read_seconds=2.0,
    match_seconds=0.5,
    verb_seconds=1.0,
    join_seconds=0.1,
)


@pytest.fixture(scope="module")
def gt() -> lvdet.GroundTruth:
    return lvdet.simulate(images=10, classes=5, dets_per_image=1)[0]


def needs(gt: lvdet.GroundTruth) -> list[Need]:
    """At most 5 times 1,000 and 10 times 300 rows."""
    every = np.arange(len(gt.categories))
    return [Need(lvdet.PerClass(1_000), every), Need(lvdet.PerImage(300), every)]


def test_small_files_are_kept_whole(gt: lvdet.GroundTruth) -> None:
    plan = planned([1_000_000] * 8, ONE, needs(gt), gt, 4)
    assert (plan.shards, plan.nbytes, plan.rows, plan.kept) == (8, 8_000_000, 80_000, 80_000)
    assert plan.moved == (1_600_000, 2_400_000)
    assert plan.seconds == pytest.approx((8 * 2 / 4, 8 * 0.5 / 4, 1 + 8 * 0.1))
    assert plan.tasks == 17


def test_the_largest_shard_is_read_by_one_task(gt: lvdet.GroundTruth) -> None:
    plan = planned([1_000_000, 5_000_000], ONE, needs(gt), gt, 64)
    assert plan.seconds[0] == 10


def test_of_large_files_the_budgets_keep_a_part(gt: lvdet.GroundTruth) -> None:
    shards = 4 * ROOM // 10_000
    plan = planned([1_000_000] * shards, ONE, needs(gt), gt, 4)
    assert plan.kept == 8_000
    assert ROOM < plan.moved[0] / 20 < 1.1 * ROOM  # what is read before there is no room
    whole = planned([1_000_000] * shards, ONE, everything(gt), gt, 4)
    assert whole.kept == whole.rows == shards * 10_000


def test_lines_have_units(gt: lvdet.GroundTruth) -> None:
    plan = planned([1_000_000] * 8, ONE, needs(gt), gt, 4)
    assert plan.lines()[0] == "shards   8 with 8.0 MB, about 80,000 detections"
    assert "moved    1.6 MB between" in plan.lines()[2]
    assert "2.0 GB" in replace(plan, nbytes=2_000_000_000).lines()[0]


def test_a_plan_needs_a_cluster(tmp_path: Path) -> None:
    lvdet_call("evaluate", *pair(tmp_path), "--plan", "2").refused("--plan needs --cluster")


@pytest.mark.long
def test_the_command_prints_a_plan_and_nothing_else(tmp_path: Path) -> None:
    gt = save(tmp_path / "gt.json", LVIS)
    for number, row in enumerate(FOUND):
        save(tmp_path / f"dt-{number}.json", json.dumps([row]))
    where = ["--cluster", "local[1]", "--plan", "3"]
    done = lvdet_command("evaluate", gt, tmp_path / "dt-*.json", *where).good()
    first, tasks, *_ = done.out.splitlines()
    assert first.startswith("shards   2 with ")
    assert first.endswith("about 2 detections")
    assert tasks == "tasks    5 on 3 CPUs"
