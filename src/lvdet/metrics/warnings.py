"""What a reader of the numbers should know about the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.limit.budgets import Budget, PerImage, PerImageClass
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows
from lvdet.tables.results import Results

#: Limits an image that tools are known to cut at. An image at just one of these, and none above
#: it, is no accident.
USUAL_CUTS = frozenset({100, 200, 300, 500, 1_000, 2_000, 3_000, 5_000, 10_000})
#: At any other number, a file counts as cut where this many images have exactly that number,
#: their most, …
CUT_IMAGES = 5
#: … and are more than all those up to this share below it.
CUT_MARGIN = 0.1


def image_cut(counts: NDArray[np.int64]) -> tuple[int, int] | None:
    """The number of detections an image at which a file was evidently cut, and how many images
    have exactly that many; None where nothing speaks for a cut. `counts` are of all images."""
    if not counts.any():
        return None
    most = int(counts.max())
    at_most = int((counts == most).sum())
    close = int(((counts < most) & (counts >= (1 - CUT_MARGIN) * most)).sum())
    if most in USUAL_CUTS or (most > 1 and at_most >= CUT_IMAGES and at_most > close):
        return most, at_most
    return None


def lower_bound(cut: int, budgets: Sequence[Budget], *, every_class: bool) -> bool:
    """Whether a file cut at `cut` detections an image lacks some that the budgets would keep: not
    where they begin with a limit an image that is no higher, over all classes."""
    if not budgets:
        return True
    first = budgets[0]
    if isinstance(first, PerImageClass):
        return False
    return not (isinstance(first, PerImage) and first.limit <= cut and every_class)


def input_warnings(
    gt: GroundTruth,
    results: Results,
    *,
    exact_lvis: bool,
    budgets: Mapping[str, Sequence[Budget]],
    every_class: bool = True,
) -> list[str]:
    """One sentence for each thing that changes what the numbers mean."""
    most, _ = image_cut(results.per_image) or (0, 0)
    bounded = [
        f"AP-{name.capitalize()}"
        for name, limits in budgets.items()
        if most and lower_bound(most, limits, every_class=every_class)
    ]
    return [
        *(cut_warnings(results, _listed(bounded), len(bounded)) if bounded else []),
        *reading_warnings(gt, results, exact_lvis=exact_lvis),
    ]


def cut_warnings(results: Results, bounded: str, number: int) -> list[str]:
    """That the file was cut, and which numbers, so many, are not what they seem."""
    cut = image_cut(results.per_image)
    if cut is None:
        return []
    most, images = cut
    return [
        f"{results.source} was cut at {most:,} detections an image before it came here "
        f"({images:,} of {(results.per_image > 0).sum():,} images have exactly {most:,}): "
        f"{bounded} {'is only a lower bound' if number == 1 else 'are only lower bounds'}. Write "
        "results without a limit an image."
    ]


def reading_warnings(gt: GroundTruth, results: Results, *, exact_lvis: bool) -> list[str]:
    """Where the files are read otherwise than by the reference tools."""
    found = _unknown_classes(gt, results, exact_lvis)
    if exact_lvis:
        return found
    zero_id = int((gt.id == 0).sum())
    if zero_id:
        found.append(
            f"{gt.source} has an annotation of id 0, which the reference tools read as "
            "unmatched; it counts like any other here (--exact-lvis repeats their reading)."
        )
    empty = int((gt.area <= 0).sum())
    if empty and gt.federated:
        found.append(
            f"{gt.source} has {empty:,} annotations of area 0, which lvis leaves out; they count "
            "here (--exact-lvis leaves them out)."
        )
    return found


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _unknown_classes(gt: GroundTruth, results: Results, exact_lvis: bool) -> list[str]:
    ids_of = results.ranking.category_ids
    unknown = (category_rows(gt, results.ranking) < 0) & (results.per_class > 0)
    if not unknown.any():
        return []
    ids = ", ".join(str(value) for value in np.sort(ids_of[unknown])[:5])
    more = ", …" if unknown.sum() > 5 else ""
    if results.per_class[unknown].sum() == results.total and not exact_lvis:
        raise InputError(f"{results.source}: no category_id of it ({ids}{more}) is in {gt.source}")
    rows = int(results.per_class[unknown].sum())
    effect = (
        "they use up budget, as in lvis"
        if exact_lvis
        else "they are left out before any budget counts (in lvis they use up budget)"
    )
    return [
        f"{results.source} has {rows:,} detections of classes that are not in {gt.source} "
        f"(category_id {ids}{more}): {effect}."
    ]
