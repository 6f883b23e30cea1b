"""One cluster of two processes for the tests of this folder that ask for it. It ends with them: the
tests of other folders start their own."""

from __future__ import annotations

import os
import time
import uuid
from contextlib import ExitStack
from pathlib import Path

import pytest

from cluster.listening import processes_with
from lvdet.cluster.connection import LOOPBACK, connected

os.environ.update(LOOPBACK)  # before the tests import Ray

HERE = Path(__file__).parent
#: Marks the processes of the cluster, by a value of this process's.
MARK, VALUE = "LVDET_TEST_CLUSTER", uuid.uuid4().hex
_RUNNING = ExitStack()
_STARTED: list[bool] = []


def pytest_runtest_setup(item: pytest.Item) -> None:
    if "cluster" in getattr(item, "fixturenames", ()) and not _STARTED:
        os.environ[MARK] = VALUE
        try:
            _RUNNING.enter_context(connected("local[2]"))
        finally:
            del os.environ[MARK]  # what other tests start is not of the cluster
        _STARTED.append(True)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """At the end, no process is left."""
    if not _STARTED or (nextitem is not None and HERE in nextitem.path.parents):
        return
    _STARTED.clear()
    _RUNNING.close()
    end = time.monotonic() + 30
    while left := processes_with(MARK, VALUE):
        assert time.monotonic() < end, left
        time.sleep(0.1)


@pytest.fixture(scope="session")
def cluster() -> str:
    """The value of the mark."""
    return VALUE
