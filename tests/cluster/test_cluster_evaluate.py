"""Shards on a cluster give the numbers of one process, byte for byte."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from cluster.shard_files import write_shards
from lvdet.cluster import shards
from lvdet.cluster.shards import Shards
from oracles.cases import coco_case, lvis_case
from oracles.lvis_reference import evaluate_lvis
from partitions import written
from tabled import assert_agree

pytestmark = pytest.mark.usefixtures("cluster")
LIMITS = st.one_of(
    st.integers(0, 12).map(lvdet.PerImage),
    st.integers(0, 12).map(lvdet.PerClass),
    st.integers(0, 4).map(lvdet.PerImageClass),
)


def ask(verb: Any, *arguments: Any, **options: Any) -> str:
    """What is written, or the error."""
    try:
        return written(verb(*arguments, **options))
    except lvdet.InputError as error:
        return str(error)


@given(
    seed=st.integers(0, 100_000),
    coco=st.booleans(),
    iou=st.sampled_from(["bbox", "segm", "boundary", None]),
    by_image=st.booleans(),
    count=st.integers(1, 5),
    room=st.sampled_from([0, 3, 1 << 24]),
    fan_in=st.sampled_from([2, 32]),
    many=st.sampled_from([0, 1000]),
    chains=st.lists(st.lists(LIMITS, min_size=1, max_size=3), max_size=2),
    dets_per_image=st.one_of(st.none(), st.integers(0, 12)),
    dets_per_class=st.one_of(st.none(), st.integers(0, 12)),
    exact_lvis=st.booleans(),
)
def test_shards_evaluate_to_the_single_run(
    seed: int,
    coco: bool,
    iou: str | None,
    by_image: bool,
    count: int,
    room: int,
    fan_in: int,
    many: int,
    chains: list[Any],
    dets_per_image: int | None,
    dets_per_class: int | None,
    exact_lvis: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Rows of an image and of a class are in several shards, and equal scores in different ones.
    With little room, shards drop what the budgets cannot keep; parts are merged in several steps if
    one task takes few; images in several shards go to one of them, or all images to blocks."""
    folder = tmp_path_factory.mktemp("case")
    make = coco_case if coco else lvis_case
    annotations, results = make(seed, masks=iou != "bbox")
    results.sort(key=(lambda row: row["image_id"]) if by_image else _shuffled(seed))
    gt = folder / "gt.json"
    gt.write_text(json.dumps(annotations))
    paths = [str(path) for path in write_shards(results, folder, count, seed)]
    options = {
        "iou": iou,
        "budgets": chains,
        "dets_per_image": dets_per_image,
        "dets_per_class": dets_per_class,
        "exact_lvis": exact_lvis,
    }
    expected = ask(lvdet.evaluate, gt, paths, **options)
    with (
        patch.object(shards, "room_of", lambda gt: room),
        patch.object(shards, "_FAN_IN", fan_in),
        patch.object(shards, "_MANY", many),
    ):
        assert ask(lvdet.evaluate, gt, Shards.of(paths), **options) == expected


def _shuffled(seed: int) -> Any:
    rng = random.Random(seed)
    return lambda row: rng.random()


def test_shards_evaluate_to_what_lvis_says(tmp_path: Path) -> None:
    annotations, results = lvis_case(5, masks=False, quirks=False)
    gt = tmp_path / "gt.json"
    gt.write_text(json.dumps(annotations))
    paths = [str(path) for path in write_shards(results, tmp_path, 4, 5)]
    found = lvdet.evaluate(gt, Shards.of(paths), iou="bbox")
    assert_agree(found["old"].metrics, evaluate_lvis(annotations, results, "bbox"), "shards")
