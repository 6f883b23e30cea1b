"""A handful of kills of each command; `make kill-loop` makes hundreds."""

from __future__ import annotations

import pytest

import kill_loop


@pytest.mark.long
@pytest.mark.parametrize("job", kill_loop.JOBS, ids=lambda job: job.name)
def test_a_few_kills(job: kill_loop.Job) -> None:
    kill_loop.run([job], 2 if "experiment" in job.name else 4, seed=1)
