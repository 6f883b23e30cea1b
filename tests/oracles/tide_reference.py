"""Kinds of errors and what they cost, by tidecv 1.0.1.

tidecv knows no federated lists. It is shown only detections of classes verified in their image;
those it finds wrong of a class that is not exhaustively annotated there are taken away, and it is
run again: what is unmatched changes no match.

Two things it does otherwise than lvdet are left out of the numbers taken from it. Its mean counts
classes without an object as 0, so AP is taken class by class. And it reads precision at x / 100
where lvdet, with the reference tools, reads it at np.linspace(0, 1, 101), which for some x is the
next float: `uncertain` says by how much that can change a class.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tidecv import TIDE, Data
    from tidecv.errors import main_errors

Json = dict[str, Any]

NAMES = {
    main_errors.ClassError: "classification",
    main_errors.BoxError: "localisation",
    main_errors.OtherError: "both",
    main_errors.DuplicateError: "duplicate",
    main_errors.BackgroundError: "background",
    main_errors.MissedError: "missed",
}
_LEVELS = [(x / 100, level) for x, level in enumerate(np.linspace(0, 1, 101).tolist())]


@dataclass(frozen=True)
class Tide:
    """What tidecv says.

    kinds:  of each result row; "right", or "not counted" where it was not shown to tidecv
    target: annotation id that each classification and localisation error points at, by row
    missed: annotation ids
    before: AP of each class that has objects, by id
    after:  the same with one kind mended, by kind; classes that have objects left
    """

    kinds: list[str]
    target: dict[int, int]
    missed: set[int]
    before: dict[int, float]
    after: dict[str, dict[int, float]]


def diagnose_by_tide(annotations: Json, results: Sequence[Json], masks: bool = False) -> Tide:
    """The errors of results at IoU 0.5 and 0.1, none of which may tie."""
    shown = [row for row in range(len(results)) if _verified(annotations, results[row])]
    partial = {
        (image["id"], number)
        for image in annotations["images"]
        for number in image.get("not_exhaustive_category_ids", [])
    }
    run, kinds = _run(annotations, results, shown, masks)
    shown = [
        row
        for row, kind in zip(shown, kinds, strict=True)
        if kind == "right" or (results[row]["image_id"], results[row]["category_id"]) not in partial
    ]
    run, kinds = _run(annotations, results, shown, masks)
    told = dict(zip(shown, kinds, strict=True))
    classes = Counter(row["category_id"] for row in annotations["annotations"])
    numbers = [row["id"] for row in annotations["annotations"]]
    after = {
        name: _precision(run.fix_errors(lambda error, kind=kind: isinstance(error, kind)))
        for kind, name in NAMES.items()
    }
    right_alone = run.fix_errors(transform=main_errors.FalsePositiveError.fix)
    after["false positives"] = _precision(right_alone)
    after["false negatives"] = _precision(run.fix_errors(false_neg_dict=run.false_negatives))
    return Tide(
        kinds=[told.get(row, "not counted") for row in range(len(results))],
        target={
            shown[error.pred["_id"]]: numbers[error.gt["_id"]]
            for error in run.errors
            if isinstance(error, main_errors.ClassError | main_errors.BoxError)
        },
        missed={
            numbers[error.gt["_id"]]
            for error in run.errors
            if isinstance(error, main_errors.MissedError)
        },
        before={number: run.ap_data.objs[number].get_ap() / 100 for number in classes},
        after=after,
    )


def uncertain(objects: int) -> float:
    """How far AP of a class with this many objects can be off because of recalls that are read at
    the next float: one step of 1/101 for each recall that is reached at one of both only."""
    reached = [count / objects for count in range(objects + 1)]
    return sum(any(min(pair) <= r < max(pair) for r in reached) for pair in _LEVELS) / 101 + 1e-12


def _verified(annotations: Json, row: Json) -> bool:
    for image in annotations["images"]:
        if image["id"] == row["image_id"] and "neg_category_ids" in image:
            return row["category_id"] in image["neg_category_ids"] or any(
                one["image_id"] == row["image_id"] and one["category_id"] == row["category_id"]
                for one in annotations["annotations"]
            )
    return True


def _run(
    annotations: Json, results: Sequence[Json], shown: list[int], masks: bool
) -> tuple[Any, list[str]]:
    """tidecv's run, and the kind of each row shown."""
    truth, found = Data("truth"), Data("found")
    truth.max_dets = len(results) + 1
    for category in annotations["categories"]:
        truth.add_class(category["id"], category["name"])
    for image in annotations["images"]:
        truth.add_image(image["id"], str(image["id"]))
    for row in annotations["annotations"]:
        shape = row.get("segmentation") if masks else None
        truth.add_ground_truth(row["image_id"], row["category_id"], row["bbox"], shape)
    for number in shown:
        row = results[number]
        shape = row.get("segmentation") if masks else None
        found.add_detection(row["image_id"], row["category_id"], row["score"], row["bbox"], shape)
    tide = TIDE(pos_threshold=0.5, background_threshold=0.1, mode=TIDE.MASK if masks else TIDE.BOX)
    run = tide.evaluate(truth, found)
    kinds = ["right"] * len(shown)
    for error in run.errors:
        if hasattr(error, "pred"):
            kinds[error.pred["_id"]] = NAMES[type(error)]
    return run, kinds


def _precision(mended: Any) -> dict[int, float]:
    return {
        number: data.get_ap() / 100
        for number, data in mended.objs.items()
        if data.num_gt_positives > 0
    }
