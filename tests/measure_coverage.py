"""Measures which lines and branches the tests run: `python tests/measure_coverage.py [-- TESTS]`.

lvdet is built with gcc's --coverage into an environment below build/coverage. The tests of
`make test` run in it, and then the long ones that reach what no other test does; what follows `--`
replaces them all. Processes that tests start count too, but not those that they kill.

Prints the shares of the package's lines and branches and of the native code's lines, and exits with
1 if one is below 95%. Lists of what did not run are in build/coverage: python.txt and native.txt.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from instrumented import ROOT, built

BUILD = ROOT / "build" / "coverage"
OBJECTS = BUILD / "build" / "CMakeFiles" / "_native.dir"
PACKAGES = ["coverage==7.17.3", "gcovr==8.8"]
FLAGS = "--coverage -fprofile-update=atomic -g"
ENOUGH = 95.0
#: Tests that limit the memory or the files of a process, or time it: counting needs all three.
NOT_COUNTED = (
    "not more_threads_than and not address_space and not memory and not seconds"
    " and not full_disk and not no_room"
)
#: Tests of several processes, of kernels and of whole detectors, long only because of their time.
LONG = [
    *("tests/experiments", "tests/cli/test_predict.py", "tests/training/weights"),
    *("tests/training/model/test_gpu_kernels.py", "tests/inference/test_shared_prediction.py"),
    *("tests/training/test_processes.py", "tests/training/test_two_processes.py"),
    *("tests/training/data", "tests/reporting/test_report.py"),
]


def run_tests(python: Path, arguments: list[str]) -> bool:
    for counts in [*BUILD.glob("data*"), *BUILD.rglob("*.gcda")]:
        counts.unlink()
    usual = ["-n", "2", "--dist", "worksteal", "-k", NOT_COUNTED]
    runs = [arguments] if arguments else [usual, [*usual, "-m", "long", *LONG]]
    command = [python, "-m", "coverage", "run", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    codes = [
        subprocess.run([*command, *tests], cwd=ROOT, env=environment(), check=False).returncode
        for tests in runs
    ]
    return not any(codes)


def environment() -> dict[str, str]:
    return os.environ | {"COVERAGE_FILE": str(BUILD / "data")}


def python_totals(python: Path) -> dict[str, Any]:
    def coverage(*arguments: str | Path) -> None:
        command = [python, "-m", "coverage", *arguments]
        subprocess.run(command, cwd=ROOT, env=environment(), check=True, stdout=subprocess.DEVNULL)

    coverage("combine", "--quiet")
    coverage("json", "--quiet", "-o", BUILD / "python.json")
    with (BUILD / "python.txt").open("w", encoding="utf-8") as out:
        command = [python, "-m", "coverage", "report", "--show-missing", "--skip-covered"]
        subprocess.run(command, cwd=ROOT, env=environment(), check=True, stdout=out)
    return json.loads((BUILD / "python.json").read_text(encoding="utf-8"))["totals"]


def native_totals(python: Path) -> dict[str, Any]:
    subprocess.run(
        [python, "-m", "gcovr", "--root", ROOT, "--filter", f"{ROOT / 'native'}/",
         # Of the files outside the repository, some were removed after the build.
         "--gcov-ignore-errors=source_not_found", "--gcov-ignore-errors=no_working_dir_found",
         "--object-directory", OBJECTS, "--merge-lines", "--txt", BUILD / "native.txt",
         "--json-summary", BUILD / "native.json", OBJECTS],
        cwd=ROOT, check=True,
    )  # fmt: skip
    return json.loads((BUILD / "native.json").read_text(encoding="utf-8"))


def main() -> int:
    given = sys.argv[1:]
    if given and given[0] != "--":
        sys.exit(f"{given[0]}: expected -- and the arguments of pytest")
    python = built(BUILD, FLAGS)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    passed = run_tests(python, given[1:])
    ours, native = python_totals(python), native_totals(python)
    shares = {
        "lines of Python": (ours["covered_lines"], ours["num_statements"]),
        "branches of Python": (ours["covered_branches"], ours["num_branches"]),
        "lines of C++": (native["line_covered"], native["line_total"]),
    }
    for name, (covered, all_of_them) in shares.items():
        print(f"{name:<20}{covered:>7,} of {all_of_them:>7,}  {100 * covered / all_of_them:5.1f}%")
    enough = all(100 * covered >= ENOUGH * total for covered, total in shares.values())
    return 0 if passed and enough else 1


if __name__ == "__main__":
    sys.exit(main())
