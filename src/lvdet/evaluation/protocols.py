"""AP-Old, AP-Fixed and AP-Pool from one match."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.evaluation.agnostic_recall import agnostic_recall as recalls_at
from lvdet.evaluation.agnostic_recall import recall_needs
from lvdet.evaluation.class_subsets import restricted, select
from lvdet.evaluation.evaluation_result import Evaluation, ProtocolResult
from lvdet.evaluation.input_warnings import input_warnings
from lvdet.evaluation.load_pair import Annotations, ResultSource, load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.presets import Preset, preset
from lvdet.evaluation.summary import (
    AP,
    AP_AREAS,
    AR,
    PROTOCOLS,
    Groups,
    group_metrics,
    number_name,
    summarize,
)
from lvdet.evaluation.ties import tie_warning, tied_rows
from lvdet.files.progress import Progress
from lvdet.limits.budgets import Budget, PerClass, PerImage, PerImageClass, describe
from lvdet.limits.needs import Need
from lvdet.matching.match_options import MatchOptions
from lvdet.tables.categories import resolve_groups
from lvdet.tables.ground_truth import GroundTruth

LVIS_PER_IMAGE = 300
COCO_PER_IMAGE_CLASS = 100
FIXED_PER_CLASS = 10_000
#: COCO's recalls are at these limits per image and class.
COCO_RECALLS = (1, 10, 100)


@dataclass(frozen=True)
class Protocol:
    """A way to compute AP: budgets, then the mean over classes or one pool."""

    name: str
    budgets: tuple[Budget, ...]
    pooled: bool = False


def old_budget(federated: bool) -> Budget:
    """The limit of the official tool, LVIS's or COCO's."""
    return PerImage(LVIS_PER_IMAGE) if federated else PerImageClass(COCO_PER_IMAGE_CLASS)


@dataclass(frozen=True)
class Plan:
    """The request to `evaluate`; the fields are its arguments."""

    protocols: Sequence[str] = PROTOCOLS
    dets_per_image: int | None = None
    dets_per_class: int | None = None
    classes: str | Iterable[int | str] | None = None
    groups: Mapping[str, Iterable[int | str]] | None = None
    budgets: Sequence[Sequence[Budget]] = ()
    like: str | None = None
    agnostic_recall: Sequence[int] = ()

    def __post_init__(self) -> None:
        for limit in self.agnostic_recall:
            PerImage(limit)
        for chain in self.budgets:
            if (
                not isinstance(chain, Sequence)
                or not chain
                or not all(isinstance(budget, Budget) for budget in chain)
            ):
                raise InputError(
                    f"budget is {chain!r}, expected a chain of limits, such as "
                    "(PerImage(1000), PerClass(10_000))"
                )
        others = (self.dets_per_image, self.dets_per_class, self.classes)
        alone = others == (None, None, None) and not self.budgets
        if self.like is not None and not (alone and tuple(self.protocols) == PROTOCOLS):
            raise InputError(
                f"preset {self.like!r} cannot be combined with protocols, budgets or classes"
            )

    @property
    def preset(self) -> Preset | None:
        """How the other project evaluates, if `like` names one."""
        return None if self.like is None else preset(self.like)

    def options(self, requested: MatchOptions) -> MatchOptions:
        """How detections are compared, as far as the plan leaves that open."""
        return requested if self.preset is None else self.preset.options(requested)

    def chosen(self, gt: GroundTruth) -> list[Protocol]:
        """The protocols by name, with default budgets if none is given, followed by the extra
        budgets; or only the preset."""
        if self.preset is not None:
            self.preset.require(gt)
            return [Protocol(self.preset.name, self.preset.budgets)]
        image, of_class = self.dets_per_image, self.dets_per_class
        old = old_budget(gt.federated) if image is None else PerImage(image)
        fixed = PerClass(FIXED_PER_CLASS if of_class is None else of_class)
        known = {
            "old": Protocol("old", (old,)),
            "fixed": Protocol("fixed", (fixed,)),
            "pool": Protocol("pool", (fixed,), pooled=True),
        }
        names = [self.protocols] if isinstance(self.protocols, str) else self.protocols
        unknown = [name for name in names if name not in known]
        if unknown or not (names or self.budgets or self.agnostic_recall):
            raise InputError(
                f"unknown protocol {', '.join(unknown)!r}, expected any of {', '.join(known)}"
            )
        chains = [Protocol(describe(chain), tuple(chain)) for chain in self.budgets]
        return list(dict.fromkeys([*(known[name] for name in names), *chains]))

    def selected(self, gt: GroundTruth) -> NDArray[np.int64]:
        """Rows of the evaluated classes."""
        return select(gt, self.classes, resolve_groups(gt.categories, self.groups))

    def needs(self, gt: GroundTruth) -> list[Need]:
        """The part of a results file that can matter: what the first budget of each protocol
        keeps."""
        chosen = self.chosen(gt)
        needed = [_first(item.budgets) for item in chosen]
        needed += self._of_coco_recalls(gt, chosen)
        selected = self.selected(gt)
        return [
            *(Need(budget, selected) for budget in needed),
            *recall_needs(gt, self.agnostic_recall, selected),
        ]

    def first_budgets(self, gt: GroundTruth) -> list[Budget]:
        """The budgets that are applied first: every number can be computed from the detections that
        one of them keeps."""
        chosen = self.chosen(gt)
        return [*(item.budgets[0] for item in chosen), *self._of_coco_recalls(gt, chosen)]

    def _of_coco_recalls(self, gt: GroundTruth, chosen: Sequence[Protocol]) -> list[Budget]:
        old = not gt.federated and any(item.name == "old" for item in chosen)
        return [PerImageClass(max(COCO_RECALLS))] if old else []


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
    budgets: Sequence[Sequence[Budget]] = (),
    like: str | None = None,
    agnostic_recall: Sequence[int] = (),
    exact_lvis: bool = False,
    drop_duplicates: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluates detections under all requested protocols, from one match.

    gt, detections: tables, or paths of files, which are read in bounded memory.
    iou: "bbox", "segm" or "boundary"; segm by default if there are masks.
    dets_per_image: budget of AP-Old, per image and across all classes, instead of LVIS's 300 per
        image or COCO's 100 per image and class.
    dets_per_class: budget of AP-Fixed and AP-Pool, instead of 10,000.
    classes: evaluate only these ("rc", a group, or names or ids); other detections are dropped
        before any budget applies.
    groups: additional groups of classes to report AP for: {"novel": ["cat", 17], …}.
    budgets: additional budgets to report AP for, each a chain of limits applied in order:
        [(PerImage(1000), PerClass(10_000))].
    like: reproduce another project's evaluation instead of the protocols: "glip", "detectron2", …
    agnostic_recall: limits per image, such as [100, 300, 1000]: the share of objects that the best
        detections find at each limit, whatever their class.
    exact_lvis: reproduce the quirks of lvis and pycocotools (see `match`); for example, detections
        of unknown classes use up the image's budget.
    drop_duplicates: drop exact duplicates among an image's detections.
    progress: called at the start of each long task; returns a context manager that may yield a
        function to report progress to (see `lvdet.files.progress.Progress`).
    """
    plan = Plan(
        protocols, dets_per_image, dets_per_class, classes, groups, budgets, like, agnostic_recall
    )
    return evaluate_plan(
        gt,
        detections,
        plan=plan,
        options=MatchOptions(iou, thresholds, exact_lvis),
        drop_duplicates=drop_duplicates,
        progress=progress,
    )


