"""Changes the code a little and looks whether a test notices: `python tests/mutants.py`.

python  a sample of all changes of limits, matching and metrics
native  a sample of all changes of the matcher and the accumulator

lvdet is built into an environment below build/mutants, where one change at a time is made. A change
that does not compile, or compiles to the same code, is not counted, nor one of
equivalent_mutants.py, which changes no answer. A test that fails, crashes or takes too long kills
the mutant. Prints what became of each, and how many were killed; exits with 1 if fewer than 90%
were. `--seed` draws another sample; `--only TEXT` takes the mutants described so.
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib.util
import os
import random
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import native_mutants
import python_mutants
from equivalent_mutants import EQUIVALENT
from instrumented import ROOT, built
from python_mutants import Mutant

BUILD = ROOT / "build" / "mutants"
OBJECTS = BUILD / "build" / "CMakeFiles" / "_native.dir" / "native"
FLAGS = "-O1"

EVALUATION = (
    "average_precision", "pooled", "summary", "precision_recall", "protocols", "class_subsets",
)  # fmt: skip
PYTHON = [
    *sorted(path.relative_to(ROOT) for path in (ROOT / "src/lvdet/limits").glob("[!_]*.py")),
    *sorted(path.relative_to(ROOT) for path in (ROOT / "src/lvdet/matching").glob("[!_]*.py")),
    *(Path(f"src/lvdet/evaluation/{name}.py") for name in EVALUATION),
]
#: Each with the files to compile again.
NATIVE = {
    Path("native/match.cpp"): ["match.cpp"],
    Path("native/accumulate.cpp"): ["accumulate.cpp"],
    Path("native/walk.hpp"): ["accumulate.cpp", "bootstrap.cpp"],
}
#: By the beginning of a path. The quickest first: most mutants do not live to see the others.
TESTS = {
    "src/lvdet/limits/": [
        *("tests/limits", "tests/evaluation/test_chains.py"),
        *("tests/properties/test_budgets_are_masks.py", "tests/files/test_streaming.py"),
    ],
    "src/lvdet/matching/": [
        *("tests/parity/test_golden_metrics.py", "tests/files/test_bad_pairs.py"),
        *("tests/evaluation/test_pair.py", "tests/native/test_kernels.py"),
        *("tests/evaluation/test_protocols.py", "tests/evaluation/test_agnostic_recall.py"),
        "tests/parity/test_agnostic_recall_parity.py",
    ],
    "src/lvdet/evaluation/": [
        *("tests/parity/test_golden_metrics.py", "tests/evaluation/test_protocols.py"),
        *("tests/evaluation", "tests/tables/test_outcomes.py", "tests/reporting/test_figures.py"),
        "tests/files/test_streaming.py",
    ],
    "native/": [
        *("tests/parity/test_golden_metrics.py", "tests/native/test_kernels.py"),
        *("tests/tables/test_outcomes.py", "tests/evaluation/test_ties.py"),
        *("tests/comparison/test_bootstrap.py", "tests/evaluation/test_protocols.py"),
        *("tests/evaluation/test_agnostic_recall.py", "tests/integrations/test_cocoeval.py"),
    ],
}
#: Tests that a limit of CPU time or memory changes.
NOT_IN_TIME = "not more_threads_than and not memory"
ENOUGH = 0.9
OUTCOMES = {True: "killed", False: "SURVIVED", None: "same"}
#: Imported once, not by each of the processes that test a mutant.
SHARED = ("numpy", "lvis", "pycocotools.cocoeval", "pyarrow.parquet")


def package() -> Path:
    return Path(sysconfig.get_path("purelib")) / "lvdet"


def beginning_of(path: str) -> str:
    return next(beginning for beginning in TESTS if path.startswith(beginning))


@functools.cache
def time_enough(beginning: str) -> int:
    """Seconds of CPU time in which these tests end, which pass without a mutant."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if outcome(TESTS[beginning], 3600):
        sys.exit(f"the tests of {beginning} fail without any change")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    taken = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"the tests of {beginning} take {taken:.0f} s of CPU time", flush=True)
    return int(1.5 * taken) + 5


def lives(path: str, seconds: int) -> bool:
    return outcome(TESTS[beginning_of(path)], seconds) == 0


def outcome(tests: Sequence[str], seconds: int) -> int:
    """0 if tests pass in a new process, within so many seconds of CPU time."""
    process = os.fork()
    if process == 0:
        import pytest

        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        arguments = ["-x", "-q", "-p", "no:cacheprovider", "-k", NOT_IN_TIME]
        os._exit(int(pytest.main([*arguments, *tests])))
    return os.waitpid(process, 0)[1]


