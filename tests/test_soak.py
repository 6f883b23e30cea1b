"""A hundredth of the soak; `make soak` is all of it."""

from __future__ import annotations

import mmap
import subprocess
import sys
from pathlib import Path

import pytest

import soak


@pytest.mark.long
@pytest.mark.parametrize("name", soak.SOAKS)
def test_memory_stays_flat(name: str) -> None:
    """In a process of its own, whose memory nothing else changes."""
    script = Path(__file__).with_name("soak.py")
    command = [sys.executable, script, "--share", "0.02", "--only", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_a_leak_is_seen() -> None:
    """Of pages from the system: memory that this process freed before is no growth."""
    kept: list[mmap.mmap] = []

    def leak(_: int) -> None:
        kept.append(mmap.mmap(-1, 200_000))
        kept[-1].write(b"x" * 200_000)

    with pytest.raises(AssertionError, match="memory goes up"):
        soak.repeat("leak", 400, leak)
