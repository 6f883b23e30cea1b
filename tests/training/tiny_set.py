"""A set of a few small images with rectangles, a config that trains on it in seconds, and runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from lvdet.training.records.log import read_log
from training.data.small_sets import SmallSet

NAMES = ("square", "bar", "post")
COLOURS = ((220, 40, 40), (40, 200, 60), (50, 70, 230))
SIDES = ((20, 20), (30, 12), (12, 30))


CONFIG = """
[data]
train = "train.json"
train_images = "images"

[input]
sizes = [64]

[model]
backbone = "tiny"
weights = "none"
norm = "group"
anchors = [8, 16, 24, 32, 48]

[schedule]
steps = 6
batch = 2
rate = 0.01
milestones = [5]
warmup_steps = 2

[run]
workers = 0
log_every = 2
checkpoint_every = 2
"""


def write_set(folder: Path, images: int = 8, names: tuple[str, ...] = NAMES) -> Path:
    """Writes images/, train.json in COCO's format, two objects an image, and tiny.toml."""
    random = np.random.default_rng(5)
    made = SmallSet(folder / "images")
    made.categories = [{"id": i, "name": name} for i, name in enumerate(names, start=1)]
    for number in range(1, images + 1):
        pixels = random.integers(90, 160, (64, 64, 3), dtype=np.uint8)
        for _ in range(2):
            kind = len(made.annotations) % len(names)
            w, h = SIDES[kind % 3]
            x, y = (int(random.integers(0, 64 - side)) for side in (w, h))
            pixels[y : y + h, x : x + w] = COLOURS[kind % 3]
            made.annotation(number, kind + 1, (x, y, w, h))
        made.add(number, pixels)
    (folder / "train.json").write_text(json.dumps(made.content()))
    (folder / "tiny.toml").write_text(CONFIG)
    return folder / "train.json"


def sets(*changes: str) -> list[str]:
    """Options of the command line."""
    return [part for change in changes for part in ("--set", change)]


def started(folder: Path, run: Path, *changes: str) -> subprocess.Popen[str]:
    """`lvdet train` under way, in a group of processes of its own."""
    command = [sys.executable, "-m", "lvdet", "train", folder / "tiny.toml", "--output", run]
    return subprocess.Popen(
        [*command, "--device", "cpu", *sets(*changes)],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_log(process: subprocess.Popen[str], run: Path, records: int = 1) -> None:
    """Until the run has this many records, or has ended."""
    end = time.monotonic() + 100
    while len(read_log(run / "log.jsonl")) < records and process.poll() is None:
        assert time.monotonic() < end
        time.sleep(0.005)
