"""Warnings about the input that a reader of the numbers should know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.class_subsets import first_ids, unknown_classes
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.summary import number_name
from lvdet.evaluation.truncation import Cut, Cuts
from lvdet.limits.budgets import Budget
from lvdet.tables.description import counted
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Results


class Subject(NamedTuple):
    """The subject of a sentence."""

    text: str
    plural: bool


def input_warnings(
    pair: Pair,
    budgets: Mapping[str, Sequence[Budget]],
    classes: NDArray[np.int64],
    others: Mapping[str, Sequence[Budget]] = MappingProxyType({}),
) -> list[str]:
    """One sentence for each thing that changes the meaning of the protocols' numbers, or of other
    numbers, listed under their names."""
    names = {number_name(name): limits for name, limits in budgets.items()} | dict(others)
    return [
        *named_cut_warnings(pair.results.source, Cuts.of(pair.gt, pair.results), names, classes),
        *reading_warnings(pair),
    ]


def named_cut_warnings(
    source: str, cuts: Cuts, numbers: Mapping[str, Sequence[Budget]], classes: NDArray[np.int64]
) -> list[str]:
    """The effect of truncation on numbers, each with its name and budgets, over these classes."""

    def those(true_of: Callable[[Sequence[Budget], NDArray[np.int64]], bool]) -> Subject | None:
        return _listed([name for name, budgets in numbers.items() if true_of(budgets, classes)])

    return cut_warnings(
        source,
        cuts,
        missed_by_image=those(cuts.missed_by_image),
        missed_by_class=those(cuts.missed_by_class),
        reranked=those(cuts.reranked),
    )


def cut_warnings(
    source: str,
    cuts: Cuts,
    *,
    missed_by_image: Subject | None = None,
    missed_by_class: Subject | None = None,
    reranked: Subject | None = None,
) -> list[str]:
    """Warnings that the file was truncated, and which numbers that affects: one sentence per
    truncation."""
    found = []
    if cuts.by_image is not None and missed_by_image is not None:
        found.append(
            f"{source} {image_cut_text(cuts)}: {_missing(missed_by_image)}. Write results without "
            "a limit per image."
        )
    if cuts.by_class is not None and (missed_by_class or reranked):
        effects = []
        if reranked is not None:
            verb = "are" if reranked.plural else "is"
            effects.append(
                f"{reranked.text} {verb} computed from results already re-ranked with a class cap "
                f"of {cuts.by_class.limit:,}"
            )
        if missed_by_class is not None:
            effects.append(_missing(missed_by_class))
        remedy = (
            "Write results without a limit per class."
            if missed_by_class is not None
            else "Only limits per image need results without a limit per class."
        )
        found.append(f"{source} {class_cut_text(cuts)}: {'; '.join(effects)}. {remedy}")
    return found


def image_cut_text(cuts: Cuts) -> str:
    """Evidence of truncation per image; "" if there is none."""
    images = "image" if cuts.images == 1 else "images"
    return _cut_text(cuts.by_image, "per image", f"{cuts.images:,} {images}")


def class_cut_text(cuts: Cuts) -> str:
    """Evidence of truncation per class; "" if there is none."""
    classes = "class" if cuts.classes == 1 else "classes"
    return _cut_text(cuts.by_class, "per class", f"{cuts.classes:,} {classes}")


def was_cut(cut: Cut) -> str:
    """The verb, according to how certain the evidence is."""
    return "is truncated" if cut.certain else "appears truncated"


def coco_limit_warning(gt: GroundTruth, own: Budget, shown: str) -> str:
    """A warning that COCO's own limit differs from those shown."""
    return f"{gt.source} is a COCO file, and COCO's own limit is {own}: {shown}"


def reading_warnings(pair: Pair) -> list[str]:
    """Warnings that there is nothing to evaluate, that the results are implausible, and that the
    files are interpreted differently than by the reference tools."""
    gt, results, exact_lvis = pair.gt, pair.results, pair.options.exact_lvis
    found = []
    if pair.skipped:
        left = counted(len(pair.skipped), "shard")
        found.append(f"{results.source}: {left} left out; the first: {pair.skipped[0]}")
    if not results.total:
        found.append(f"{results.source} has no detections, so its AP is meaningless.")
    found += [str(finding) for finding in pair.findings]
    found += _unknown_classes(gt, results, exact_lvis)
    if exact_lvis:
        return found
    zero_id = int((gt.id == 0).sum())
    if zero_id:
        found.append(
            f"{gt.source} has an object with id 0, which the reference tools treat as "
            "unmatched; lvdet counts it like any other (--exact-lvis follows them)."
        )
    empty = int((gt.area <= 0).sum())
    if empty and gt.federated:
        found.append(
            f"{gt.source} has {empty:,} objects with area 0, which lvis excludes; lvdet counts "
            "them (--exact-lvis excludes them)."
        )
    detections = results.detections
    if pair.iou != "bbox" and detections.masks is not None and detections.boxes_given:
        found.append(
            f"{results.source} has boxes and masks: a detection's area is its mask's, but "
            "lvis and pycocotools use its box's, so APs, APm and APl may differ "
            "(--exact-lvis follows them)."
        )
    return found


def _cut_text(cut: Cut | None, each: str, of: str) -> str:
    if cut is None:
        return ""
    have = "has" if cut.at_limit == 1 else "have"
    return (
        f"{was_cut(cut)} at {cut.limit:,} detections {each} "
        f"({cut.at_limit:,} of {of} {have} exactly {cut.limit:,})"
    )


def _listed(names: Sequence[str]) -> Subject | None:
    if not names:
        return None
    text = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return Subject(text, len(names) > 1)


def _missing(subject: Subject) -> str:
    if subject.plural:
        return f"{subject.text} miss the dropped detections and are usually too low"
    return f"{subject.text} misses the dropped detections and is usually too low"


def _unknown_classes(gt: GroundTruth, results: Results, exact_lvis: bool) -> list[str]:
    unknown = unknown_classes(gt, results)
    if not unknown.any():
        return []
    rows = int(results.per_class[unknown].sum())
    effect = (
        "they use up budget, as in lvis"
        if exact_lvis
        else "they are dropped before any budget applies (in lvis they use up budget)"
    )
    return [
        f"{results.source} has {rows:,} detections of classes that are not in {gt.source} "
        f"(category_id {first_ids(results.ranking.category_ids[unknown])}): {effect}."
    ]
