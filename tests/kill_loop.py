"""Kills lvdet at random moments and finishes its work: `python tests/kill_loop.py --kills 300`.

Each command is run once undisturbed, then again and again, each time in a new folder and killed at
a random moment by SIGKILL or SIGTERM. After that:

- what has its final name is whole: the bytes of the undisturbed run
- after SIGTERM nothing else is left, but for what the next run resumes from
- the same command, or the one that resumes, ends well with the same bytes, and then nothing else is
  left, whatever the signal was

Prints a line per command, and the seed; `--seed` repeats a loop.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

LVDET = [sys.executable, "-m", "lvdet"]
#: A temporary file of a killed process is removed once it is this old.
OLD = 120


def same_bytes(path: Path) -> Any:
    return path.read_bytes()


def last_weights(run: Path) -> Any:
    """The weights and momenta of the last checkpoint, bit by bit, and its name; logs have times."""
    from lvdet.training.records.tensor_file import read_tensors

    last = max((run / "checkpoints").glob("step-*"))
    files = [read_tensors(last / f"{name}.safetensors")[0] for name in ("model", "optimizer")]
    return last.name, [
        {name: tensor.numpy().tobytes() for name, tensor in tensors.items()} for tensors in files
    ]


def numbers(path: Path) -> Any:
    """JSON without how long things took."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: timeless(item)
                for key, item in value.items()
                if not any(word in key for word in ("second", "time", "machine", "version"))
            }
        return [timeless(item) for item in value] if isinstance(value, list) else value

    return timeless(json.loads(path.read_bytes()))


@dataclass(frozen=True)
class Job:
    """A command that writes `products` into the folder it is run in; {set} is the folder of what it
    reads. `keeps` may be left besides, to resume from."""

    name: str
    share: int
    command: list[str]
    products: dict[str, Callable[[Path], Any]]
    resume: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
    always: tuple[str, ...] = ()  # left by a finished run as well
    grows: bool = False  # a run that SIGTERM ends writes its products with what it has until then

    def words(self, inputs: Path, *, again: bool) -> list[str]:
        words = [*self.command, *(self.resume if again else ())]
        return [word.replace("{set}", str(inputs)) for word in words]


JOBS = [
    Job(
        "convert",
        14,
        [*LVDET, "convert", "{set}/dt.json", "-o", "out.parquet", "--dets-per-class", "500"],
        {"out.parquet": same_bytes},
    ),
    Job(
        "evaluate",
        14,
        [*LVDET, "evaluate", "{set}/gt.json", "{set}/dt.json", "-o", "out.json",
         "--class-table", "classes.csv"],
        {"out.json": same_bytes, "classes.csv": same_bytes},
    ),
    Job(
        "calibrate",
        10,
        [*LVDET, "calibrate", "fit", "{set}/gt.json", "{set}/dt.json", "-o", "cal.json"],
        {"cal.json": same_bytes},
    ),
    Job(
        "writer",
        14,
        [sys.executable, str(ROOT / "tests" / "writers" / "add_until_killed.py"), "out.jsonl",
         "400", "9", "6"],
        {"out.jsonl": same_bytes},
        keeps=("out.jsonl.parts",),
    ),
    Job(
        "predict",
        5,
        [*LVDET, "predict", "{set}/tiny/run", "{set}/tiny/val.json", "--images",
         "{set}/tiny/images", "-o", "out.jsonl", "--device", "cpu", "--workers", "0", "--batch",
         "2"],
        {"out.jsonl": same_bytes},
        keeps=("out.jsonl.work",),
    ),
    Job(
        "train",
        5,
        [*LVDET, "train", "{set}/train/tiny.toml", "-o", "run", "--device", "cpu", "--set",
         "run.checkpoint_every=1"],
        {"run": last_weights},
        resume=("--resume",),
        keeps=("run",),
    ),
    Job(
        "experiment",
        3,
        [*LVDET, "experiment", "higher_dets_per_im", "--scale", "tiny", "--seeds", "0", "-o",
         "results", "--work", "work", "--device", "cpu"],
        {"results/tables.json": numbers},
        keeps=("results", "work"),
        always=("results", "work"),
        grows=True,
    ),
]  # fmt: skip


def make_inputs(folder: Path, jobs: list[Job]) -> None:
    """Made once; nothing of it may change."""
    import lvdet
    from tabled import write_case

    tables = lvdet.simulate(images=300, classes=80, dets_per_image=100, masks=True, seed=3)
    write_case(*tables, folder)
    names = {job.name for job in jobs}
    if "predict" in names:
        from inference.tiny_run import write_run

        (folder / "tiny").mkdir()
        write_run(folder / "tiny")
    if "train" in names:
        from training.tiny_set import write_set

        write_set(folder / "train")


