"""One cluster of two processes for all tests of a session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from lvdet.cluster.connection import LOOPBACK, connected

os.environ.update(LOOPBACK)  # before the tests import Ray


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    with connected("local[2]"):
        yield
