"""AP-Old, AP-Fixed and AP-Pool from one match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.evaluation.average_precision import Curves, class_curves
from lvdet.evaluation.class_subsets import select
from lvdet.evaluation.evaluation_result import Evaluation, ProtocolResult
from lvdet.evaluation.input_warnings import input_warnings
from lvdet.evaluation.pair import Annotations, Pair, ResultSource, load_pair
from lvdet.evaluation.pooled import Pools
from lvdet.evaluation.summary import AP, AP_AREAS, AR, Metric, group_metrics, summarize
from lvdet.files.progress import Progress
from lvdet.limits.budgets import Budget, PerClass, PerImage, PerImageClass, describe
from lvdet.limits.needs import Need
from lvdet.matching.match_options import MatchOptions
from lvdet.tables.categories import resolve_groups
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.matches import Matches

PROTOCOLS = ("old", "fixed", "pool")
LVIS_PER_IMAGE = 300
COCO_PER_IMAGE_CLASS = 100
FIXED_PER_CLASS = 10_000
#: COCO's recalls are at these limits per image and class.
COCO_RECALLS = (1, 10, 100)


@dataclass(frozen=True)
class Protocol:
    """A way to a number: budgets, then the mean over classes or one pool of them."""

    name: str
    budgets: tuple[Budget, ...]
    pooled: bool = False


def old_budget(federated: bool) -> Budget:
    """The limit of the official tools: LVIS's, or COCO's."""
    return PerImage(LVIS_PER_IMAGE) if federated else PerImageClass(COCO_PER_IMAGE_CLASS)


def choose_protocols(
    names: Sequence[str],
    *,
    federated: bool,
    dets_per_image: int | None = None,
    dets_per_class: int | None = None,
) -> list[Protocol]:
    """The protocols by name, with their usual budgets where none is given."""
    old = old_budget(federated) if dets_per_image is None else PerImage(dets_per_image)
    fixed = PerClass(FIXED_PER_CLASS if dets_per_class is None else dets_per_class)
    known = {
        "old": Protocol("old", (old,)),
        "fixed": Protocol("fixed", (fixed,)),
        "pool": Protocol("pool", (fixed,), pooled=True),
    }
    if isinstance(names, str):
        names = [names]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise InputError(
            f"unknown protocol {', '.join(unknown)!r}, expected any of {', '.join(known)}"
        )
    return [known[name] for name in dict.fromkeys(names)]


@dataclass(frozen=True)
class Plan:
    """What `evaluate` is asked for; the fields are its arguments."""

    protocols: Sequence[str] = PROTOCOLS
    dets_per_image: int | None = None
    dets_per_class: int | None = None
    classes: str | Iterable[int | str] | None = None
    groups: Mapping[str, Iterable[int | str]] | None = None

    def chosen(self, gt: GroundTruth) -> list[Protocol]:
        """The protocols with their budgets."""
        return choose_protocols(
            self.protocols,
            federated=gt.federated,
            dets_per_image=self.dets_per_image,
            dets_per_class=self.dets_per_class,
        )

    def selected(self, gt: GroundTruth) -> NDArray[np.int64]:
        """Rows of the classes evaluated."""
        return select(gt, self.classes, resolve_groups(gt.categories, self.groups))

    def needs(self, gt: GroundTruth) -> list[Need]:
        """What of a results file can matter."""
        chosen = self.chosen(gt)
        needed: list[Budget] = [item.budgets[0] for item in chosen]
        if not gt.federated and any(item.name == "old" for item in chosen):
            needed.append(PerImageClass(max(COCO_RECALLS)))
        selected = self.selected(gt)
        return [Need(budget, selected) for budget in needed]


def evaluate(
    gt: Annotations,
    detections: ResultSource,
    *,
    iou: str | None = None,
    protocols: Sequence[str] = PROTOCOLS,
    dets_per_image: int | None = None,
    dets_per_class: int | None = None,
    classes: str | Iterable[int | str] | None = None,
    groups: Mapping[str, Iterable[int | str]] | None = None,
    thresholds: Sequence[float] | None = None,
    exact_lvis: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluates detections under all protocols asked for, from one match.

    gt, detections: tables, or paths of files, which are read in bounded memory.
    iou: "bbox", "segm" or "boundary"; by default segm where there are masks.
    dets_per_image: budget of AP-Old over all classes of an image, in place of LVIS's 300 per
        image or COCO's 100 per image and class.
    dets_per_class: budget of AP-Fixed and AP-Pool, in place of 10,000.
    classes: evaluate only these ("rc", a group, or names or ids); other detections are taken away
        before any budget counts.
    groups: more groups of classes, each with its AP: {"novel": ["cat", 17], …}.
    exact_lvis: repeat the quirks of lvis and pycocotools (see `match`), among them that
        detections of unknown classes use up the image's budget.
    watch: called with what is being read; what it gives is entered while that lasts, and may be
        a function to be told of the progress.
    """
    plan = Plan(protocols, dets_per_image, dets_per_class, classes, groups)
    options = MatchOptions(iou, thresholds, exact_lvis)
    return evaluate_pair(load_pair(gt, detections, plan.needs, options, progress=progress), plan)


