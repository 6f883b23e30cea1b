"""The table of hostile inputs is what the command line says today."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.run_lvdet import lvdet_call
from hardening.hostile_inputs import (
    BEGIN,
    END,
    INPUTS,
    LARGEST,
    MEMORY,
    PAGE,
    SECONDS,
    Hostile,
    line_of,
    measured,
    said,
)

LINES = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].split("\n")[3:-2]
CASES = [
    pytest.param(one, id=one.what, marks=[pytest.mark.long] if one.long else []) for one in INPUTS
]


def test_each_input_has_its_line() -> None:
    assert [line.split(" | ")[0] for line in LINES] == [f"| {one.what}" for one in INPUTS]


@pytest.mark.parametrize("hostile", CASES)
def test_lines(hostile: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = lvdet_call(*hostile.make(tmp_path).split())
    line = line_of(hostile, done.code, said(done.code, done.out, done.err, tmp_path))
    assert any(there.startswith(line) for there in LINES), line
    assert "Traceback" not in done.err
    made = tmp_path / hostile.name
    assert not made.is_file() or made.is_char_device() or made.stat().st_size <= LARGEST


@pytest.mark.long
@pytest.mark.parametrize("hostile", INPUTS, ids=[one.what for one in INPUTS])
def test_cost(hostile: Hostile, tmp_path: Path) -> None:
    line, seconds, memory = measured(hostile, tmp_path)
    assert any(there.startswith(line) for there in LINES), line
    assert memory < MEMORY
    assert seconds < SECONDS