def evaluate_plan(
    gt: Annotations,
    detections: ResultSource,
    *,
    plan: Plan,
    options: MatchOptions,
    drop_duplicates: bool = False,
    progress: Progress | None = None,
) -> Evaluation:
    """`evaluate` with its other arguments as values."""
    pair = load_pair(
        gt,
        detections,
        plan.needs,
        plan.options(options),
        drop_duplicates=drop_duplicates,
        progress=progress,
    )
    return evaluate_pair(pair, plan)


def evaluate_pair(pair: Pair, plan: Plan) -> Evaluation:
    """Evaluates a pair that was read for the plan's needs."""
    truth = pair.gt
    chosen = plan.chosen(truth)
    every_group = resolve_groups(truth.categories, plan.groups)
    selected = plan.selected(truth)
    named = restricted(every_group, selected)
    recalls = {f"AR@{limit}": (PerImage(limit),) for limit in plan.agnostic_recall}
    warnings = input_warnings(pair, {p.name: p.budgets for p in chosen}, selected, recalls)
    outcome = {item.name: _run(item, pair, selected, named) for item in chosen}
    warnings += _tie_warnings(pair, chosen, outcome, selected)
    if "old" in outcome and not truth.federated:
        for limit in COCO_RECALLS:  # each with its own limit per image and class
            curves = pair.overall_curves([PerImageClass(limit)], selected)
            recall = summarize(AR[:1], curves, pair.matches, named)["AR"]
            outcome["old"].metrics[f"AR{limit}"] = recall
    return Evaluation(
        protocols=outcome,
        iou=pair.iou,
        thresholds=pair.matches.thresholds,
        categories=truth.categories,
        truth=pair.matches.truth[:, 0],
        selected=selected,
        inputs=pair.facts(len(selected)),
        warnings=warnings,
        like=None if plan.preset is None else plan.preset.to_dict(pair.iou),
        agnostic_recall=recalls_at(pair, plan.agnostic_recall, selected, every_group),
    )


def _tie_warnings(
    pair: Pair,
    protocols: Sequence[Protocol],
    outcome: Mapping[str, ProtocolResult],
    rows: NDArray[np.int64],
) -> list[str]:
    score = pair.results.ranking.score
    moved = [
        (
            number_name(one.name),
            outcome[one.name].ties,
            tied_rows(pair.matches, score, pair.kept_rows(one.budgets, rows), pooled=one.pooled),
        )
        for one in protocols
        if outcome[one.name].ties.notable
    ]
    return [tie_warning(pair.results.source, moved)] if moved else []


def _first(budgets: Sequence[Budget]) -> Budget | None:
    return None if len(budgets) > 1 and isinstance(budgets[0], PerImageClass) else budgets[0]


def _run(
    protocol: Protocol, pair: Pair, classes: NDArray[np.int64], groups: Groups
) -> ProtocolResult:
    """The result of a protocol for classes (rows) and groups of them."""
    budget = describe(protocol.budgets)
    of_groups = group_metrics(list(groups))
    if protocol.pooled:
        metrics = (*AP, *of_groups)
        values = pair.pooled(protocol.budgets, classes, metrics=metrics, groups=groups, bounds=True)
        ties = pair.pooled_range(protocol.budgets, classes, groups)
        return ProtocolResult(protocol.name, budget, values, None, ties)
    curves = pair.curves(protocol.budgets, classes)
    metrics = (*AP, *AP_AREAS, *of_groups, *AR)
    values = summarize(metrics, curves, pair.matches, groups)
    ties = pair.tie_range(protocol.budgets, classes, curves)
    return ProtocolResult(protocol.name, budget, values, curves, ties)
