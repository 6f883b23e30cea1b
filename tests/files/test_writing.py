"""Files appear whole or not at all, and nothing is written through what somebody has planted."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from files.windows_rules import keep_open_files
from lvdet.errors import InputError, OutputError
from lvdet.files.locking import lock_folder
from lvdet.files.writing import write_text, write_whole


def part_of(folder: Path) -> Path:
    (part,) = folder.glob(".lvdet-*.part")
    return part


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_that_is_replaced_keeps_its_mode(mode: int, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    write_text("old", target)
    target.chmod(mode)
    with write_whole(target) as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == mode
        file.write(b"new")
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == mode


def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    write_text("new", tmp_path / "out.json")
    (tmp_path / "other").write_text("")
    assert (tmp_path / "out.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_part_that_is_there_is_not_written_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even through a link of its name."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(time, "monotonic_ns", lambda: 5)
    with write_whole(tmp_path / "out.json"):
        planted = part_of(tmp_path)
    for plant in (planted.symlink_to, planted.hardlink_to):
        plant(victim)
        with pytest.raises(OutputError, match="cannot write: File exists"):
            write_text("yours", tmp_path / "out.json")
        assert victim.read_text() == "mine"
        planted.unlink()


def test_parts_of_killed_processes_are_removed(tmp_path: Path) -> None:
    """Those of the same target that nobody has locked, once they are old enough to have been."""
    with write_whole(tmp_path / "out.json"):
        name = part_of(tmp_path).name
    left = {kind: tmp_path / name.replace(".part", f"{kind}.part") for kind in ("a", "b", "c", "d")}
    other = tmp_path / name.replace(name.split("-")[1], "00000000")
    for path in (*left.values(), other):
        path.write_text("")
        os.utime(path, (0, 0))
    os.utime(left["b"])
    left["d"].unlink()
    left["d"].symlink_to(other)
    with open(left["c"]) as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        write_text("new", tmp_path / "out.json")
    assert sorted(tmp_path.iterdir()) == sorted(
        [tmp_path / "out.json", other, left["b"], left["c"], left["d"]]
    )


def test_a_lock_is_no_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / ".lock").symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        lock_folder(folder, ".lock", "held")
    assert not victim.exists()
    (folder / ".lock").unlink()
    with lock_folder(folder, ".lock", "held"), pytest.raises(InputError, match="held"):
        lock_folder(folder, ".lock", "held")


def test_sigterm_leaves_no_part(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "in.jsonl")
    command = ["convert", tmp_path / "in.jsonl", "-o", tmp_path / "out.json"]
    with subprocess.Popen(
        [sys.executable, "-m", "lvdet", *command], stderr=subprocess.PIPE
    ) as process:
        with open(tmp_path / "in.jsonl", "wb") as source:
            while not [*tmp_path.glob(".lvdet-*.part")]:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.1)
            source.close()
        assert process.wait() == 128 + signal.SIGTERM
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_where_open_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Windows: what is replaced or removed is closed before."""
    keep_open_files(monkeypatch)
    target = tmp_path / "file"
    for content in (b"first", b"second"):
        with write_whole(target) as file:
            file.write(content)
        assert target.read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
