"""The public names, all of them and no others."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import lvdet

PUBLIC = [
    "Audit",
    "CalibrationTable",
    "Calibrator",
    "Categories",
    "ClassCap",
    "Comparison",
    "DetectionMetric",
    "Detections",
    "Diagnosis",
    "Evaluation",
    "GroundTruth",
    "InputError",
    "LvdetError",
    "Masks",
    "Matches",
    "Measurement",
    "OutputError",
    "Partial",
    "PerClass",
    "PerImage",
    "PerImageClass",
    "ProtocolResult",
    "Report",
    "Reranking",
    "Sweep",
    "SweepRow",
    "Thresholds",
    "TopKWriter",
    "__version__",
    "audit",
    "calibrate",
    "check",
    "compare",
    "convert",
    "diagnose",
    "evaluate",
    "find_thresholds",
    "merge_top_k",
    "read_detections",
    "read_ground_truth",
    "report",
    "rerank",
    "search_class_cap",
    "set_threads",
    "simulate",
    "sweep",
    "write_detections",
    "write_ground_truth",
]


def test_public_names_are_these() -> None:
    assert lvdet.__all__ == PUBLIC
    assert sorted(PUBLIC) == PUBLIC
    assert len(set(PUBLIC)) == len(PUBLIC)


def test_dir_shows_them() -> None:
    assert set(dir(lvdet)) >= set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_found(name: str) -> None:
    value = getattr(lvdet, name)
    assert getattr(lvdet, name) is value
    if name != "__version__":
        assert value.__name__ == name
        assert value.__doc__


def test_a_star_import_gives_them_all() -> None:
    names: dict[str, object] = {}
    exec("from lvdet import *", names)
    assert set(PUBLIC) <= names.keys()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'lvdet' has no attribute 'evalute'"):
        _ = lvdet.evalute


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert version("lvdet") == lvdet.__version__


def modules_after(statement: str) -> set[str]:
    """Names of the modules a new interpreter has loaded after the statement, and not before."""
    code = (
        "import json, sys\nbefore = set(sys.modules)\n"
        f"{statement}\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_loads_nothing_else() -> None:
    loaded = modules_after("import lvdet")
    assert {name for name in loaded if name.startswith("lvdet")} == {"lvdet"}
    foreign = {name.partition(".")[0] for name in loaded} - {"lvdet"}
    assert foreign <= set(sys.stdlib_module_names)


def test_the_command_line_loads_no_array_until_a_verb_runs() -> None:
    loaded = {name.partition(".")[0] for name in modules_after("import lvdet.cli")}
    assert loaded.isdisjoint({"numpy", "scipy", "pyarrow", "jinja2", "plotly", "torch"})
