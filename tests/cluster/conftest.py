"""One cluster of two processes for all tests of a session."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator

import pytest

from cluster.listening import processes_with
from lvdet.cluster.connection import LOOPBACK, connected

os.environ.update(LOOPBACK)  # before the tests import Ray

#: Marks the processes of the cluster.
MARK = "LVDET_TEST_CLUSTER"


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    """The value of the mark. At the end, no process is left."""
    os.environ[MARK] = uuid.uuid4().hex
    with connected("local[2]"):
        yield os.environ[MARK]
    end = time.monotonic() + 30
    while left := processes_with(MARK, os.environ[MARK]):
        assert time.monotonic() < end, left
        time.sleep(0.1)
    del os.environ[MARK]
