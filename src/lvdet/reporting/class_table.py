"""The table of classes: columns for the page and for a CSV file."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.reporting.detector_study import Study
from lvdet.reporting.figures.style import GROUP_NAMES

#: Precision as a byte: the number of steps from 0 to 1, and the byte of a class without a curve.
STEPS, NO_CURVE = 250, 255


@dataclass(frozen=True)
class Column:
    """A column of the table.

    kind: "frequency", "count", "percent" or "delta"; a value is None where undefined
    of: the detector, "" for a column of the class itself
    falling: whether the first click sorts in descending order
    """

    title: str
    of: str
    kind: str
    values: list[Any]

    @property
    def falling(self) -> bool:
        return self.kind != "frequency"


def class_columns(studies: Sequence[Study]) -> list[Column]:
    """Frequency, objects, AP-Fixed and AP-Old of each detector, and each detector's difference
    from the first under AP-Fixed."""
    first = studies[0].evaluation
    categories = first.categories
    several = len(studies) > 1
    columns = []
    if categories.groups():
        names = [GROUP_NAMES.get(one, "") for one in categories.frequency.tolist()]
        columns.append(Column("frequency", "", "frequency", names))
    columns.append(Column("objects", "", "count", first.truth.tolist()))
    fixed = [_class_ap(study, "fixed") for study in studies]
    for study, values in zip(studies, fixed, strict=True):
        name = study.name if several else ""
        columns.append(Column("AP-Fixed", name, "percent", _known(values)))
        columns.append(Column("AP-Old", name, "percent", _known(_class_ap(study, "old"))))
    for study, values in zip(studies[1:], fixed[1:], strict=True):
        columns.append(Column("Δ AP-Fixed", study.name, "delta", _known(values - fixed[0])))
    return columns


def class_data(studies: Sequence[Study], columns: Sequence[Column]) -> dict[str, Any]:
    """What the page needs to know about the classes."""
    categories = studies[0].evaluation.categories
    objects = next(place for place, one in enumerate(columns) if one.kind == "count")
    return {
        "id": categories.ids.tolist(),
        "name": list(categories.names),
        "group": categories.frequency.tolist(),
        "columns": [{"kind": one.kind, "values": one.values} for one in columns],
        "curves": [
            {"mean": _bytes(study.curves.classes), "at50": _bytes(study.curves.classes_50)}
            for study in studies
        ],
        "steps": STEPS,
        "none": NO_CURVE,
        "first": objects + 1,
    }


def _class_ap(study: Study, protocol: str) -> NDArray[np.float64]:
    curves = study.evaluation[protocol].curves
    assert curves is not None  # AP-Old and AP-Fixed have one for each class
    values: NDArray[np.float64] = curves.precision[:, 0].mean(axis=1)
    return values


def _known(values: NDArray[np.float64]) -> list[float | None]:
    rounded: list[float] = np.round(values, 4).tolist()
    return [None if value != value else value for value in rounded]


def _bytes(curves: NDArray[np.float64]) -> str:
    """[C, 101] precisions, a byte each, as text."""
    known = np.where(np.isnan(curves), NO_CURVE, np.rint(curves * STEPS))
    return base64.b64encode(known.astype(np.uint8).tobytes()).decode()
