"""Tables of budgets: the paper's tables, and grids of limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lvdet.errors import InputError
from lvdet.limits.budgets import Budget, PerClass, PerImage

CLASS_FIRST, IMAGE_FIRST = ORDERS = ("class-first", "image-first")
BOTH = "both"
#: Classes as `select` takes them: letters of "rcf", a name, or names and ids.
Classes: TypeAlias = str | tuple[int | str, ...] | None
#: What limits may be given as: one or several, None for no limit.
LimitList: TypeAlias = int | float | Iterable[int | float | None] | None
#: What subsets may be given as: each a class by id or name, letters of "rcf", or several classes.
SubsetList: TypeAlias = Iterable[int | str | Iterable[int | str]] | None


@dataclass(frozen=True)
class Limits:
    """The limits of a row, for some classes: detections per image and per class (None for all),
    applied in order if there are both."""

    dets_per_image: int | None = None
    dets_per_class: int | None = None
    order: str = CLASS_FIRST
    classes: Classes = None

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The budgets in the order in which they are applied."""
        image: list[Budget] = [] if self.dets_per_image is None else [PerImage(self.dets_per_image)]
        group: list[Budget] = [] if self.dets_per_class is None else [PerClass(self.dets_per_class)]
        return tuple(group + image if self.order == CLASS_FIRST else image + group)


@dataclass(frozen=True)
class BudgetTable:
    """Rows of limits that belong together, each compared with the first one of the same classes.

    name, title: how it is requested, and what it says
    shows: which metrics people read there: "AP" (the mean over classes), "pool", or both
    paired: shown with a line for each set of classes and a column for each limit
    """

    name: str
    title: str
    rows: tuple[Limits, ...]
    shows: tuple[str, ...] = ("AP",)
    paired: bool = False


SUBSETS = ("r", "c", "f", "rc", "cf", "rf", "rcf")
#: The tables of the paper's sections 3, 4 and 6, in its order.
PAPER = {
    table.name: table
    for table in (
        BudgetTable(
            "ranking",
            "AP-Old with and without a class cap",
            (Limits(300), Limits(300, 10_000)),
        ),
        BudgetTable(
            "image-limit",
            "AP by detections per image",
            tuple(Limits(limit) for limit in (100, 300, 1_000, 2_000, 5_000, 10_000)),
        ),
        BudgetTable(
            "subsets",
            "AP by detections per image, with the detector restricted to some classes",
            tuple(Limits(limit, classes=letters) for letters in SUBSETS for limit in (300, 5_000)),
            paired=True,
        ),
        BudgetTable(
            "class-limit",
            "AP by detections per class, without a limit per image",
            tuple(Limits(dets_per_class=limit) for limit in (1_000, 5_000, 10_000, 30_000, 50_000)),
        ),
        BudgetTable(
            "pool-limit",
            "AP-Pool by detections per image",
            tuple(Limits(limit) for limit in (300, 1_000, 2_000, 5_000, 10_000)),
            shows=("pool",),
        ),
    )
}
TOY = "toy"
#: The paper's LaTeX labels of these tables, which are names as well.
LABELS = {
    "artificially_limit_dets_per_class": "ranking",
    "higher_dets_per_im": "image-limit",
    "lvis_subsets": "subsets",
    "dets_per_cat": "class-limit",
    "higher_dets_per_im_with_pool": "pool-limit",
    "balance_calib": TOY,
}


def table_name(name: str) -> str:
    """The name of a table, given by name or by its label in the paper, with or without tab: or
    fig:."""
    return LABELS.get(name.removeprefix("tab:").removeprefix("fig:"), name)


def paper_tables(names: str | Iterable[str], *, frequencies: bool) -> list[BudgetTable]:
    """The paper's tables by name; "all" means those that the annotations allow: one of them needs
    `frequencies`."""
    requested = map(table_name, [names] if isinstance(names, str) else names)
    tables: dict[str, BudgetTable] = {}
    for name in requested:
        if name == "all":
            tables |= {k: table for k, table in PAPER.items() if frequencies or not table.paired}
        elif name in PAPER:
            tables[name] = PAPER[name]
        elif name == TOY:
            raise InputError(
                "'toy' is not a table of results: call lvdet.studies.toy_example.toy() or run "
                "`lvdet sweep --paper toy`"
            )
        else:
            raise InputError(f"unknown table {name!r}, expected any of {', '.join(PAPER)}, or all")
    return list(tables.values())


def grid(
    dets_per_image: LimitList = None,
    dets_per_class: LimitList = None,
    order: str | Sequence[str] = CLASS_FIRST,
    subsets: SubsetList = None,
    rerank: int | None = None,
) -> BudgetTable:
    """Every combination of the limits, for each subset of classes.

    The order matters where both limits are there. `rerank` adds, after the rows of a limit per
    image, that limit behind a class cap of `rerank`.
    """
    if rerank is not None and dets_per_image is None:
        dets_per_image = 300
    orders = named_orders(order)
    rows: list[Limits] = []
    for classes in _subsets(subsets):
        for image in _limits(dets_per_image, "dets_per_image"):
            for group in _limits(dets_per_class, "dets_per_class"):
                both = image is not None and group is not None
                rows += [
                    Limits(image, group, item, classes)
                    for item in (orders if both else [CLASS_FIRST])
                ]
            if rerank is not None and image is not None:
                rows.append(Limits(image, rerank, CLASS_FIRST, classes))
    for row in rows:
        _ = row.budgets  # raises for an invalid limit
    return BudgetTable("grid", "by limits", tuple(dict.fromkeys(rows)), shows=("AP", "pool"))


def named_orders(order: str | Sequence[str]) -> list[str]:
    """The requested orders, without repeats."""
    if order == BOTH:
        return list(ORDERS)
    orders = list(dict.fromkeys([order] if isinstance(order, str) else order))
    if not orders or any(item not in ORDERS for item in orders):
        raise InputError(f"order is {order!r}, expected {', '.join(ORDERS)} or {BOTH}")
    return orders


def _limits(values: Any, name: str) -> list[int | None]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        values = [values]
    limits: list[int | None] = []
    for value in values:
        if value is None or (isinstance(value, float) and value == math.inf):
            limits.append(None)
        elif isinstance(value, str):
            raise InputError(f"{name} has {value!r}, expected integers, or None for no limit")
        else:
            limits.append(int(value) if isinstance(value, np.integer) else value)
    if not limits:
        raise InputError("the list of limits is empty, expected integers, or None for no limit")
    return limits


def _subsets(subsets: Any) -> list[Classes]:
    if subsets is None:
        return [None]
    if isinstance(subsets, str):
        subsets = subsets.split(",")
    elif not isinstance(subsets, Iterable):
        subsets = [subsets]
    found = [_classes(item) for item in subsets]
    if not found:
        raise InputError("the list of subsets is empty, expected letters of rcf, groups or classes")
    return list(dict.fromkeys(found))


def _classes(subset: Any) -> Classes:
    """One subset: a string as it is, otherwise names and ids."""
    if isinstance(subset, str):
        return subset.strip()
    classes = tuple(subset) if isinstance(subset, Iterable) else (subset,)
    for item in classes:
        if isinstance(item, bool) or not isinstance(item, int | np.integer | str):
            raise InputError(f"a subset contains {item!r}, expected class names and ids")
    return tuple(item if isinstance(item, str) else int(item) for item in classes)
