"""The processes that load images: signals, deaths, and how many of them there are."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest

from lvdet.errors import InputError
from lvdet.training.data import loader_workers as workers
from lvdet.training.data.loader_workers import plan, work_ahead

MEGABYTES = 1 << 20


def own_id(job: int) -> int:
    return os.getpid()


def test_signals_are_for_the_process_that_trains() -> None:
    source = work_ahead(own_id, lambda: iter(range(40)), 2, 1)
    first = next(source)
    assert first != os.getpid()
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(first, number)
    time.sleep(0.2)
    rest = list(source)
    assert len(rest) == 39
    assert first in rest[-2:], "it works until the end"


def test_a_death_is_told_when_the_next_batch_is_asked_for() -> None:
    """Not in the middle of a step, where torch's handler would raise."""
    before = signal.getsignal(signal.SIGCHLD)
    source = work_ahead(own_id, lambda: iter(range(1000)), 1, 1)
    os.kill(next(source), signal.SIGKILL)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        pass
    assert signal.getsignal(signal.SIGCHLD) == before
    with pytest.raises(InputError, match=r"one of 1 processes .* run\.workers"):
        list(source)


def fail(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize(
    ("error", "says"),
    [(MemoryError(), "not enough memory"), (OSError(5, "Input/output error"), "Input/output")],
)
def test_errors_are_one_line(count: int, error: BaseException, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        list(work_ahead(fail, lambda: iter([error]), count, 1))
    assert "\n" not in str(caught.value)


def machine(monkeypatch: pytest.MonkeyPatch, cores: int, megabytes: int, sharing: int) -> None:
    usage: Any = type("Usage", (), {"free": megabytes * MEGABYTES})
    monkeypatch.setattr(workers.shutil, "disk_usage", lambda _: usage)
    monkeypatch.setattr(workers, "core_count", lambda: cores)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(sharing))


def test_processes_on_a_machine_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, 32, 100_000, 8)
    assert plan(-1, MEGABYTES) == (4, 4)
    assert plan(6, MEGABYTES) == (6, 4), "each gets what was requested"
    machine(monkeypatch, 4, 100_000, 8)
    assert plan(-1, MEGABYTES)[0] == 1
    machine(monkeypatch, 64, 100_000, 1)
    assert plan(-1, MEGABYTES)[0] == 8
    for sharing in (1, 2, 4, 8):
        machine(monkeypatch, 64, 800, sharing)
        count, ahead = plan(8, 10 * MEGABYTES)
        assert count >= 1
        assert sharing * count * (ahead + 1) * 10 <= 600


@pytest.mark.parametrize("rank", ["0", "1"])
def test_too_little_shared_memory_is_said_once(
    rank: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    workers._print_once.cache_clear()
    machine(monkeypatch, 8, 64, 1)
    monkeypatch.setenv("RANK", rank)
    for asked in (4, -1, 0):
        made = list(work_ahead(own_id, lambda: iter(range(2)), asked, 60 * MEGABYTES))
        assert made == [os.getpid()] * 2
    err = capfd.readouterr().err
    assert err.count("\n") == (rank == "0")
    assert ("/dev/shm has no room" in err) == (rank == "0")


def test_nothing_is_said_where_none_were_asked_for(capfd: pytest.CaptureFixture[str]) -> None:
    list(work_ahead(own_id, lambda: iter(range(2)), 0, 1))
    assert capfd.readouterr().err == ""
