"""Uses one process for long, and looks whether its memory stays flat: `python tests/soak.py`.

evaluations  one table evaluated 10,000 times, and read and evaluated from files
updates      a TopKWriter that a million images are added to
threads      threads that ask one table everything at once, and get the same answers

The mean memory in the last quarter of a run may be a few MB above that in the second. A writer also
remembers the id of each image. Prints a line each.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import lvdet
from tabled import write_case

#: How far memory may go up, in MB.
GROWTH = 8.0
#: Bytes of an image's id in a dict.
ID_BYTES = 150


def held() -> float:
    """MB of memory of this process now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@dataclass(frozen=True)
class Soaked:
    """What a run took."""

    name: str
    times: int
    seconds: float
    before: float
    after: float

    def __str__(self) -> str:
        return (
            f"{self.name:<12} {self.times:>9,} times in {self.seconds:>6,.0f} s; "
            f"{self.before:.1f} MB, then {self.after:.1f} MB"
        )


def repeat(name: str, times: int, once: Callable[[int], None], *, bytes_each: float = 0) -> Soaked:
    """Calls once(number) so often, which may take `bytes_each`; an AssertionError where memory goes
    up by more."""
    samples: list[float] = []
    step = max(1, times // 400)
    started = time.monotonic()
    for number in range(times):
        once(number)
        if number % step == 0:
            samples.append(held())
    gc.collect()
    quarter = len(samples) // 4
    before, after = (
        float(np.mean(part)) for part in (samples[quarter : 2 * quarter], samples[-quarter:])
    )
    soaked = Soaked(name, times, time.monotonic() - started, before, after)
    assert after < before + GROWTH + times / 2 * bytes_each / 1e6, f"memory goes up: {soaked}"
    return soaked


def soak_evaluations(times: int, folder: Path) -> Soaked:
    """Boxes and masks by turns; one in ten is read from its files."""
    gt, dt = lvdet.simulate(images=8, classes=10, dets_per_image=10, masks=True, seed=1)
    paths = write_case(gt, dt, folder)
    expected = {iou: lvdet.evaluate(gt, dt, iou=iou).to_dict() for iou in ("bbox", "segm")}

    def once(number: int) -> None:
        iou = "segm" if number % 2 else "bbox"
        if number % 10 == 0:
            tables = lvdet.read_ground_truth(paths[0]), lvdet.read_detections(paths[1])
        else:
            tables = gt, dt
        found = lvdet.evaluate(*tables, iou=iou).to_dict()
        if number % 10:
            assert found == expected[iou]

    return repeat("evaluations", times, once)


def soak_updates(times: int, folder: Path) -> Soaked:
    """Ten detections of fifty classes per image, the best 100 of each class kept."""
    rng = np.random.default_rng(0)
    boxes = rng.random((1000, 10, 4)) * 100
    scores = rng.random((1000, 10))
    labels = rng.integers(0, 50, (1000, 10))
    target = folder / "out.jsonl"
    best = np.full((50, 100), -1.0)
    with lvdet.TopKWriter(target, dets_per_class=100) as writer:

        def once(number: int) -> None:
            row = (number * 7) % 1000
            # Falling, so that what is kept does not change with the number of images.
            score = scores[row] / (1 + number / times)
            writer.add(number, boxes[row], score, labels[row])
            for label, value in zip(labels[row], score, strict=True):
                lowest = best[label].argmin()
                if value > best[label, lowest]:
                    best[label, lowest] = value

        soaked = repeat("updates", times, once, bytes_each=ID_BYTES)
    kept = lvdet.read_detections(target)
    classes = kept.category_ids[kept.category]
    for label in range(50):
        mine = np.sort(kept.score[classes == label])
        expected = np.sort(best[label][best[label] >= 0])
        assert np.array_equal(mine, expected), f"class {label}: another best"
    return soaked


def soak_threads(times: int, folder: Path) -> Soaked:
    """Eight threads evaluate, sweep, diagnose and convert one pair of tables."""
    gt, dt = lvdet.simulate(images=12, classes=15, dets_per_image=20, masks=True, seed=2)
    questions: list[Callable[[], object]] = [
        lambda: lvdet.evaluate(gt, dt, iou="bbox").to_dict(),
        lambda: lvdet.evaluate(gt, dt, iou="segm").to_dict(),
        lambda: lvdet.sweep(gt, dt, dets_per_image=[1, 5, 20], iou="bbox").to_dict(),
        lambda: lvdet.diagnose(gt, dt, iou="bbox").to_dict(),
    ]
    expected = [ask() for ask in questions]
    wrong: list[str] = []

    def hammer(first: int) -> None:
        try:
            for number in range(first, first + len(questions)):
                place = number % len(questions)
                if questions[place]() != expected[place]:
                    wrong.append(f"question {place} had another answer")
        except BaseException as error:
            wrong.append(repr(error))

    def once(number: int) -> None:
        threads = [threading.Thread(target=hammer, args=(number + k,)) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong, wrong[0]

    return repeat("threads", times, once)


SOAKS = {"evaluations": (10_000, soak_evaluations), "updates": (1_000_000, soak_updates)}
SOAKS["threads"] = (500, soak_threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of times")
    parser.add_argument("--only", default=",".join(SOAKS))
    given = parser.parse_args()
    for name in given.only.split(","):
        times, soak = SOAKS[name]
        with tempfile.TemporaryDirectory(prefix="lvdet-soak-") as folder:
            print(soak(max(8, round(times * given.share)), Path(folder)), flush=True)


if __name__ == "__main__":
    main()
