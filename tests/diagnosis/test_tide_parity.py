"""The same kinds, the same objects, the same costs as tidecv."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import lvdet
from diagnosis.error_sets import kinds_by_row, targets_by_row
from lvdet.diagnosis.kinds import ROW_KINDS
from oracles.error_cases import error_case
from oracles.tide_reference import diagnose_by_tide, uncertain
from tabled import read_case

SEEDS = 60


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("federated", [False, True])
def test_kinds_and_costs(federated: bool, masks: bool, tmp_path: Path) -> None:
    met: Counter[str] = Counter()
    for seed in range(SEEDS):
        annotations, results = error_case(seed, federated=federated, masks=masks)
        gt, dt = read_case(annotations, results, tmp_path)
        ours = lvdet.diagnose(gt, dt, iou="segm" if masks else "bbox")
        tide = diagnose_by_tide(annotations, results, masks)
        assert kinds_by_row(ours, len(results)) == tide.kinds, seed
        assert targets_by_row(ours, gt, "classification", "localisation") == tide.target, seed
        assert set(gt.id[ours.missed].tolist()) == tide.missed, seed
        met.update(tide.kinds)
        met["missed"] += len(tide.missed)
        objects = dict(zip(gt.categories.ids.tolist(), ours.instances.tolist(), strict=True))
        places = {number: place for place, number in enumerate(gt.categories.ids.tolist())}
        for number, value in tide.before.items():
            assert abs(ours.class_ap[places[number]] - value) <= uncertain(objects[number])
        mended = ours.class_ap[:, None] + ours.class_costs
        for column, name in enumerate(ours.kinds):
            for number, place in places.items():
                expected = tide.after[name].get(number)
                if expected is None:
                    assert np.isnan(mended[place, column]), (seed, name, number)
                else:
                    # A class with fewer objects to find reaches other recalls.
                    off = max(uncertain(count) for count in range(1, objects[number] + 1))
                    assert abs(mended[place, column] - expected) <= off, (seed, name, number)
    assert min(met[name] for name in ROW_KINDS[:-1]) >= 20, met


def test_most_classes_are_compared_to_the_last_digit() -> None:
    assert [n for n in range(1, 10) if uncertain(n) > 1e-12] == []
