"""Raising AP-Old without a better detector (the paper, section 3).

A limit per image makes classes compete. Applying a class cap first ("Ranking 2") makes room for
classes that would otherwise be crowded out: AP-Old rises, although the ranking within each class is
unchanged, only shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lvdet.errors import InputError
from lvdet.evaluation.input_warnings import coco_limit_warning, named_cut_warnings, reading_warnings
from lvdet.evaluation.load_pair import Annotations, DetectionSource, load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.protocols import FIXED_PER_CLASS, LVIS_PER_IMAGE, old_budget
from lvdet.evaluation.summary import defined
from lvdet.evaluation.truncation import Cuts
from lvdet.files.progress import Progress
from lvdet.limits.budgets import Budget, PerClass, PerImage, describe
from lvdet.limits.needs import everything
from lvdet.matching.match_options import MatchOptions
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Layout, compared
from lvdet.studies.account import Account
from lvdet.studies.class_caps import ClassCap, largest_class, search_caps
from lvdet.tables.detections import Detections


@dataclass(frozen=True, eq=False, repr=False)
class Reranking(Result):
    """Re-ranked results: the best of each class first, then the best of each image.

    detections: the remaining rows, in file order
    before, after: {"old": …, "fixed": …}, each with AP, APr, APc, APf
    search: how the class cap was found, if it was searched for
    """

    detections: Detections
    dets_per_class: int
    dets_per_image: int
    before: dict[str, dict[str, float]]
    after: dict[str, dict[str, float]]
    search: ClassCap | None
    inputs: dict[str, Any]
    warnings: list[str]
    _account: Account

    def account(self) -> Account:
        """For each image, what was dropped for what; the paper's first figure."""
        return self._account

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        return {
            "dets_per_class": self.dets_per_class,
            "dets_per_image": self.dets_per_image,
            "caps_tried": None if self.search is None else len(self.search.tried),
            "before": {name: defined(values) for name, values in self.before.items()},
            "after": {name: defined(values) for name, values in self.after.items()},
            "kept": len(self.detections),
            "changed_images": len(self._account),
            "inputs": self.inputs,
            "warnings": self.warnings,
        }

    def title(self) -> str:
        """What was done, on one line."""
        budgets = describe([PerClass(self.dets_per_class), PerImage(self.dets_per_image)])
        found = (
            "" if self.search is None else f" (best of {len(self.search.tried):,} class caps tried)"
        )
        return (
            f"{self.inputs['iou']}: re-ranked with {budgets}{found}: {len(self.detections):,} of "
            f"{self.inputs['detection_count']:,} detections kept, {len(self._account):,} of "
            f"{self.inputs['images']:,} images changed"
        )

    def layouts(self) -> list[Layout]:
        """AP-Old and AP-Fixed before and after."""
        old = "AP-Old" if self.inputs["format"] == "lvis" else "AP"
        kinds = {
            "old": f"{old}, {PerImage(self.dets_per_image)}",
            "fixed": f"AP-Fixed, {PerClass(FIXED_PER_CLASS)}",
        }
        return [
            compared(title, {"before": self.before[name], "after": self.after[name]})
            for name, title in kinds.items()
        ]


def rerank(
    gt: Annotations,
    detections: DetectionSource,
    *,
    dets_per_class: int | str = FIXED_PER_CLASS,
    dets_per_image: int = LVIS_PER_IMAGE,
    iou: str | None = None,
    exact_lvis: bool = False,
    progress: Progress | None = None,
) -> Reranking:
    """Keeps only the best detections of each class, then only the best of each image.

    dets_per_class: the class cap, applied first; "best" searches for the cap that raises AP-Old
                    most, as `search_class_cap` does.
    dets_per_image: the limit per image, for AP-Old and for the re-ranked results.
    """
    if isinstance(dets_per_class, str) and dets_per_class != "best":
        raise InputError(f"dets_per_class is {dets_per_class!r}, expected an integer or 'best'")
    if not isinstance(dets_per_class, str):
        PerClass(dets_per_class)  # raises for an invalid limit before the work begins
    PerImage(dets_per_image)
    options = MatchOptions(iou, exact_lvis=exact_lvis)
    pair = load_pair(gt, detections, None, options, progress=progress)
    table, every = pair.results.detections, pair.every_class
    largest = largest_class(pair)
    if isinstance(dets_per_class, str):
        search = search_caps(pair, dets_per_image, largest)
        cap = search.best
    else:
        search, cap = None, dets_per_class
    limits: list[Budget] = [PerImage(dets_per_image)]
    reranked: list[Budget] = [PerClass(cap), *limits]
    fixed = PerClass(FIXED_PER_CLASS)
    account = Account(pair, limits, reranked)
    return Reranking(
        detections=table if account.kept.all() else table[account.kept],
        dets_per_class=cap,
        dets_per_image=dets_per_image,
        before={"old": pair.average(limits, every), "fixed": pair.average([fixed], every)},
        after={
            "old": pair.average(reranked, every),
            "fixed": pair.average([*reranked, fixed], every),
        },
        search=search,
        inputs=pair.facts(),
        warnings=_warnings(pair, reranked, largest if search is None else None),
        _account=account,
    )


def search_class_cap(
    gt: Annotations,
    detections: DetectionSource,
    *,
    dets_per_image: int = LVIS_PER_IMAGE,
    iou: str | None = None,
    exact_lvis: bool = False,
    progress: Progress | None = None,
) -> ClassCap:
    """Finds the class cap, applied before the limit per image, that raises AP-Old most.

    Caps are tried from 1 to the size of the largest class, each twice the previous one, then ever
    closer around the best of them. AP may have several local maxima, so the result is the best of
    the caps tried.
    """
    PerImage(dets_per_image)  # raises for an invalid limit before the work begins
    options = MatchOptions(iou, exact_lvis=exact_lvis)
    pair = load_pair(gt, detections, everything, options, progress=progress)
    return search_caps(pair, dets_per_image, largest_class(pair))


def _warnings(pair: Pair, reranked: Sequence[Budget], largest: int | None) -> list[str]:
    """Warnings for readers of the numbers; `largest` is the size of the largest class if the class
    cap was given."""
    gt, results = pair.gt, pair.results
    cap, limit = reranked
    every = np.arange(len(gt.categories))
    old = "AP-Old" if gt.federated else "AP"
    numbers: dict[str, Sequence[Budget]] = {
        f"{old} before re-ranking": [limit],
        f"{old} after re-ranking": reranked,
        "AP-Fixed": [PerClass(FIXED_PER_CLASS)],
    }
    found = named_cut_warnings(results.source, Cuts.of(gt, results), numbers, every)
    found += reading_warnings(pair)
    if not gt.federated:
        shown = (
            f"re-ranking cannot raise AP under it, so AP with {limit} over all classes is shown."
        )
        found.append(coco_limit_warning(gt, old_budget(gt.federated), shown))
    if largest and largest <= cap.limit:
        found.append(
            f"No class has more than {largest:,} detections, so {cap} keeps them all: "
            "try --dets-per-class best."
        )
    return found
