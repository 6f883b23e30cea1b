"""What tasks do, without Ray: each runs in this process as soon as it is started."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lvdet
from cluster.shard_files import write_shards
from lvdet.cluster import run_plan, shard_tables, shards, table_tasks, tasks
from lvdet.cluster.shards import Shards
from lvdet.evaluation.protocols import Plan
from lvdet.matching.match_options import MatchOptions
from oracles.cases import coco_case, lvis_case
from partitions import written


def start(function: Callable[..., Any], *arguments: Any, returns: int = 1) -> Any:
    found = function(*arguments)
    return list(found) if returns > 1 else found


ENGINE = {
    "start": start,
    "put": lambda value: value,
    "fetch": lambda references: references,
    "wait": lambda references: (references[0], references[1:]),
    "cpus": lambda: 2,
}


@contextmanager
def without_ray(**settings: Any) -> Iterator[None]:
    """`settings` are those of `shards`."""
    with ExitStack() as stack:
        for module in (shards, shard_tables, run_plan):
            for name in ENGINE.keys() & vars(module).keys():
                stack.enter_context(patch.object(module, name, ENGINE[name]))
        for module in (tasks, table_tasks, run_plan):
            stack.enter_context(patch.object(module, "set_threads", lambda count: None))
        for name, value in settings.items():
            stack.enter_context(patch.object(shards, name, value))
        yield


def made(folder: Path, seed: int, *, coco: bool = False, masks: bool = True) -> tuple[Path, str]:
    """Annotations, and the pattern of shards in no order of images."""
    annotations, results = (coco_case if coco else lvis_case)(seed, masks=masks)
    random.Random(seed).shuffle(results)
    gt = folder / "gt.json"
    gt.write_text(json.dumps(annotations))
    (folder / "shards").mkdir()
    write_shards(results, folder / "shards", 4, seed)
    return gt, str(folder / "shards" / "*")


def ask(verb: Any, *arguments: Any, **options: Any) -> str:
    try:
        return written(verb(*arguments, **options))
    except lvdet.InputError as error:
        return str(error)


@given(
    seed=st.integers(0, 100_000),
    coco=st.booleans(),
    iou=st.sampled_from(["bbox", "segm", "boundary", None]),
    by_image=st.booleans(),
    count=st.integers(1, 6),
    room=st.sampled_from([0, 3, 1 << 24]),
    fan_in=st.sampled_from([2, 32]),
    many=st.sampled_from([0, 3, 1000]),
    limit=st.one_of(st.none(), st.integers(0, 12)),
)
def test_shards_evaluate_to_the_single_run(
    seed: int, coco: bool, iou: str | None, by_image: bool, count: int, room: int, fan_in: int,
    many: int, limit: int | None, tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("case")
    annotations, results = (coco_case if coco else lvis_case)(seed, masks=iou != "bbox")
    if by_image:
        results.sort(key=lambda row: row["image_id"])
    else:
        random.Random(seed).shuffle(results)
    gt = folder / "gt.json"
    gt.write_text(json.dumps(annotations))
    paths = [str(path) for path in write_shards(results, folder, count, seed)]
    options = {"iou": iou, "dets_per_class": limit}
    expected = ask(lvdet.evaluate, gt, paths, **options)
    with without_ray(room_of=lambda gt: room, _FAN_IN=fan_in, _MANY=many):
        assert ask(lvdet.evaluate, gt, Shards.of(paths), **options) == expected


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        (lvdet.sweep, {"dets_per_image": [1, 5, None], "dets_per_class": [3, None]}),
        (lvdet.audit, {}),
        (lvdet.Calibrator("beta", missing="keep").fit, {"iou_threshold": 0.5}),
    ],
)
def test_verbs(verb: Callable[..., Any], options: dict[str, Any], tmp_path: Path) -> None:
    gt, pattern = made(tmp_path, 3)
    verb(gt, pattern, **options).save(tmp_path / "one.json")
    with without_ray():
        verb(gt, Shards.of(pattern), **options).save(tmp_path / "many.json")
    assert (tmp_path / "many.json").read_bytes() == (tmp_path / "one.json").read_bytes()


@pytest.mark.parametrize(
    "options", [{}, {"dets_per_class": 7, "dets_per_image": 3}, {"masks": False}]
)
def test_convert(options: dict[str, Any], tmp_path: Path) -> None:
    _, pattern = made(tmp_path, 4)
    one, many = tmp_path / "one.jsonl", tmp_path / "many.jsonl"
    expected = lvdet.convert(pattern, one, **options)
    with without_ray():
        assert lvdet.convert(Shards.of(pattern), many, **options) == expected
    assert many.read_bytes() == one.read_bytes()


def test_bad_shards(tmp_path: Path) -> None:
    gt, pattern = made(tmp_path, 5)
    good = sorted(map(str, (tmp_path / "shards").iterdir()))
    (tmp_path / "shards" / "999.json").write_text("[1]")
    expected = lvdet.evaluate(gt, good).to_dict()["protocols"]
    with without_ray():
        found = lvdet.evaluate(gt, Shards.of(pattern, skip_bad=True)).to_dict()
        with pytest.raises(lvdet.InputError, match=r"999\.json, row 0"):
            lvdet.evaluate(gt, Shards.of(pattern))
        with pytest.raises(lvdet.InputError, match="no shard can be read"):
            lvdet.evaluate(gt, Shards.of(str(tmp_path / "shards" / "999.json"), skip_bad=True))
    assert found["protocols"] == expected
    assert len(found["inputs"]["skipped_shards"]) == 1


def test_a_plan(tmp_path: Path) -> None:
    gt, pattern = made(tmp_path, 6)
    rows = len(lvdet.read_detections(pattern))
    with without_ray():
        found = run_plan.plan_run(
            gt, Shards.of(pattern), plan=Plan(), options=MatchOptions(None), nodes=3
        )
    assert (found.shards, found.cpus) == (4, 6)
    assert found.rows == pytest.approx(rows, rel=0.5)  # from the size of one of them
    assert len(found.lines()) == 6
