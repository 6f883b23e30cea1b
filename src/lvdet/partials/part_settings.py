"""What a partial was computed for: partials that are merged have this in common."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.evaluation.protocols import Plan
from lvdet.limits.budgets import Budget, describe, parse_budget
from lvdet.matching.match_options import MatchOptions
from lvdet.tables.categories import resolve_groups
from lvdet.tables.ground_truth import GroundTruth


@dataclass(frozen=True, eq=False)
class PartSettings:
    """The evaluation that partials are for.

    plan, options: the arguments of `evaluate`, classes and groups given by their ids
    budgets:   the first budget of every number: what none of them keeps is not needed
    federated: whether the annotations are LVIS's
    truth:     the digest of the annotations
    own_truth: whether partials carry the objects of their images, and the annotations are those
    """

    plan: Plan
    options: MatchOptions
    budgets: tuple[Budget, ...]
    federated: bool
    truth: str
    own_truth: bool

    @staticmethod
    def of(
        gt: GroundTruth, plan: Plan, options: MatchOptions, *, truth: str, own_truth: bool
    ) -> PartSettings:
        """The settings for these annotations."""
        classes = plan.classes
        every = resolve_groups(gt.categories, plan.groups)
        named = Plan(
            plan.protocols if not isinstance(plan.protocols, str) else [plan.protocols],
            plan.dets_per_image,
            plan.dets_per_class,
            None if classes is None else _ids(gt, plan.selected(gt)),
            {name: _ids(gt, every[name]) for name in plan.groups} if plan.groups else None,
            plan.budgets,
            plan.like,
        )
        budgets = plan.first_budgets(gt)
        highest = {
            type(one): max(b.limit for b in budgets if type(b) is type(one)) for one in budgets
        }
        kept = tuple(kind(limit) for kind, limit in highest.items())
        return PartSettings(named, options, kept, gt.federated, truth, own_truth)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        plan, options = self.plan, self.options
        thresholds = options.thresholds
        groups = plan.groups or {}
        return {
            "protocols": list(plan.protocols),
            "dets_per_image": plan.dets_per_image,
            "dets_per_class": plan.dets_per_class,
            "classes": None if plan.classes is None else list(plan.classes),
            "groups": [[name, list(ids)] for name, ids in groups.items()],
            "budgets": [describe(chain) for chain in plan.budgets],
            "like": plan.like,
            "iou": options.iou,
            "thresholds": None if thresholds is None else [float(one) for one in thresholds],
            "exact_lvis": options.exact_lvis,
            "mask_area": options.mask_area,
            "kept": describe(self.budgets) if self.budgets else "",
            "federated": self.federated,
            "truth": self.truth,
            "own_truth": self.own_truth,
        }

    @staticmethod
    def from_dict(found: Mapping[str, Any]) -> PartSettings:
        """The settings of `to_dict`; ValueError for anything else."""
        plan = Plan(
            found["protocols"],
            found["dets_per_image"],
            found["dets_per_class"],
            found["classes"],
            dict(found["groups"]) or None,
            [parse_budget(chain) for chain in found["budgets"]],
            found["like"],
        )
        options = MatchOptions(
            found["iou"],
            found["thresholds"],
            exact_lvis=found["exact_lvis"],
            mask_area=found["mask_area"],
        )
        kept = parse_budget(found["kept"]) if found["kept"] else ()
        federated, truth, own_truth = found["federated"], found["truth"], found["own_truth"]
        settings = PartSettings(plan, options, kept, federated, truth, own_truth)
        _require_types(settings)
        if json.dumps(settings.to_dict()) != json.dumps(dict(found)):
            raise ValueError("unexpected settings")
        return settings

    def require_equal(self, other: PartSettings) -> None:
        """Raises unless partials of both can be merged."""
        mine, others = self.to_dict(), other.to_dict()
        if mine["truth"] != others["truth"]:
            raise InputError("cannot merge partials of different ground truth")
        for name, value in mine.items():
            if json.dumps(value) != json.dumps(others[name]):
                raise InputError(
                    f"cannot merge partials of different settings: {name} is {_short(value)} in "
                    f"one and {_short(others[name])} in another"
                )


def _ids(gt: GroundTruth, rows: NDArray[np.int64]) -> list[int]:
    ids: list[int] = gt.categories.ids[rows].tolist()
    return ids


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _require_types(settings: PartSettings) -> None:
    """ValueError for values of other types than annotations say; a bool is not a number."""
    plan, options = settings.plan, settings.options
    texts = [*plan.protocols, settings.truth, *(plan.groups or {})]
    texts += [one for one in (plan.like, options.iou) if one is not None]
    flags = [options.exact_lvis, options.mask_area, settings.federated, settings.own_truth]
    limits = [one for one in (plan.dets_per_image, plan.dets_per_class) if one is not None]
    ids = [*(plan.classes or []), *(one for ids in (plan.groups or {}).values() for one in ids)]
    if not (
        isinstance(plan.protocols, list)
        and isinstance(plan.classes, list | None)
        and all(isinstance(one, str) for one in texts)
        and all(isinstance(one, bool) for one in flags)
        and all(type(one) is int and one >= 0 for one in limits)
        and all(type(one) is int and -(2**63) <= one < 2**63 for one in ids)
    ):
        raise ValueError("unexpected types")
    options.levels  # noqa: B018 (raises)