def start(job: Job, inputs: Path, folder: Path, *, again: bool) -> subprocess.Popen[bytes]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(
        job.words(inputs, again=again),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def finish(job: Job, inputs: Path, folder: Path, *, again: bool) -> float:
    started = time.monotonic()
    process = start(job, inputs, folder, again=again)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, f"{job.name} ended with {process.returncode}: {errors.decode()}"
    return time.monotonic() - started


def content(job: Job, folder: Path) -> dict[str, Any]:
    return {name: read(folder / name) for name, read in job.products.items()}


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def temporary(folder: Path) -> list[Path]:
    """Files that no finished run leaves, however deep."""
    marks = (".part", ".parts", ".work", ".tmp")
    return [
        path
        for path in folder.rglob("*")
        if path.name.startswith(".lvdet-") or path.name.endswith(marks)
    ]


def age(folder: Path) -> None:
    """As if what was left had been there for a while."""
    then = time.time() - OLD
    for path in folder.rglob("*"):
        os.utime(path, (then, then), follow_symlinks=False)


def finished_parts(job: Job, folder: Path, expected: dict[str, Any], what: str) -> bool:
    """Whether all products are there; those that are must be whole."""
    complete = True
    for name, read in job.products.items():
        path = folder / name
        if read is last_weights or not path.exists():
            complete &= read is not last_weights and path.exists()
            continue
        same = read(path) == expected[name]
        assert same or job.grows, f"{what}: {name} is not what it should be"
        complete &= same
    return complete


@dataclass
class Count:
    """What came of the kills of one command."""

    kills: int = 0
    too_late: int = 0
    complete: int = 0  # had all its products all the same
    left: int = 0  # files that only the next run removed


def kill_once(
    job: Job, inputs: Path, folder: Path, expected: dict[str, Any], seconds: float,
    rng: random.Random, count: Count,
) -> None:  # fmt: skip
    kind = rng.choice([signal.SIGKILL, signal.SIGTERM])
    # Most of the time passes in imports: half of the kills come later.
    moment = rng.uniform(0, 1.05) if rng.random() < 0.5 else rng.uniform(0.5, 1.05)
    what = f"{job.name}, {kind.name} after {moment * seconds:.3f} s"
    process = start(job, inputs, folder, again=False)
    try:
        process.wait(moment * seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(kind)
    _, errors = process.communicate(timeout=120)
    if process.returncode == 0:
        count.too_late += 1
    else:
        count.kills += 1
        wanted = {-kind, 128 + kind}
        assert process.returncode in wanted, f"{what}: {process.returncode} {errors.decode()}"
    complete = finished_parts(job, folder, expected, what)
    count.complete += complete and process.returncode != 0
    known = {name.split("/")[0] for name in job.products} | set(job.keeps)
    strange = left(folder) - known
    if kind == signal.SIGTERM and not job.always:
        assert not strange, f"{what}: left {strange}"
    count.left += bool(strange)
    age(folder)
    resumed = not complete or bool(set(job.keeps) & left(folder) - set(job.products))
    if resumed or strange or job.always:
        if complete and job.name in ("predict", "writer"):  # only what lies beside it is removed
            process = start(job, inputs, folder, again=True)
            process.communicate(timeout=600)
        else:
            finish(job, inputs, folder, again=bool(job.resume) and (folder / "run").exists())
    assert content(job, folder) == expected, f"{what}: another result after the next run"
    over = left(folder) - {name.split("/")[0] for name in job.products} - set(job.always)
    assert not over, f"{what}: the next run left {over}"
    found = temporary(folder)
    assert not found, f"{what}: the next run left {found}"


def run(jobs: list[Job], kills: int, seed: int) -> int:
    """How often something was killed. An AssertionError says what went wrong."""
    rng = random.Random(seed)
    whole = sum(job.share for job in jobs)
    print(f"{kills} kills, seed {seed}", flush=True)
    total = 0
    with tempfile.TemporaryDirectory(prefix="lvdet-kills-") as name:
        inputs = Path(name) / "set"
        inputs.mkdir()
        make_inputs(inputs, jobs)
        before = {path: path.stat().st_mtime_ns for path in inputs.rglob("*")}
        for job in jobs:
            first = Path(name) / job.name
            first.mkdir()
            finish(job, inputs, first, again=False)  # its files are in memory from here on
            expected = content(job, first)
            second = Path(name) / f"{job.name}-again"
            second.mkdir()
            seconds = finish(job, inputs, second, again=False)
            assert content(job, second) == expected, f"{job.name}: two runs differ"
            count = Count()
            for number in range(max(1, round(kills * job.share / whole))):
                folder = Path(name) / f"{job.name}-{number}"
                folder.mkdir()
                kill_once(job, inputs, folder, expected, seconds, rng, count)
                shutil.rmtree(folder)
            total += count.kills
            print(
                f"{job.name:<12}{seconds:>7.2f} s {count.kills:>5} killed, {count.too_late} "
                f"finished before, {count.complete} complete all the same, {count.left} left files "
                "that the next run removed",
                flush=True,
            )
        assert before == {path: path.stat().st_mtime_ns for path in inputs.rglob("*")}
    print(f"{total} kills: nothing lost, nothing left, every restart ended with the same bytes")
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 2**31)
    parser.add_argument("--only", default=",".join(job.name for job in JOBS))
    given = parser.parse_args()
    names = given.only.split(",")
    if unknown := sorted(set(names) - {job.name for job in JOBS}):
        parser.error(f"no such command: {', '.join(unknown)}")
    run([job for job in JOBS if job.name in names], given.kills, given.seed)


if __name__ == "__main__":
    main()
