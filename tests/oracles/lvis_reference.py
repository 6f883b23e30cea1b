"""The lvis package itself, run in memory, as the oracle of AP-Old and AP-Fixed."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    # lvis 0.5.3 still says np.float, which NumPy removed.
    np.float = float  # type: ignore[attr-defined]  # noqa: NPY001
    from lvis import LVIS, LVISEval, LVISResults

Json = dict[str, Any]

logging.getLogger("lvis").setLevel(logging.ERROR)


def evaluate_lvis(
    annotations: Json, results: Sequence[Json], iou: str, max_dets: int = 300
) -> dict[str, float | None]:
    """All of lvis's metrics, None where it says -1.

    `max_dets` is the cap per image over all classes; a negative one means none. lvis
    fails on an empty results list, and so does this.
    """
    run = _run(annotations, results, iou, max_dets)
    return {key.split("@")[0]: _defined(value) for key, value in run.results.items()}


def evaluate_lvis_per_class(
    annotations: Json, results: Sequence[Json], iou: str, max_dets: int = 300
) -> dict[int, float | None]:
    """AP of each class by category id: the mean over thresholds and recalls, any area."""
    run = _run(annotations, results, iou, max_dets)
    precision = run.eval["precision"][:, :, :, 0]
    return {
        int(class_id): _defined(precision[:, :, index].mean())
        for index, class_id in enumerate(run.params.cat_ids)
    }


def cut_per_class(results: Sequence[Json], k: int) -> list[Json]:
    """The k best of each class over the whole set, ties to the earlier row, in file order.

    AP-Fixed is `evaluate_lvis` of this cut with `max_dets=-1`.
    """
    return _cut(results, "category_id", k)


def cut_per_image(results: Sequence[Json], k: int) -> list[Json]:
    """The k best of each image over all classes: lvis's own cap, as a cut of the file."""
    return _cut(results, "image_id", k)


def drop_unknown(annotations: Json, results: Sequence[Json]) -> list[Json]:
    """The results of known classes: the corrected default applies this before any cut."""
    known = {category["id"] for category in annotations["categories"]}
    return [result for result in results if result["category_id"] in known]


def _cut(results: Sequence[Json], key: str, k: int) -> list[Json]:
    rows_of: dict[int, list[int]] = {}
    for row, result in enumerate(results):
        rows_of.setdefault(result[key], []).append(row)
    kept = {
        row
        for rows in rows_of.values()
        for row in sorted(rows, key=lambda row: -results[row]["score"])[:k]
    }
    return [result for row, result in enumerate(results) if row in kept]


def _run(annotations: Json, results: Sequence[Json], iou: str, max_dets: int) -> Any:
    """A finished LVISEval. Copies the input, which lvis would change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        truth = LVIS.__new__(LVIS)  # its constructor only reads a file
        truth.logger = logging.getLogger("lvis.lvis")
        truth.dataset = copy.deepcopy(annotations)
        truth._create_index()
        found = LVISResults(truth, copy.deepcopy(list(results)), max_dets=max_dets)
        run = LVISEval(truth, found, iou)
        run.run()
    return run


def _defined(value: float) -> float | None:
    return None if value == -1 else float(value)
