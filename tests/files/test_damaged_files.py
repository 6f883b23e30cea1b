"""Random damage to good files: a table or an InputError, never another error or a crash."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("mutate_and_read.py")
KINDS = ("annotations", "detections", "lines")


@pytest.mark.parametrize(
    ("kind", "examples"),
    [
        *(("annotations", 150), ("detections", 150), ("lines", 100)),
        *(pytest.param(kind, 8_000, marks=pytest.mark.long) for kind in KINDS),
    ],
)
def test_damaged_files(kind: str, examples: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, kind, str(examples)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    outcomes = json.loads(done.stdout.splitlines()[-1])
    assert outcomes["read"] > examples / 10, "damage that is not seen must be among it"
    assert outcomes["refused"] > examples / 10
