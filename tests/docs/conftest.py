"""The files of `lvdet demo`, made once for all workers."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def demo_files(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    base = tmp_path_factory.getbasetemp()
    shared = (base if worker_id == "master" else base.parent) / "docs-demo"
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "complete").exists():
            command = [sys.executable, "-m", "lvdet", "demo", "demo"]
            subprocess.run(command, cwd=shared, check=True, capture_output=True)
            (shared / "complete").touch()
    return shared / "demo"


@pytest.fixture
def folder(demo_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the demo's files, the current one: what is written there stays there."""
    (tmp_path / "demo").mkdir()
    for file in demo_files.iterdir():
        os.link(file, tmp_path / "demo" / file.name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
