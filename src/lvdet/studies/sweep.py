"""AP under a grid of budgets, from one match (the paper, sections 3, 4 and 6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.evaluation.class_subsets import select
from lvdet.evaluation.input_warnings import (
    Subject,
    coco_limit_warning,
    cut_warnings,
    reading_warnings,
)
from lvdet.evaluation.load_pair import Annotations, ResultSource, load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.protocols import old_budget
from lvdet.evaluation.truncation import Cuts
from lvdet.files.progress import Progress
from lvdet.limits.budgets import Budget
from lvdet.limits.needs import Need
from lvdet.matching.match_options import MatchOptions
from lvdet.studies.budget_tables import (
    CLASS_FIRST,
    BudgetTable,
    Classes,
    LimitList,
    Limits,
    SubsetList,
    grid,
    named_orders,
    paper_tables,
)
from lvdet.studies.sweep_result import Sweep, SweepRow
from lvdet.tables.categories import FREQUENCIES, Categories
from lvdet.tables.ground_truth import GroundTruth

#: Limits of some classes; AP and AP-Pool under them, with those of groups.
_Question: TypeAlias = tuple[Classes, tuple[Budget, ...]]
_Answer: TypeAlias = tuple[dict[str, float], dict[str, float]]


def sweep(
    gt: Annotations,
    detections: ResultSource,
    *,
    dets_per_image: LimitList = None,
    dets_per_class: LimitList = None,
    order: str | Sequence[str] = CLASS_FIRST,
    subsets: SubsetList = None,
    rerank: int | None = None,
    paper: str | Iterable[str] | None = None,
    iou: str | None = None,
    exact_lvis: bool = False,
    drop_duplicates: bool = False,
    progress: Progress | None = None,
) -> Sweep:
    """AP and AP-Pool under every combination of limits, from one match.

    gt, detections: tables, or paths of files, as for `evaluate`.
    dets_per_image, dets_per_class: limits per image across all classes, and per class across all
        images; None in a list means no limit.
    order: which limit applies first in rows that have both: "class-first", "image-first", or "both"
        for one row each.
    subsets: restrict the detector to these classes before any limit applies, and average AP over
        them: letters of "rcf", names or ids of single classes, or lists of names and ids.
    rerank: for each limit per image, adds the row in which a class cap of `rerank` applies first:
        the paper's "Ranking 2".
    paper: tables of the paper by name: "ranking", "image-limit", "subsets", "class-limit",
        "pool-limit", or "all" that the annotations allow, the default if no limits or subsets are
        given.
    iou, exact_lvis, drop_duplicates, progress: as for `evaluate`.
    """
    requested = any(item is not None for item in (dets_per_image, dets_per_class, subsets, rerank))
    named_orders(order)  # refused even where no row has both limits
    own = grid(dets_per_image, dets_per_class, order, subsets, rerank) if requested else None
    if own is None and paper is None:
        paper = "all"

    def choose(gt: GroundTruth) -> list[BudgetTable]:
        frequencies = bool(gt.categories.groups())
        named = [] if paper is None else paper_tables(paper, frequencies=frequencies)
        return [*named, *([] if own is None else [_distinct(own, gt.categories)])]

    def needs(gt: GroundTruth) -> list[Need]:
        return _needs(gt, choose(gt))

    pair = load_pair(
        gt,
        detections,
        needs,
        MatchOptions(iou, exact_lvis=exact_lvis),
        drop_duplicates=drop_duplicates,
        progress=progress,
    )
    tables = choose(pair.gt)
    if not tables:
        raise InputError("no table was requested")
    return sweep_pair(pair, tables)


def sweep_pair(pair: Pair, tables: Sequence[BudgetTable]) -> Sweep:
    """Computes the tables of a pair that was read for them."""
    truth, results = pair.gt, pair.results
    selected = _selected(truth, tables)
    warnings = reading_warnings(pair)
    cuts = Cuts.of(truth, results)
    answers = _answers(pair, tables, selected)
    rows = [row for table in tables for row in _rows(table, pair, selected, cuts, answers)]
    if not truth.federated and any(row.dets_per_image is not None for row in rows):
        shown = "the limits per image here apply to all classes together."
        warnings.append(coco_limit_warning(truth, old_budget(truth.federated), shown))
    return Sweep(
        rows=rows,
        tables={table.name: table for table in tables},
        inputs=pair.facts(),
        warnings=[*_cut_warnings(results.source, cuts, tables, selected), *warnings],
    )


def _cut_warnings(
    source: str,
    cuts: Cuts,
    tables: Sequence[BudgetTable],
    selected: dict[Classes, NDArray[np.int64]],
) -> list[str]:
    """The effect of truncation, and on how many of the rows."""
    requested = [(row.budgets, selected[row.classes]) for table in tables for row in table.rows]

    def some(marks: Iterable[bool]) -> Subject | None:
        number = sum(marks)
        return Subject(f"{number:,} of {len(requested):,} rows", number != 1) if number else None

    return cut_warnings(
        source,
        cuts,
        missed_by_image=some(cuts.missed_by_image(*row) for row in requested),
        missed_by_class=some(cuts.missed_by_class(*row) for row in requested),
        reranked=some(cuts.reranked(*row) for row in requested),
    )


def _distinct(table: BudgetTable, categories: Categories) -> BudgetTable:
    """The table without equivalent rows, such as "rr" and "r"."""
    first: dict[tuple[str, tuple[Budget, ...]], Limits] = {}
    for row in table.rows:
        first.setdefault((_label(categories, row.classes), row.budgets), row)
    return replace(table, rows=tuple(first.values()))


def _needs(gt: GroundTruth, tables: Sequence[BudgetTable]) -> list[Need]:
    """What the first budgets of all rows need: of each kind and each set of classes, the highest
    limit holds the others, and no limit at all holds every one."""
    selected = _selected(gt, tables)
    needs: dict[tuple[Classes, type[Budget] | None], Need] = {}
    for row in (row for table in tables for row in table.rows):
        first = row.budgets[0] if row.budgets else None
        key = (row.classes, None if first is None else type(first))
        known = needs.get(key)
        if known is None or (first and known.budget and first.limit > known.budget.limit):
            needs[key] = Need(first, selected[row.classes])
    return [
        need
        for (classes, kind), need in needs.items()
        if kind is None or (classes, None) not in needs
    ]


def _selected(gt: GroundTruth, tables: Sequence[BudgetTable]) -> dict[Classes, NDArray[np.int64]]:
    """The rows of the classes that the tables name."""
    groups = gt.categories.groups()
    named = dict.fromkeys(row.classes for table in tables for row in table.rows)
    return {classes: select(gt, classes, groups) for classes in named}


def _answers(
    pair: Pair, tables: Sequence[BudgetTable], selected: dict[Classes, NDArray[np.int64]]
) -> dict[_Question, _Answer]:
    """AP and AP-Pool of every row. Those that begin with the same limit follow each other: what it
    leaves is ranked once, and most classes have the same rows under the next limit."""
    requested = dict.fromkeys((row.classes, row.budgets) for table in tables for row in table.rows)
    places = {classes: place for place, classes in enumerate(selected)}

    def place(question: _Question) -> tuple[int, list[tuple[str, int]]]:
        classes, budgets = question
        return places[classes], [(budget.unit, budget.limit) for budget in budgets]

    answers: dict[_Question, _Answer] = {}
    for classes, budgets in sorted(requested, key=place):
        rows = selected[classes]
        answers[classes, budgets] = pair.average(budgets, rows), pair.pooled(budgets, rows)
    return answers


def _rows(
    table: BudgetTable,
    pair: Pair,
    selected: dict[Classes, NDArray[np.int64]],
    cuts: Cuts,
    answers: Mapping[_Question, _Answer],
) -> list[SweepRow]:
    found: list[SweepRow] = []
    for limits in table.rows:
        rows = selected[limits.classes]
        both = None not in (limits.dets_per_image, limits.dets_per_class)
        instances = pair.instances(rows)
        average, pooled = answers[limits.classes, limits.budgets]
        found.append(
            SweepRow(
                table=table.name,
                dets_per_image=limits.dets_per_image,
                dets_per_class=limits.dets_per_class,
                order=limits.order if both else None,
                classes=_label(pair.gt.categories, limits.classes),
                class_count=len(rows),
                instances_per_class=instances / len(rows) if len(rows) else float("nan"),
                metrics=dict(average),
                pool=dict(pooled),
                incomplete=cuts.incomplete(limits.budgets, rows),
                reranked=cuts.reranked(limits.budgets, rows),
            )
        )
    return [_compared(row, found) for row in found]


def _compared(row: SweepRow, rows: Sequence[SweepRow]) -> SweepRow:
    """The row with its difference from the first one of the same classes, if that is another
    row."""
    first = next(other for other in rows if other.classes == row.classes)
    return row if first is row else row.against(first)


def _label(categories: Categories, classes: Classes) -> str:
    """The label of the classes: "rcf" or some of its letters if they have frequencies."""
    if classes is None:
        return "rcf" if np.isin(categories.frequency, FREQUENCIES).all() else "all"
    if not isinstance(classes, str):
        return ", ".join(map(str, classes))
    if set(classes) <= set(FREQUENCIES) and classes not in categories.names:
        return "".join(letter for letter in FREQUENCIES if letter in classes)
    return classes
