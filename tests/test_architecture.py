"""What holds for the code as a whole: sizes, names, layers of C++ and Python, and the stub."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "lvdet"
NATIVE = sorted([*(ROOT / "native").glob("*.cpp"), *(ROOT / "native").glob("*.hpp")])

LONGEST_MODULE = 500
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "misc"}


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


def modules() -> list[Path]:
    """Of the package; a module of the command line is named after its verb, and may be. One of a
    drop-in has the name of the module that it replaces."""
    return [path for path in PACKAGE.rglob("*.py") if not path.name.startswith("__")]


def test_no_two_modules_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    drop_ins = [PACKAGE / "integrations" / name for name in ("lvis", "pycocotools")]
    for path in modules():
        if path.parent not in (PACKAGE / "cli", *drop_ins):
            places.setdefault(path.stem, []).append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


def test_no_module_is_named_like_one_of_python_s() -> None:
    assert [path for path in modules() if path.stem in sys.stdlib_module_names] == []


def hidden(path: Path) -> bool:
    """In a folder that is not in the repository, such as a virtual environment."""
    return any(part.startswith((".", "__")) for part in path.relative_to(ROOT).parts[:-1])


def test_only_the_bindings_know_python() -> None:
    include = re.compile(r'#\s*include\s*[<"](nanobind/|Python\.h|bind_arrays\.hpp)')
    binding = {path.name for path in NATIVE if include.search(path.read_text(encoding="utf-8"))}
    assert binding == {path.name for path in NATIVE if path.name.startswith("bind")}


def test_stub_is_the_module_s_own(tmp_path: Path) -> None:
    fresh = tmp_path / "_native.pyi"
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "lvdet._native", "-o", fresh]
    subprocess.run(command, check=True)
    committed = (PACKAGE / "_native.pyi").read_text(encoding="utf-8")
    assert fresh.read_text(encoding="utf-8") == committed, "run `make stub`"