def evaluate_pair(pair: Pair, plan: Plan) -> Evaluation:
    """The same for a pair that was read for what the plan needs."""
    truth = pair.gt
    chosen = plan.chosen(truth)
    every_group = resolve_groups(truth.categories, plan.groups)
    selected = plan.selected(truth)
    named = {name: np.intersect1d(rows, selected) for name, rows in every_group.items()}
    warnings = input_warnings(pair, {p.name: p.budgets for p in chosen}, selected)
    matches = pair.matched()
    runner = _Runner(pair, matches, selected, named)
    outcome = {item.name: runner.run(item) for item in chosen}
    if "old" in outcome and not truth.federated:
        outcome["old"].metrics.update(runner.coco_recalls())
    return Evaluation(
        protocols=outcome,
        iou=pair.iou,
        thresholds=matches.thresholds,
        categories=truth.categories,
        truth=matches.truth[:, 0],
        selected=selected,
        inputs=pair.facts(len(selected)),
        warnings=warnings,
    )


class _Runner:
    """Protocols over one match; equal budgets are worked out once."""

    def __init__(
        self,
        pair: Pair,
        matches: Matches,
        selected: NDArray[np.int64],
        groups: Mapping[str, NDArray[np.int64]],
    ) -> None:
        self._pair = pair
        self._matches = matches
        self._selected = selected
        self._groups = groups
        self._keep: dict[tuple[Budget, ...], NDArray[np.bool_] | None] = {}
        self._unlimited: Curves | None = None

    def run(self, protocol: Protocol) -> ProtocolResult:
        keep = self._kept(protocol.budgets)
        budget = describe(protocol.budgets)
        if protocol.pooled:
            return ProtocolResult(protocol.name, budget, self._pooled(keep), None)
        curves = self._curves(keep)
        metrics = self._summary((*AP, *AP_AREAS, *group_metrics(list(self._groups)), *AR), curves)
        return ProtocolResult(protocol.name, budget, metrics, curves)

    def coco_recalls(self) -> dict[str, float]:
        """AR1, AR10 and AR100, each with its own limit per image and class."""
        values = {}
        for limit in COCO_RECALLS:
            curves = self._curves(self._kept((PerImageClass(limit),)))
            values[f"AR{limit}"] = self._summary(AR[:1], curves)["AR"]
        return values

    def _summary(self, metrics: Sequence[Metric], curves: Curves) -> dict[str, float]:
        return summarize(metrics, curves, matches=self._matches, groups=self._groups)

    def _kept(self, budgets: tuple[Budget, ...]) -> NDArray[np.bool_] | None:
        if budgets not in self._keep:
            self._keep[budgets] = self._pair.kept(budgets, self._selected)
        return self._keep[budgets]

    def _curves(self, keep: NDArray[np.bool_] | None) -> Curves:
        if keep is None and self._unlimited is not None:
            return self._unlimited
        curves = class_curves(self._matches, keep)
        if len(self._selected) < len(curves.precision):
            others = np.setdiff1d(np.arange(len(curves.precision)), self._selected)
            curves.precision[others] = np.nan
            curves.recall[others] = np.nan
        if keep is None:
            self._unlimited = curves
        return curves

    def _pooled(self, keep: NDArray[np.bool_] | None) -> dict[str, float]:
        metrics = group_metrics(list(self._groups))
        pools = [self._groups[m.group] for m in metrics if m.group and m.group in self._groups]
        ranked = Pools(self._matches, self._pair.results.ranking.score, [self._selected, *pools])
        curves = ranked.curves(self._matches.kept(keep))
        values = self._summary(AP, Curves(curves.precision[:1], curves.recall[:1]))
        present = iter(curves.precision[1:, 0].mean(axis=1))
        for metric in metrics:
            values[metric.name] = (
                float(next(present)) if metric.group in self._groups else float("nan")
            )
        return values