def killed_python(mutant: Mutant, seconds: int) -> bool:
    place = package() / Path(mutant.path).relative_to("src/lvdet")
    original = place.read_text(encoding="utf-8")
    put(place, mutant.text)
    try:
        return not lives(mutant.path, seconds)
    finally:
        put(place, original)


def put(place: Path, text: str) -> None:
    """A text in the place of a module, and no bytecode of the one before."""
    Path(importlib.util.cache_from_source(str(place))).unlink(missing_ok=True)
    place.write_text(text, encoding="utf-8")


def killed_native(mutant: Mutant, seconds: int) -> bool | None:
    """None if the code is the same, or none at all."""
    sources = NATIVE[Path(mutant.path)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "native", folder / "native")
        (folder / mutant.path).write_text(mutant.text, encoding="utf-8")
        changed = [compiled(folder, folder, source) for source in sources]
        if changed == [unchanged(source) for source in sources] or None in changed:
            return None
        module = next(package().glob("_native*.so"))
        kept = folder / "original.so"
        shutil.copy2(module, kept)
        link(module, folder, sources)
        try:
            return not lives(mutant.path, seconds)
        finally:
            replace(module, kept)


@functools.cache
def unchanged(source: str) -> bytes | None:
    return compiled(ROOT, BUILD, source)


def compiled(folder: Path, into: Path, source: str) -> bytes | None:
    command = ["g++", "-std=c++20", "-O1", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden"]
    out = into / f"{source}.o"
    done = subprocess.run(
        [*command, "-c", f"native/{source}", "-o", out],
        cwd=folder, stderr=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    return None if done.returncode else out.read_bytes()


def link(module: Path, folder: Path, sources: Sequence[str]) -> None:
    others = [path for path in OBJECTS.glob("*.o") if path.name.removesuffix(".o") not in sources]
    ours = [folder / f"{source}.o" for source in sources]
    library = next((BUILD / "build").glob("libnanobind*.a"))
    new = folder / "new.so"
    command = ["g++", "-shared", "-pthread", *ours, *others, library, "-o", new]
    subprocess.run(command, check=True)
    replace(module, new)


def replace(module: Path, new: Path) -> None:
    """Another file under the name: a process may still have the old one mapped."""
    beside = module.with_suffix(".new")
    shutil.copy2(new, beside)
    beside.replace(module)


def drawn(kind: str, count: int, seed: int, only: str) -> list[Mutant]:
    makers = {"python": (PYTHON, python_mutants), "native": (list(NATIVE), native_mutants)}
    paths, maker = makers[kind]
    found = [
        mutant
        for path in paths
        for mutant in maker.mutants(str(path), (ROOT / path).read_text(encoding="utf-8"))
        if only in str(mutant)
    ]
    print(f"{kind}: {len(found):,} mutants of {len(paths)} files", flush=True)
    return random.Random(seed).sample(found, min(count, len(found)))


def share_killed(kind: str, mutants: Sequence[Mutant]) -> float:
    killed: Callable[[Mutant, int], bool | None]
    killed = killed_python if kind == "python" else killed_native
    counted = lived = explained = 0
    started = time.monotonic()
    for mutant in mutants:
        if mutant.changed in EQUIVALENT.get(mutant.path, {}):
            explained += 1
            continue
        result = killed(mutant, time_enough(beginning_of(mutant.path)))
        counted += result is not None
        if result is False:
            lived += 1
        print(f"{OUTCOMES[result]:<10}{mutant}", flush=True)
    taken = time.monotonic() - started
    print(
        f"{kind}: {counted - lived} of {counted} killed, {explained} change no answer; "
        f"{taken:,.0f} s",
        flush=True,
    )
    return 1 - lived / max(counted, 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=int, default=150, metavar="N", help="size of the sample")
    parser.add_argument("--native", type=int, default=60, metavar="N", help="size of the sample")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="TEXT", help="mutants described so")
    given = parser.parse_args()
    if Path(sys.prefix) != BUILD:
        python = built(BUILD, FLAGS)
        os.execve(python, [str(python), *sys.argv], os.environ | {"OPENBLAS_NUM_THREADS": "1"})
    for name in SHARED:
        __import__(name)
    os.chdir(ROOT)
    gc.freeze()
    shares = [
        share_killed(kind, drawn(kind, count, given.seed, given.only))
        for kind, count in (("python", given.python), ("native", given.native))
        if count
    ]
    return int(min(shares) < ENOUGH)


if __name__ == "__main__":
    sys.exit(main())
