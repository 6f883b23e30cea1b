"""A name that a spreadsheet would take for a formula stays a text, in every CSV."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import lvdet
from cli.small_set import LVIS, pair
from lvdet.calibration.thresholds import find_thresholds
from lvdet.rendering.csv_text import FORMULA, csv_text
from lvdet.reporting.paper_files import _classes

NAMES = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]


def cells_of(text: str) -> list[str]:
    return [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]


def test_names_of_classes_are_no_formulas(tmp_path: Path) -> None:
    annotations: dict[str, Any] = {"images": LVIS["images"], "categories": [], "annotations": []}
    found: list[dict[str, Any]] = []
    for number, name in enumerate(NAMES):
        ids = {"image_id": 1, "category_id": number}
        box = {"bbox": [10 * number, 10, 8, 8], "area": 64}
        annotations["categories"].append({"id": number, "name": name, "frequency": "r"})
        annotations["annotations"].append({"id": number, **ids, **box})
        found.append({**ids, "bbox": box["bbox"], "score": 0.5})
    gt, dt = pair(tmp_path, annotations, found)
    tables = {
        "evaluate": lvdet.evaluate(gt, dt).to_csv(),
        "thresholds": find_thresholds(gt, dt).to_csv(),
        "compare": lvdet.compare(gt, [dt, dt], resamples=100).to_csv(),
        "report": _classes(lvdet.report(gt, [dt])),
    }
    for verb, table in tables.items():
        cells = cells_of(table)
        assert {f"'{name}" for name in NAMES} <= {*cells}, verb
        assert {*cells}.isdisjoint(NAMES), verb


def test_numbers_keep_their_signs() -> None:
    row = [-1, -0.5, "-0.5", "+0.5", "-inf", "1e-3", None, float("nan"), "a=b", "–"]
    expected = ["-1", "-0.5", "-0.5", "+0.5", "-inf", "1e-3", "", "", "a=b", "–"]
    assert cells_of(csv_text([row])) == expected


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=2))
def test_only_formulas_change(row: list[str]) -> None:
    for cell, read in zip(row, cells_of(csv_text([row])), strict=True):
        assert read.removeprefix("'") == cell.removeprefix("'")
        try:
            float(read)
        except ValueError:
            assert not read.startswith(FORMULA)
