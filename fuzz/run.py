"""Fuzzes for a while and logs what came of it: `python fuzz/run.py --seconds 900`.

Each target gets a share of the seconds; `--jobs` of them run at a time. What was found stays in
build/fuzz/corpus for the next time; inputs that fail stay in build/fuzz/found, and the exit code
is 1. The log has a line per target.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FUZZ, BUILD = ROOT / "fuzz", ROOT / "build" / "fuzz"

#: Shares of the time. Native ones are libFuzzer's.
NATIVE = {
    "detections": 12, "annotations": 8, "rle": 6, "polygons": 6, "number": 4, "paste": 3,
    "image_names": 3,
}  # fmt: skip
PYTHON = {
    "grammar": 4, "results": 4, "truth": 4, "masks": 4, "outlines": 3, "calibrator": 2,
    "thresholds": 1, "threshold_table": 1, "config": 1, "tensors": 1, "pickle": 2, "gzip": 1,
    "arrays": 2, "parquet": 2, "journal": 2, "partial": 2,
}  # fmt: skip
#: Readers with threads, for races.
THREADED = {"detections": 1, "annotations": 1, "paste": 1}

#: What an input may take: seconds, MB.
LIMITS = ("-timeout=10", "-rss_limit_mb=1024")
DICTIONARIES = {"detections": "json.dict", "annotations": "json.dict"}
LONGEST = {"detections": 1500, "annotations": 1500, "number": 200, "image_names": 400}


@dataclass(frozen=True)
class Line:
    """What came of a target."""

    name: str
    seconds: float
    runs: int
    notes: str
    failed: str = ""

    def __str__(self) -> str:
        rate = self.runs / max(self.seconds, 1e-9)
        end = "FAILED" if self.failed else "ok"
        return (
            f"{self.name:<22}{self.seconds:>6.0f} s{self.runs:>13,} runs{rate:>9,.0f}/s  "
            f"{self.notes:<28}  {end}"
        )


def build(sanitizers: str) -> Path:
    """The folder of the native targets."""
    clang = subprocess.run(
        ["sh", FUZZ / "install_clang.sh"], stdout=subprocess.PIPE, text=True, check=False
    )
    if clang.returncode:
        sys.exit("no clang with libFuzzer")
    folder = BUILD / sanitizers.replace(",", "-")
    compiler = clang.stdout.strip()
    options = [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DLVDET_SANITIZERS={sanitizers}"]
    for command in (
        ["cmake", "-S", FUZZ, "-B", folder, *options],
        ["cmake", "--build", folder, "--parallel", str(os.cpu_count() or 1)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout[-4000:] + done.stderr[-4000:])
    subprocess.run([sys.executable, FUZZ / "make_seeds.py", BUILD / "seeds"], check=True)
    return folder


def run_native(name: str, seconds: float, folder: Path, seed: int) -> Line:
    corpus, seeds, found = BUILD / "corpus" / name, BUILD / "seeds" / name, BUILD / "found"
    for path in (corpus, found):
        path.mkdir(parents=True, exist_ok=True)
    options = [f"-max_total_time={max(1, round(seconds))}", f"-seed={seed}", *LIMITS]
    options += [f"-max_len={LONGEST.get(name, 1024)}", f"-artifact_prefix={found}/{name}-"]
    options += ["-print_final_stats=1"]
    if name in DICTIONARIES:
        options.append(f"-dict={FUZZ / DICTIONARIES[name]}")
    threads = "thread" in folder.name
    if threads:
        options.append("-rss_limit_mb=4096")  # the sanitizer's own
    environment = os.environ | {"ASAN_OPTIONS": "detect_stack_use_after_return=0"}
    started = time.monotonic()
    done = subprocess.run(
        [folder / name, *options, corpus, seeds],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment, check=False,
    )  # fmt: skip
    text = done.stderr.decode(errors="replace")
    runs = re.findall(r"number_of_executed_units: (\d+)", text)
    edges = re.findall(r"cov: (\d+) ", text)
    peak = re.findall(r"peak_rss_mb: +(\d+)", text)
    notes = f"{int(edges[-1]) if edges else 0:,} edges, {peak[-1] if peak else '?'} MB"
    shown = f"{name} (threads)" if threads else name
    failed = text[-6000:] if done.returncode else ""
    return Line(shown, time.monotonic() - started, int(runs[-1]) if runs else 0, notes, failed)


def run_python(name: str, seconds: float, seed: int) -> Line:
    command = [sys.executable, FUZZ / "python_targets.py", name, str(seconds), BUILD / "found"]
    started = time.monotonic()
    done = subprocess.run(
        [*command, "--seed", str(seed)],
        capture_output=True, text=True, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"}, check=False,
    )  # fmt: skip
    taken = time.monotonic() - started
    try:
        told = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        told = {"runs": 0, "read": 0, "reference_crashes": 0}
    notes = f"{told['read']:,} read"
    if told["reference_crashes"]:
        notes += f", pycocotools died {told['reference_crashes']} times"
    return Line(name, taken, told["runs"], notes, done.stderr[-6000:] if done.returncode else "")


def machine() -> str:
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if "model name" in line),
        platform.machine(),
    )
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}"


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=900, help="for all targets, per job")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 2**31)
    parser.add_argument("--targets", default=",".join([*NATIVE, *PYTHON]))
    parser.add_argument("--threads", action="store_true", help="readers under ThreadSanitizer")
    parser.add_argument("--log", type=Path, default=BUILD / "log.txt")
    given = parser.parse_args()
    names = list(THREADED) if given.threads else given.targets.split(",")
    shares = THREADED if given.threads else NATIVE | PYTHON
    if unknown := sorted(set(names) - set(shares)):
        parser.error(f"no such target: {', '.join(unknown)}")
    folder = build("thread" if given.threads else "address,undefined")
    whole = sum(shares[name] for name in names)
    given.log.parent.mkdir(parents=True, exist_ok=True)
    lines: list[Line] = []
    with given.log.open("w") as log, ThreadPoolExecutor(given.jobs) as pool:

        def say(text: str) -> None:
            print(text, flush=True)
            print(text, file=log, flush=True)

        def run(name: str) -> Line:
            seconds = given.seconds * given.jobs * shares[name] / whole
            if name in NATIVE:
                return run_native(name, seconds, folder, given.seed)
            return run_python(name, seconds, given.seed)

        say(f"{len(names)} targets, seed {given.seed}, {machine()}")
        started = time.monotonic()
        # Python's targets begin with what the native ones found.
        for group in (NATIVE, PYTHON):
            for line in pool.map(run, [name for name in names if name in group]):
                say(str(line))
                if line.failed:
                    say(line.failed)
                lines.append(line)
        failed = [line.name for line in lines if line.failed]
        say(
            f"{sum(line.runs for line in lines):,} runs in {time.monotonic() - started:,.0f} s: "
            + (f"FAILED: {', '.join(failed)}" if failed else "no finding")
        )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
