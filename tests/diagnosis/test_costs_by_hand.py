"""Costs are what `evaluate` says once the oracle's repair is made in the files themselves."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

import lvdet
from diagnosis.error_sets import Json, kinds_by_row, same, targets_by_row
from long_cases import first
from oracles.error_cases import error_case
from tabled import read_case

POINTING = ("classification", "localisation")


def mended(
    kind: str, annotations: Json, results: list[Json], said: list[str], target: dict[int, int]
) -> list[Json]:
    """The results after an oracle repaired one kind of incorrect detections."""
    objects = {row["id"]: row for row in annotations["annotations"]}
    found = {target[row] for row, name in enumerate(said) if name == "right"}
    best: dict[int, int] = {}
    for row, name in enumerate(said):
        if name in POINTING and target[row] not in found:
            other = best.setdefault(target[row], row)
            if results[row]["score"] > results[other]["score"]:
                best[target[row]] = row
    left = []
    for row, name in enumerate(said):
        if name != kind:
            left.append(results[row])
        elif kind in POINTING and best.get(target[row]) == row:
            column = "category_id" if kind == "classification" else "bbox"
            left.append(results[row] | {column: objects[target[row]][column]})
    return left


def without(annotations: Json, gone: set[int]) -> Json:
    """The annotations without some, whose classes stay verified in their images."""
    left = copy.deepcopy(annotations)
    images = {image["id"]: image for image in left["images"]}
    for row in left["annotations"]:
        lists = images[row["image_id"]].get("neg_category_ids")
        if row["id"] in gone and lists is not None:
            lists.append(row["category_id"])
    left["annotations"] = [row for row in left["annotations"] if row["id"] not in gone]
    return left


@pytest.mark.parametrize("federated", [True, False])
@pytest.mark.parametrize("part", first(2, range(4)))
def test_each_kind_mended_in_the_files(part: int, federated: bool, tmp_path: Path) -> None:
    mattered: set[str] = set()
    for seed in range(1000 + 12 * part, 1012 + 12 * part):
        levels = 3 if seed % 2 else 1 << 20  # every other file is full of equal scores
        annotations, results = error_case(seed, federated=federated, levels=levels)
        gt, dt = read_case(annotations, results, tmp_path)
        diagnosis = lvdet.diagnose(gt, dt)
        said = kinds_by_row(diagnosis, len(results))
        target = targets_by_row(diagnosis, gt, "right", *POINTING)
        found = {target[row] for row, name in enumerate(said) if name == "right"}
        every = {row["id"] for row in annotations["annotations"]}
        repaired: dict[str, tuple[Json, list[Json]]] = {
            kind: (annotations, mended(kind, annotations, results, said, target))
            for kind in diagnosis.kinds[:5]
        }
        missed = set(gt.id[diagnosis.missed].tolist())
        assert missed == every - found - {target[r] for r in target if said[r] in POINTING}
        repaired["missed"] = without(annotations, missed), results
        repaired["false negatives"] = without(annotations, every - found), results
        repaired["false positives"] = (
            annotations,
            [
                row
                for row, name in zip(results, said, strict=True)
                if name in ("right", "not counted")
            ],
        )
        before = ap50(annotations, results, tmp_path)
        for group, value in before.items():
            assert same(diagnosis.ap[group], value), (seed, group)
        for kind in diagnosis.kinds:
            after = ap50(*repaired[kind], tmp_path)
            for group, value in after.items():
                cost = value - before[group]
                assert same(diagnosis.costs[kind][group], cost), (seed, kind, group)
                if cost > 0.001:
                    mattered.add(kind)
    assert mattered == set(diagnosis.kinds)


def ap50(annotations: Json, results: list[Json], folder: Path) -> dict[str, float]:
    """AP at IoU 0.5 under the budget of AP-Fixed, over all classes and by frequency."""
    gt, dt = read_case(annotations, results, folder)
    fixed = lvdet.evaluate(gt, dt, protocols=["fixed"], thresholds=[0.5], iou="bbox")["fixed"]
    groups = gt.categories.groups()
    return {"all": fixed.AP} | {name: fixed[f"AP{name}"] for name in groups}
