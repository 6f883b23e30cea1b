"""The fuzz targets themselves: a few inputs of each, and a minute of all in `make test-long`."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "fuzz"))

import python_targets  # noqa: E402

#: Imports PyTorch, or starts a process.
SLOW = {"tensors", "masks", "outlines"}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long) if name in SLOW else name
        for name in python_targets.TARGETS
    ],
)
def test_first_inputs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.fsync", lambda _: None)
    target, outcome = python_targets.TARGETS[name], python_targets.Outcome()
    path = tmp_path / f"input{target.ending}"
    for content in itertools.islice(python_targets.inputs(target.make, 0), 12):
        path.write_bytes(content)
        python_targets.try_one(target, path, outcome)
        assert not outcome.finding
    assert outcome.read + outcome.refused == 12


def test_a_finding_is_told_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(path: Path) -> None:
        if path.read_bytes() != b"[1]":
            raise KeyError("what no user should see")

    target = python_targets.Target(lambda rng: rng.choice([b"[1]", b"[2]"]), fails)
    monkeypatch.setitem(python_targets.TARGETS, "made", target)
    outcome = python_targets.run("made", 60, tmp_path, 0)
    assert "what no user should see" in outcome.finding
    (kept,) = tmp_path.glob("made-crash-*.json")
    assert kept.read_bytes() == b"[2]"


@pytest.mark.long
def test_a_minute_of_all() -> None:
    """About; native targets are built first, with a compiler that is installed where it may be."""
    clang = subprocess.run(
        ["sh", ROOT / "fuzz" / "install_clang.sh"], capture_output=True, text=True, check=False
    )
    if clang.returncode:
        pytest.skip(clang.stderr.strip())
    command = [sys.executable, ROOT / "fuzz" / "run.py", "--seconds", "60", "--jobs", "1"]
    done = subprocess.run([*command, "--log", ROOT / "build" / "fuzz" / "minute.txt"], check=False)
    assert done.returncode == 0
