"""LVISEval beside lvis': numbers, records, printed text."""

from __future__ import annotations

import copy
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.side_by_side import LVIS_SIDES, Json, assert_same_records, printed
from oracles.cases import lvis_case, without_boxes


def run(side: Any, path: Path, results: list[Json], iou: str, max_dets: int) -> Any:
    lvis, lvis_results, evaluator = side
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lvis calls Logger.warn
        truth = lvis(str(path))
        found = lvis_results(truth, copy.deepcopy(results), max_dets=max_dets)
        evaluation = evaluator(truth, found, iou)
        evaluation.params.max_dets = max_dets
        evaluation.run()
        evaluation.print_results()
    return evaluation


@pytest.mark.parametrize("iou", ["bbox", "segm"])
@given(
    seed=st.integers(0, 10**6),
    plain=st.booleans(),
    max_dets=st.sampled_from([300, 4, -1]),
)
def test_numbers_records_and_text_are_lvis_s(
    tmp_path_factory: Any, iou: str, seed: int, plain: bool, max_dets: int
) -> None:
    dataset, results = lvis_case(seed, masks=iou == "segm")
    if plain and iou == "segm":
        results = without_boxes(results)
    path = tmp_path_factory.getbasetemp() / "annotations.json"
    path.write_text(json.dumps(dataset))
    (theirs, their_text), (ours, our_text) = (
        printed(run, side, path, results, iou, max_dets) for side in LVIS_SIDES
    )
    assert our_text == their_text
    assert list(ours.results.items()) == list(theirs.results.items())
    assert ours.eval.keys() == theirs.eval.keys()
    for key in ("precision", "recall", "counts"):
        np.testing.assert_array_equal(ours.eval[key], theirs.eval[key], err_msg=key)
    assert_same_records(ours.eval_imgs, theirs.eval_imgs)
    for key, value in theirs.ious.items():
        np.testing.assert_array_equal(ours.ious[key], value)
    for place, areas in theirs.eval["dt_pointers"].items():
        for area, pointer in areas.items():
            mine = ours.eval["dt_pointers"][place][area]
            assert mine.keys() == pointer.keys()
            for key, value in pointer.items():
                np.testing.assert_array_equal(mine[key], value)
