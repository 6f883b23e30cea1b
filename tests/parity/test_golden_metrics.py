"""Metrics that lvis and pycocotools gave once, and that must stay what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lvdet
from parity.golden.make_golden import FILE, cases, checksum, files_of
from tabled import assert_agree, read_case

GOLDEN: list[dict[str, Any]] = json.loads(FILE.read_text())["cases"]


def test_all_cases_are_there() -> None:
    assert [(case["format"], case["masks"], case["seed"]) for case in GOLDEN] == cases()
    values = [value for case in GOLDEN for of in case["metrics"].values() for value in of.values()]
    assert sum(value is not None and 0 < value < 1 for value in values) > len(values) / 3


@pytest.mark.parametrize("kind", ["lvis", "coco"])
@pytest.mark.parametrize("masks", [False, True])
def test_metrics_stay(kind: str, masks: bool, tmp_path: Path) -> None:
    iou = "segm" if masks else "bbox"
    for case in GOLDEN:
        if (case["format"], case["masks"]) != (kind, masks):
            continue
        annotations, results = files_of(kind, masks, case["seed"])
        assert checksum(annotations, results) == case["checksum"], (
            "the case has changed, not lvdet: run tests/parity/golden/make_golden.py"
        )
        gt, dt = read_case(annotations, results, tmp_path)
        for name, expected in case["metrics"].items():
            options: dict[str, Any] = {"iou": iou, "exact_lvis": True}
            protocol, _, limit = name.partition(" ")
            if limit:
                per = "dets_per_image" if protocol == "old" else "dets_per_class"
                options[per] = int(limit)
            ours = lvdet.evaluate(gt, dt, protocols=[protocol], **options)
            assert_agree(ours[protocol], expected, f"{kind}, seed {case['seed']}, {iou}, {name}")
