"""Runs native code under sanitizers: `python tests/sanitize.py [address|thread ...]`.

address: AddressSanitizer and UndefinedBehaviorSanitizer under the native tests and the Python tests
         that lean on native code
thread:  ThreadSanitizer under what runs on several threads: readers, matching, bootstrap

lvdet is built again, with the sanitizer, into an environment of its own below build/sanitize; its
runtime library is loaded before Python. What follows `--` replaces the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

from instrumented import ROOT, built

BUILD = ROOT / "build" / "sanitize"

FLAGS = {
    "address": "-fsanitize=address,undefined -fno-sanitize-recover=undefined",
    "thread": "-fsanitize=thread",
}
RUNTIME = {"address": ["libasan.so", "libubsan.so"], "thread": ["libtsan.so"]}
TESTS = {
    "address": [
        *("tests/native", "tests/files", "tests/tables", "tests/limits", "tests/properties"),
        *("tests/parity", "tests/evaluation", "tests/comparison", "tests/writers"),
        *("tests/calibration", "tests/inference/test_paste.py", "tests/test_threads.py"),
        *("tests/integrations/test_mask_functions.py", "tests/fuzzing"),
    ],
    "thread": [
        *("tests/native", "tests/test_threads.py", "tests/files/test_json_chunks.py"),
        *("tests/files/test_stream.py", "tests/files/test_detections_json.py"),
        *("tests/parity/test_masks_parity.py", "tests/properties/test_invariances.py"),
        *("tests/comparison/test_bootstrap.py", "tests/limits"),
        *("tests/inference/test_paste.py",),
    ],
}
OPTIONS = {
    # Python keeps much until it ends; leaks are looked for by the fuzz targets, and by soak.py.
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:strict_string_checks=1",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    # Arrow's allocators unlock mutexes that the sanitizer did not see locked; lvdet's are only held
    # by std::lock_guard and std::unique_lock. Races and deadlocks are still reported.
    "TSAN_OPTIONS": f"suppressions={ROOT / 'tests' / 'sanitize_thread.txt'}:halt_on_error=1"
    ":report_mutex_bugs=0",
}
#: Tests that limit the memory or the addresses of a process, which a sanitizer needs more of, or
#: that time it.
NOT_UNDER_IT = "not more_threads_than and not address_space and not memory and not seconds"


def library(name: str) -> str:
    compiler = os.environ.get("CXX", "g++")
    return subprocess.run(
        [compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True
    ).stdout.strip()


def run(kind: str, arguments: list[str]) -> int:
    started = time.monotonic()
    python = built(BUILD / kind, f"{FLAGS[kind]} -g -fno-omit-frame-pointer")
    ready = time.monotonic()
    reports = BUILD / kind / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir()
    # Into files: pytest keeps what a test writes, and is gone when a sanitizer ends the process.
    environment = os.environ | {
        name: f"{value}:log_path={reports / 'of'}" for name, value in OPTIONS.items()
    }
    environment |= {"LD_PRELOAD": " ".join(map(library, RUNTIME[kind]))}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    tests = arguments or [*TESTS[kind], "-k", NOT_UNDER_IT]
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    end = time.monotonic()
    for report in sorted(reports.iterdir()):
        print(report.read_text(errors="replace")[:20_000])
    outcome = "clean" if done.returncode == 0 else f"FAILED ({done.returncode})"
    print(f"{kind}: {outcome}; built in {ready - started:.0f} s, ran for {end - ready:.0f} s")
    return done.returncode


def main() -> int:
    given = sys.argv[1:]
    at = given.index("--") if "--" in given else len(given)
    kinds, tests = given[:at] or list(FLAGS), given[at + 1 :]
    if unknown := sorted(set(kinds) - set(FLAGS)):
        sys.exit(f"{', '.join(unknown)}: expected {' or '.join(FLAGS)}")
    return max(run(kind, tests) for kind in kinds)


if __name__ == "__main__":
    sys.exit(main())
