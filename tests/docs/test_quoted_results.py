"""What pages quote from the results of the experiments follows from the committed result files."""

from __future__ import annotations

import re
from pathlib import Path
from statistics import mean

import pytest

from lvdet.experiments.result_files import RunResult, read_results
from lvdet.experiments.run_graph import FIRST_PILOT

ROOT = Path(__file__).parents[2]
LOSSES = ["baseline", "sigmoid", "equalization", "federated", "balanced-groups"]
METHODS = {
    "Histogram bin": "histogram",
    "BBQ (AIC)": "bbq",
    "Beta calibration": "beta",
    "Isotonic regression": "isotonic",
    "Platt scaling": "platt",
    "Hierarchical": "hierarchical",
}


@pytest.fixture(scope="module")
def runs() -> list[RunResult]:
    """The runs of the five losses with the scale synth, as often for each."""
    counted = [
        one
        for one in read_results([ROOT / "docs" / "results" / "data"]).of_scale("synth")
        if one["seed"] < FIRST_PILOT and set(one["names"]) & set(LOSSES) and one["set"] == "main"
    ]
    assert len({sum(loss in one["names"] for one in counted) for loss in LOSSES}) == 1
    return counted


def of_runs(runs: list[RunResult], condition: str, key: str, *losses: str) -> float:
    """The mean of a metric, in percent."""
    return 100 * mean(
        one["measures"][condition][key] for one in runs if set(one["names"]) & set(losses or LOSSES)
    )


def test_the_table_of_calibration(runs: list[RunResult]) -> None:
    page = (ROOT / "docs" / "calibration.md").read_text(encoding="utf-8")
    table = page.split("| fitted on training images |")[1].split("\n\n")[0]
    rows = dict(re.findall(r"^\| ([A-Z][^|]*?) \| ([^\n]*) \|$", table, re.MULTILINE))
    assert list(rows) == list(METHODS)
    for name, method in METHODS.items():
        effects = [
            of_runs(runs, f"train:{method}", key) - of_runs(runs, "own", key)
            for key in ("pool.AP", "pool.APr", "pool.APc", "pool.APf")
        ]
        assert rows[name] == " | ".join(f"{effect:+.2f}" for effect in effects)
    oracle = [
        of_runs(runs, "oracle:isotonic", key) - of_runs(runs, "own", key)
        for key in ("pool.AP", "pool.APr")
    ]
    assert "raises AP-Pool by {:.2f} and that of rare classes by {:.2f}".format(
        *oracle
    ) in " ".join(page.split())


def test_the_readme(runs: list[RunResult]) -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    limited, unlimited = (
        of_runs(runs, f"image={limit}", "AP", "baseline") for limit in (300, 10_000)
    )
    assert (
        f"an AP of {limited:.1f} at the equivalent of 300 detections per image, and "
        f"{unlimited:.1f} at 10,000" in text
    )
    gains = {
        key: of_runs(runs, "own", key, "equalization", "federated", "balanced-groups")
        - of_runs(runs, "own", key, "baseline")
        for key in ("old.AP", "fixed.AP")
    }
    lost = f"−{-gains['fixed.AP']:.1f}"
    assert (
        f"gain {gains['old.AP']:.1f} points over softmax on average under AP-Old, none under "
        f"AP-Fixed ({lost})." in text
    )
    effect = {
        (method, key): of_runs(runs, f"train:{method}", key) - of_runs(runs, "own", key)
        for method in ("hierarchical", "platt")
        for key in ("pool.AP", "pool.APr")
    }
    assert f"raises AP-Pool by {effect['hierarchical', 'pool.AP']:.1f} points without" in text
    assert effect["hierarchical", "pool.APr"] >= 0
    gained, lost = effect["platt", "pool.AP"], -effect["platt", "pool.APr"]
    assert f"scaling gains {gained:.1f}. It appears to cost rare classes {lost:.1f} points" in text
