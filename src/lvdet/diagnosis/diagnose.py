"""Which errors a detector makes, and the cost of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from lvdet.diagnosis.confusions import Confusions
from lvdet.diagnosis.costs import TOTALS, Costs, work_out
from lvdet.diagnosis.diagnosis_result import ALL, Diagnosis
from lvdet.diagnosis.kinds import CLASSIFICATION, KINDS, MISSED, Rows, explain
from lvdet.errors import InputError
from lvdet.evaluation.class_subsets import restricted, select
from lvdet.evaluation.evaluation_result import Evaluation
from lvdet.evaluation.input_warnings import named_cut_warnings, reading_warnings
from lvdet.evaluation.load_pair import Annotations, ResultSource, load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.protocols import FIXED_PER_CLASS, Plan, evaluate_pair
from lvdet.evaluation.truncation import Cuts
from lvdet.files.progress import Progress
from lvdet.limits.budgets import PerClass, describe
from lvdet.limits.needs import Need
from lvdet.matching.match import to_be_found
from lvdet.matching.match_options import MatchOptions
from lvdet.tables.categories import resolve_groups
from lvdet.tables.ground_truth import GroundTruth

FOREGROUND, BACKGROUND = 0.5, 0.1


def diagnose(
    gt: Annotations,
    detections: ResultSource,
    *,
    iou: str | None = None,
    dets_per_class: int = FIXED_PER_CLASS,
    classes: str | Iterable[int | str] | None = None,
    groups: Mapping[str, Iterable[int | str]] | None = None,
    foreground: float = FOREGROUND,
    background: float = BACKGROUND,
    progress: Progress | None = None,
) -> Diagnosis:
    """The kinds of error in a results file: how many there are of each, and their cost.

    gt, detections: tables, or paths of files, which are read in bounded memory.
    iou: "bbox", "segm" or "boundary"; segm by default if there are masks.
    dets_per_class: the budget, as for AP-Fixed.
    classes: diagnose only detections and objects of these ("rc", a group, or names or ids);
        detections can still be confused with objects of other classes.
    groups: more groups of classes, each with its costs: {"novel": ["cat", 17], …}.
    foreground, background: the IoU from which a detection is correct, and up to which it is
        background.
    progress: see `evaluate`.
    """

    def needs(gt: GroundTruth) -> list[Need]:
        chosen = select(gt, classes, resolve_groups(gt.categories, groups))
        return [Need(PerClass(dets_per_class), chosen)]

    options = MatchOptions(iou, [foreground], partners_at=foreground)
    pair = load_pair(gt, detections, needs, options, progress=progress)
    return diagnose_pair(
        pair,
        dets_per_class=dets_per_class,
        classes=classes,
        groups=groups,
        foreground=foreground,
        background=background,
    )


def evaluate_and_diagnose(
    gt: Annotations,
    detections: ResultSource,
    plan: Plan,
    *,
    iou: str | None = None,
    drop_duplicates: bool = False,
    progress: Progress | None = None,
) -> tuple[Evaluation, Diagnosis]:
    """Runs `evaluate` and `diagnose` while reading the files once."""
    fixed = FIXED_PER_CLASS if plan.dets_per_class is None else plan.dets_per_class

    def needs(gt: GroundTruth) -> list[Need]:
        return [*plan.needs(gt), Need(PerClass(fixed), plan.selected(gt))]

    options = MatchOptions(iou, partners_at=FOREGROUND)
    pair = load_pair(
        gt, detections, needs, options, drop_duplicates=drop_duplicates, progress=progress
    )
    diagnosis = diagnose_pair(pair, dets_per_class=fixed, classes=plan.classes, groups=plan.groups)
    return evaluate_pair(pair, plan), diagnosis


def diagnose_pair(
    pair: Pair,
    *,
    dets_per_class: int = FIXED_PER_CLASS,
    classes: str | Iterable[int | str] | None = None,
    groups: Mapping[str, Iterable[int | str]] | None = None,
    foreground: float = FOREGROUND,
    background: float = BACKGROUND,
) -> Diagnosis:
    """Diagnoses a pair that has already been read, with all that the budget needs."""
    if not 0 < background < foreground <= 1:
        raise InputError(
            f"background IoU {background}, foreground IoU {foreground}, expected "
            "0 < background < foreground <= 1"
        )
    gt, results = pair.gt, pair.results
    named = resolve_groups(gt.categories, groups)
    if ALL in named:
        raise InputError(f"group name {ALL!r} is reserved for all classes: choose another")
    selected = select(gt, classes, named)
    budgets = (PerClass(dets_per_class),)
    matches, threshold = pair.matched_at(foreground, partners=True)
    kept = matches.kept(pair.kept(budgets, selected))
    objects = to_be_found(gt)
    rows = explain(
        pair,
        matches,
        threshold,
        np.ones(len(matches), dtype=bool) if kept is None else kept,
        objects,
        foreground=foreground,
        background=background,
    )
    costs = work_out(pair, matches, rows, objects, selected)
    members = {ALL: selected} | restricted(named, selected)
    kinds = (*KINDS, *TOTALS)
    ap = {name: _mean(costs.before[group]) for name, group in members.items()}
    counts = _counts(gt, rows, costs)
    confused = rows.kind == CLASSIFICATION
    return Diagnosis(
        kinds=kinds,
        ap=ap,
        costs={
            kind: {name: _mean(after[group]) - ap[name] for name, group in members.items()}
            for kind, after in zip(kinds, costs.after, strict=True)
        },
        counts={
            kind: {name: int(column[group].sum()) for name, group in members.items()}
            for kind, column in zip(kinds, counts.T, strict=True)
        },
        class_ap=costs.before,
        class_costs=(costs.after - costs.before).T,
        class_counts=counts,
        instances=np.bincount(gt.category[objects], minlength=len(gt.categories)),
        confusions=Confusions.of(
            gt.categories,
            rows.category[confused],
            gt.category[rows.target[confused]],
            results.detections.score[rows.detection[confused]],
        ),
        rows=rows,
        missed=costs.missed,
        foreground=foreground,
        background=background,
        budget=describe(budgets),
        categories=gt.categories,
        selected=selected,
        inputs=pair.facts(len(selected)),
        warnings=[
            *named_cut_warnings(
                results.source, Cuts.of(gt, results), {"AP-Fixed": budgets}, selected
            ),
            *reading_warnings(pair),
        ],
    )


def _counts(gt: GroundTruth, rows: Rows, costs: Costs) -> NDArray[np.int64]:
    """[C, kinds + 2] errors of each class: incorrect detections count for the predicted class,
    missed objects for the actual class."""
    classes = len(gt.categories)
    counts = np.zeros((classes, len(KINDS) + len(TOTALS)), dtype=np.int64)
    wrong = rows.kind < len(KINDS)
    np.add.at(counts, (rows.category[wrong], rows.kind[wrong]), 1)
    counts[:, MISSED] = np.bincount(gt.category[costs.missed], minlength=classes)
    counts[:, len(KINDS)] = counts[:, :MISSED].sum(axis=1)
    counts[:, len(KINDS) + 1] = np.bincount(gt.category[costs.unfound], minlength=classes)
    return counts


def _mean(values: NDArray[np.float64]) -> float:
    """The mean over classes; NaN if none is defined."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
