"""Processes killed by SIGKILL lose nothing that was finished, and double nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

import lvdet
from writers.added_images import best, journal_of, random_images, records_of

HERE = Path(__file__).parent
ENVIRONMENT = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
IMAGES, SEED, PER_CLASS = 400, 9, 6


def test_killed_at_every_step(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "kill_at_every_step.py", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 60


@pytest.mark.parametrize(("ending", "closing"), [(".jsonl", 0.02), (".parquet", 0.4)])
def test_killed_at_random_moments(ending: str, closing: float, tmp_path: Path) -> None:
    """Some runs in the middle of adding, some in the seconds of closing, the last to its end."""
    images = random_images(IMAGES, SEED)
    target = tmp_path / f"out{ending}"
    expected = best(images, PER_CLASS)
    rng = random.Random(0)
    added: list[int] = []
    for stop in (1, 60, 90, 120, IMAGES, IMAGES, IMAGES, None):
        added += run_and_kill(target, stop, closing * rng.random())
        assert len(set(added)) == len(added)
        if target.exists():
            assert records_of(target) == expected
            break
        assert journal_of(target).exists()
    else:
        pytest.fail("it was never finished")
    # Of what was added the process may have been killed before it could say so.
    assert [image_id for image_id, _ in images if image_id in set(added)] == added
    assert len(added) >= IMAGES - 8
    if journal_of(target).exists():  # killed while it removed the journal
        with pytest.raises(lvdet.InputError, match="already exists"):
            lvdet.TopKWriter(target, dets_per_class=PER_CLASS)
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
    assert records_of(target) == expected


def run_and_kill(target: Path, stop: int | None, closing: float) -> list[int]:
    """Runs until so many images were told, or it is closing, and a moment more."""
    command = [sys.executable, HERE / "add_until_killed.py", target]
    told = []
    with subprocess.Popen(
        [*command, *map(str, (IMAGES, SEED, PER_CLASS))], stdout=subprocess.PIPE, env=ENVIRONMENT
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            word = line.decode().strip()
            if word.removeprefix("-").isdigit():
                told.append(int(word))
            if stop is not None and (word == "closing" or len(told) == stop):
                time.sleep(closing if word == "closing" else closing / 50)
                process.kill()
                stop = None
    return told
