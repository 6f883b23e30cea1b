"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

import lvdet
from tabled import Tables

# Examples are drawn from a fixed seed: a failure seen once is seen again.
for name, examples in (("lvdet", 25), ("long", 400)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("lvdet")

# `nohup make test &` starts this process deaf to Ctrl-C, and so all that it starts: the tests of
# interrupts need the usual way.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def default_threads() -> Iterator[None]:
    """No test leaves its number of threads to the next."""
    yield
    lvdet.set_threads(None)


@pytest.fixture(scope="session")
def truncated() -> Tables:
    """All images have the 300 detections that a limit left."""
    return lvdet.simulate(images=30, classes=400, dets_per_image=300, seed=1)
