"""Class-agnostic recall: the objects found by the best detections of an image, whatever their
class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.evaluation.class_subsets import restricted
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.summary import Groups, defined
from lvdet.limits.budgets import PerImage, apply
from lvdet.limits.needs import Need
from lvdet.matching.class_agnostic import objects_found
from lvdet.matching.match import AREAS, to_be_found, without_empty
from lvdet.rendering.table_text import Cell, Layout, percent
from lvdet.tables.categories import FREQUENCIES
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows
from lvdet.tables.results import Ranking
from lvdet.threads import thread_count


@dataclass(frozen=True, eq=False)
class AgnosticRecall(Mapping[str, float]):
    """The recall of the best detections of each image, fractions in [0, 1], NaN where undefined.

    By key or attribute: AR, ARs, ARm, ARl, ARr, ARc, ARf, and AR_name for other groups.
    """

    budget: str
    metrics: dict[str, float]

    def __getitem__(self, key: str) -> float:
        return self.metrics[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.metrics)

    def __len__(self) -> int:
        return len(self.metrics)

    def __getattr__(self, name: str) -> float:
        metrics: dict[str, float] = self.__dict__.get("metrics", {})
        if name not in metrics:
            raise AttributeError(f"no metric {name!r}, expected one of {', '.join(metrics)}")
        return metrics[name]

    def __repr__(self) -> str:
        return f"AgnosticRecall({self.budget}, AR {percent(self.metrics['AR'])})"

    def to_dict(self) -> dict[str, Any]:
        """The budget and the metrics, None where undefined."""
        return {"budget": self.budget} | defined(self.metrics)


def recall_needs(gt: GroundTruth, limits: Sequence[int], classes: NDArray[np.int64]) -> list[Need]:
    """The part of a results file that is needed: the boxes of every class. For COCO files that is
    everything, because which of several equal scores a limit keeps depends on their classes."""
    if not limits:
        return []
    return [Need(PerImage(max(limits)) if gt.federated else None, classes, boxes=True)]


def agnostic_recall(
    pair: Pair, limits: Sequence[int], classes: NDArray[np.int64], groups: Groups
) -> list[AgnosticRecall]:
    """Recall at each limit per image, over classes (rows) and groups of them.

    Detections and objects of these classes are matched as if they all had the same class: by
    descending score, equal scores by ascending class id, then file order; at equal overlap the
    object of the higher class id, then the later one. Recall is the share of objects that are
    matched, a mean over IoU thresholds. Incorrect detections only take up places, so it does not
    matter which classes were verified or exhaustively annotated in an image.
    """
    if not limits:
        return []
    gt, results = _objects(pair, classes), pair.results
    meant = np.isin(category_rows(pair.gt, results.ranking), classes)
    there = meant[results.detections.category]
    inside = _inside(gt)
    of_group = {None: np.ones(len(gt), dtype=bool)} | {
        name: np.isin(gt.category, rows) for name, rows in restricted(groups, classes).items()
    }
    table, order = results.detections, _by_class(pair.gt, results.detections)
    found: dict[int, AgnosticRecall] = {}
    for limit in sorted(set(limits), reverse=True):
        keep = _kept(pair, limit, classes, meant)
        kept = (keep if results.rows is None else keep[results.rows]) & there
        if kept.sum() != (keep & meant[results.ranking.category]).sum():
            raise InputError(
                f"{results.source} was read without the boxes of all classes, which class-agnostic "
                "recall needs: pass its path or its whole table"
            )
        matched = objects_found(gt, table[order[kept[order]]], pair.options)
        found[limit] = AgnosticRecall(str(PerImage(limit)), _metrics(matched, inside, of_group))
    return [found[limit] for limit in limits]


def recall_layout(recalls: Sequence[AgnosticRecall]) -> Layout:
    """The table: one line per limit; metrics that are undefined everywhere are left out."""
    shown = [
        key
        for key in recalls[0]
        if key == "AR" or any(not np.isnan(recall[key]) for recall in recalls)
    ]
    return Layout(
        "agnostic-recall",
        "Class-agnostic recall, in percent",
        ["budget", *shown],
        [
            [Cell(recall.budget), *(Cell(percent(recall[key])) for key in shown)]
            for recall in recalls
        ],
    )


def _objects(pair: Pair, classes: NDArray[np.int64]) -> GroundTruth:
    """The objects of the classes by class, then by file order."""
    gt = pair.gt
    if pair.options.exact_lvis and gt.federated:
        gt = without_empty(gt)
    rows = np.argsort(gt.category, kind="stable")
    return gt.where(rows[np.isin(gt.category[rows], classes)])


def _by_class(gt: GroundTruth, table: Ranking | Detections) -> NDArray[np.int32]:
    """[N] rows by image, within an image by class id, then by file order."""
    category = category_rows(gt, table)[table.category].astype(np.float64)
    order: NDArray[np.int32] = _native.rank_groups(
        table.image, len(table.image_ids), -category, thread_count()
    )[0]
    return order


def _kept(
    pair: Pair, limit: int, classes: NDArray[np.int64], meant: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """[N] whether each is among the best of its image, as counted by lvis or by pycocotools, which
    orders equal scores by class first."""
    ranking, budget = pair.results.ranking, [PerImage(limit)]
    everything = np.ones(len(ranking), dtype=bool)
    if pair.gt.federated:
        keep = pair.kept(budget, classes)
        return everything if keep is None else keep
    order = _by_class(pair.gt, ranking)
    ranked = replace(
        ranking,
        image=ranking.image[order],
        category=ranking.category[order],
        score=ranking.score[order],
    )
    keep = apply(budget, ranked, among=meant[ranked.category])
    if keep is not None:
        everything[order] = keep
    return everything


def _inside(gt: GroundTruth) -> NDArray[np.bool_]:
    """[M, A] the objects to find in each area range."""
    low, high = (np.array(ends) for ends in zip(*AREAS.values(), strict=True))
    area = gt.area[:, None]
    inside: NDArray[np.bool_] = to_be_found(gt)[:, None] & (area >= low) & (area <= high)
    return inside


def _metrics(
    matched: NDArray[np.bool_],
    inside: NDArray[np.bool_],
    of_group: Mapping[str | None, NDArray[np.bool_]],
) -> dict[str, float]:
    def mean(rows: NDArray[np.bool_], area: int = 0) -> float:
        wanted = rows & inside[:, area]
        return float(matched[wanted, area].mean()) if wanted.any() else float("nan")

    every = of_group[None]
    values = {
        f"AR{name[0] if place else ''}": mean(every, place) for place, name in enumerate(AREAS)
    }
    for name in dict.fromkeys((*FREQUENCIES, *(group for group in of_group if group))):
        member = of_group.get(name)
        values[f"AR{name}" if name in FREQUENCIES else f"AR_{name}"] = (
            float("nan") if member is None else mean(member)
        )
    return values
