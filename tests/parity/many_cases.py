"""Compares lvdet with lvis, pycocotools and the slow references on many random cases.

    python tests/parity/many_cases.py --cases 100000

The comparisons are those of the parity tests, on seeds that these do not use. Prints a line now and
then; a case that differs ends it, with its seed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

#: Behind all seeds of the tests.
FIRST = 1_000_000
BATCH = 25


@dataclass(frozen=True)
class Batch:
    """Seeds of one kind of case."""

    kind: str
    masks: bool
    seeds: range


def check_batch(batch: Batch) -> int:
    """How many cases agreed, which is all of them or an AssertionError with the seed."""
    import lvdet
    from parity.test_coco_parity import check
    from parity.test_lvis_parity import check_corrected, check_exact

    lvdet.set_threads(1)
    checks = (check,) if batch.kind == "coco" else (check_exact, check_corrected)
    with tempfile.TemporaryDirectory() as name:
        for seed in batch.seeds:
            for compare in checks:
                try:
                    compare(seed, batch.masks, Path(name))
                except AssertionError as error:
                    what = f"{batch.kind}, seed {seed}, masks {batch.masks}"
                    raise AssertionError(f"{what}: {error}") from None
    return len(batch.seeds)


def batches(cases: int, first: int) -> Iterable[Batch]:
    """Two thirds LVIS, one third COCO; boxes and masks by turns."""
    for number, start in enumerate(range(first, first + cases, BATCH)):
        seeds = range(start, min(start + BATCH, first + cases))
        yield Batch("coco" if number % 3 == 2 else "lvis", number % 2 == 1, seeds)


def run(cases: int, first: int, jobs: int) -> None:
    names = ("lvis", "pycocotools", "numpy")
    print(
        f"{cases:,} cases from seed {first:,}, "
        + ", ".join(f"{name} {version(name)}" for name in names),
        flush=True,
    )
    started = said = time.monotonic()
    done = 0
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    with ProcessPoolExecutor(jobs) as pool:
        for count in pool.map(check_batch, batches(cases, first)):
            done += count
            if time.monotonic() - said > 60:
                said = time.monotonic()
                print(f"{done:,} cases, {done / (said - started):.0f}/s", flush=True)
    taken = time.monotonic() - started
    print(f"{done:,} cases in {taken:,.0f} s: every metric agrees to 1e-12", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=FIRST, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    run(given.cases, given.first, given.jobs)


if __name__ == "__main__":
    main()
