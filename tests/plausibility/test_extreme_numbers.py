"""Boxes as large and as small as numbers go: nothing overflows with a warning of NumPy's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lvdet.plausibility.findings import findings
from lvdet.simulation.simulate import simulate
from lvdet.tables.results import Results


@pytest.mark.parametrize("value", [1e308, 5e-324])
@pytest.mark.parametrize("column", [[0], [1], [2], [3], [2, 3], [0, 1, 2, 3]])
def test_extreme_numbers(value: float, column: list[int]) -> None:
    gt, dt = simulate(images=20, classes=10, dets_per_image=20, seed=0)
    box, of_truth = dt.box.copy(), gt.box.copy()
    box[::3, column] = value
    of_truth[::3, column] = value
    for truth in (gt, replace(gt, box=of_truth)):
        for finding in findings(truth, Results.of(replace(dt, box=box))):
            assert "nan" not in str(finding)
