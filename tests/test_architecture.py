"""What holds for the code as a whole: layers, sizes, names, style, types and the stub."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "lvdet"
NATIVE = sorted([*(ROOT / "native").glob("*.cpp"), *(ROOT / "native").glob("*.hpp")])
BIN = Path(sys.executable).parent

LONGEST_MODULE = 500
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "misc"}


def run(*command: str | Path) -> None:
    """Fails with what the command said, unless it succeeds at the root of the repository."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"{Path(command[0]).name} says:\n{done.stdout}", pytrace=False)


def test_layers_import_downwards_only() -> None:
    run(BIN / "lint-imports")


def test_modules_are_short() -> None:
    lengths = {
        str(path.relative_to(ROOT)): path.read_text(encoding="utf-8").count("\n")
        for path in PACKAGE.rglob("*.py")
    }
    assert lengths, PACKAGE
    assert {name: n for name, n in lengths.items() if n >= LONGEST_MODULE} == {}


def test_names_say_the_act_or_the_thing() -> None:
    folders = [PACKAGE, ROOT / "native", ROOT / "tests", ROOT / "benchmarks", ROOT / "docs"]
    named = [path for folder in folders for path in folder.rglob("*") if not hidden(path)]
    assert [path for path in named if path.stem.lower() in EMPTY_NAMES] == []


def hidden(path: Path) -> bool:
    """In a folder that is not in the repository, such as a virtual environment."""
    return any(part.startswith((".", "__")) for part in path.relative_to(ROOT).parts[:-1])


def test_only_the_bindings_know_python() -> None:
    include = re.compile(r'#\s*include\s*[<"](nanobind/|Python\.h|bind_arrays\.hpp)')
    binding = {path.name for path in NATIVE if include.search(path.read_text(encoding="utf-8"))}
    assert binding == {path.name for path in NATIVE if path.name.startswith("bind")}


def test_ruff_finds_nothing() -> None:
    run(BIN / "ruff", "check", ".")


def test_python_is_formatted() -> None:
    run(BIN / "ruff", "format", "--check", ".")


def test_types_hold() -> None:
    run(BIN / "mypy")


def test_native_code_is_formatted() -> None:
    run(BIN / "clang-format", "--dry-run", "-Werror", *NATIVE)


def test_stub_is_the_module_s_own(tmp_path: Path) -> None:
    fresh = tmp_path / "_native.pyi"
    run(sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "lvdet._native", "-o", fresh)
    committed = (PACKAGE / "_native.pyi").read_text(encoding="utf-8")
    assert fresh.read_text(encoding="utf-8") == committed, "run `make stub`"
