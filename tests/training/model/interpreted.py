"""Kernels of a GPU without one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def assert_same(script: str) -> None:
    """The script, run where Triton is interpreted, which a process has to know from the start,
    ends by printing "same"."""
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "same\n", done.stderr
