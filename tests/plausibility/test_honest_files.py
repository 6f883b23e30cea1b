"""Of honest files nothing is said, however weak the detector."""

from __future__ import annotations

import pytest
from honest_files import honest_file

from long_cases import first
from lvdet.plausibility.findings import findings
from lvdet.tables.results import Results

#: Classes at random, in images with many objects of one class: found together or missed together.
CHANCE = (1390, 2264, 2540)


@pytest.mark.parametrize("seed", [*first(100, range(1_000)), *CHANCE])
def test_nothing_is_said(seed: int) -> None:
    kind, gt, dt = honest_file(seed)
    assert findings(gt, Results.of(dt)) == [], kind
