"""Scalars for TensorBoard."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lvdet.errors import InputError
from lvdet.training.records.log import Log
from lvdet.training.records.scalars import Scalars, numbers

RECORD = {"step": 4, "time": 5.0, "losses": {"box": 0.5, "class": 2}, "gpu_memory": None}


def test_numbers_by_their_path() -> None:
    evaluation = {"step": 4, "evaluation": {"fixed": {"AP": 0.25, "APr": None}, "note": "none"}}
    assert dict(numbers(RECORD)) == {"losses/box": 0.5, "losses/class": 2}
    assert dict(numbers(evaluation)) == {"evaluation/fixed/AP": 0.25}


def test_the_log_writes_them(tmp_path: Path) -> None:
    """Into a writer in TensorBoard's place."""

    class Written:
        records: list[object] = []  # noqa: RUF012

        def write(self, record: object) -> None:
            self.records.append(record)

    log = Log(tmp_path / "log.jsonl", 0, Written())  # type: ignore[arg-type]
    log.write(RECORD)
    assert Written.records == [RECORD]


def test_without_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard.writer", None)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match="TensorBoard is not installed: pip install tensorboard"):
        Scalars(tmp_path, 0)


def test_with_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    Scalars(tmp_path, 0).write(RECORD)
    found = EventAccumulator(str(tmp_path / "tensorboard"))
    found.Reload()
    (event,) = found.Scalars("losses/class")
    assert (event.step, event.value) == (4, 2.0)
