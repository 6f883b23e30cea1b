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
    mark = os.environ[MARK] = uuid.uuid4().hex
    with connected("local[2]"):
        del os.environ[MARK]  # what other tests start is not of the cluster
        yield mark
    end = time.monotonic() + 30
    while left := processes_with(MARK, mark):
        assert time.monotonic() < end, left
        time.sleep(0.1)
