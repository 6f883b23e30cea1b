"""What runs without any extra, and what the rest says. In a process that finds no other packages
than those of the base install."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from cli.run_lvdet import Done, python_program
from cli.small_set import pair, save
from lvdet.extras import MODULES

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

SMALL = ["--images", "2", "--val-images", "2", "--classes", "3", "--workers", "1"]
#: Runs command lines one after the other, and prints what they left.
PROGRAM = """
import json, sys
tests, found, calls = sys.argv[1], set(json.loads(sys.argv[2])), json.loads(sys.argv[3])
sys.path.insert(0, tests)
from cli.run_lvdet import lvdet_call

def is_base(name):
    top = name.partition(".")[0]
    return top.startswith("_") or top in found or top in sys.stdlib_module_names

class OnlyTheBase:
    def find_spec(self, name, path=None, target=None):
        if not is_base(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

found |= {"lvdet", "cli"}
for name in [name for name in sys.modules if not is_base(name)]:
    del sys.modules[name]
sys.meta_path.insert(0, OnlyTheBase())
done = [lvdet_call(*call) for call in calls]
print(json.dumps([[one.code, one.out, one.err] for one in done]))
"""


def base_modules() -> set[str]:
    """The modules of what pip installs with lvdet and no extra."""
    modules, seen = set(), set()
    left = [Requirement(text) for text in PROJECT["dependencies"]]
    while left:
        requirement = left.pop()
        if requirement.name in seen or (requirement.marker and not requirement.marker.evaluate()):
            continue
        seen.add(requirement.name)
        try:
            found = distribution(requirement.name)
        except PackageNotFoundError:  # of another system
            continue
        modules |= {path.parts[0].removesuffix(".py") for path in found.files or ()}
        left += map(Requirement, found.requires or ())
    return modules


def run_all(calls: list[list[Any]]) -> list[Done]:
    texts = json.dumps([[str(word) for word in call] for call in calls])
    base = json.dumps(sorted(base_modules()))
    done = python_program(PROGRAM, ROOT / "tests", base, texts)
    assert done.code == 0, done
    return [Done(*left) for left in json.loads(done.out)]


def test_the_base_is_small() -> None:
    assert {"numpy", "typer", "rich"} < base_modules()
    extras = {module for modules in MODULES.values() for module in modules}
    assert base_modules().isdisjoint(extras | {"scipy"})


def test_json_needs_no_extra(tmp_path: Path) -> None:
    files = pair(tmp_path)
    reranked, calibrator = tmp_path / "reranked.json", tmp_path / "cal.json"
    folder = tmp_path / "demo"
    calls = [
        ["evaluate", *files, "-o", tmp_path / "scores.json"],
        ["sweep", *files, "-o", tmp_path / "sweep.json"],
        ["audit", *files],
        ["check", *files],
        ["rerank", *files, "-o", reranked],
        ["compare", *files, reranked, "--runs", "1", "--resamples", "100"],
        ["convert", files[1], "-o", tmp_path / "lines.jsonl"],
        ["calibrate", "fit", *files, "--method", "isotonic", "-o", calibrator],
        ["calibrate", "apply", calibrator, files[1], "-o", tmp_path / "calibrated.json"],
        ["experiment", "--list"],
        ["demo", folder, "--images", "30", "--classes", "10"],
    ]
    done = run_all(calls)
    for call, one in zip(calls, done, strict=True):
        assert one.code == 0, (call, one)
    assert json.loads((tmp_path / "scores.json").read_text())["protocols"]["old"]["AP"] > 0
    assert (folder / "calibration.json").exists()
    assert not (folder / "report.html").exists()
    last = done[-1].out.splitlines()
    assert last[-2] == "next: for a report of all this, pip install 'lvdet[report]' and run"
    assert last[-1].startswith(f"$ lvdet report {folder}/annotations.json ")


def test_what_needs_an_extra_says_which(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    parquet = save(tmp_path / "dt.parquet", b"PAR1")
    config, out = save(tmp_path / "config.toml", ""), tmp_path / "new.parquet"
    reading, writing = (
        f"{verb} Parquet needs pyarrow: pip install 'lvdet[parquet]'"
        for verb in ("reading", "writing")
    )
    images = save(tmp_path / "photo.png", b"")
    expected = {
        ("evaluate", gt, parquet): reading,
        ("sweep", gt, parquet): reading,
        ("compare", gt, dt, parquet): reading,
        ("convert", parquet, "-o", tmp_path / "new.json"): reading,
        ("convert", dt, "-o", out): writing,
        ("rerank", gt, dt, "-o", out): writing,
        ("report", gt, dt, "-o", tmp_path / "page.html"): (
            "a report needs plotly: pip install 'lvdet[report]'"
        ),
        ("evaluate", gt, dt, "--cluster", "local[2]"): (
            "--cluster needs ray: pip install 'lvdet[cluster]'"
        ),
        ("train", config): "training needs torch: pip install 'lvdet[train]'",
        ("predict", tmp_path, images, "-o", out): (
            "prediction needs torch: pip install 'lvdet[train]'"
        ),
        ("synth", tmp_path / "set", *SMALL): (
            "making synthetic images needs Pillow: pip install 'lvdet[train]'"
        ),
        ("experiment", "supp_loss_tuning", "-o", tmp_path / "results"): (
            "an experiment needs torch: pip install 'lvdet[train]'"
        ),
    }
    for call, done in zip(expected, run_all([[*call] for call in expected]), strict=True):
        assert (done.code, done.out) == (2, ""), (call, done)
        assert done.err == f"lvdet: error: {expected[call]}\n", call
    assert not out.exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_every_extra_is_one_of_pip_s(name: str) -> None:
    """The names in messages are those of pyproject.toml, and bring what they promise."""
    packages = {"PIL": "pillow", "markupsafe": "jinja2"}
    texts = " ".join(PROJECT["optional-dependencies"][name])
    for module in MODULES[name]:
        assert re.search(rf"\b{packages.get(module, module)}(\[[a-z,]+\])?>=", texts), module
