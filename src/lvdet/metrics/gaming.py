"""Raising AP-Old without a better detector (the paper, section 3).

A limit of detections an image lets classes compete. Who first throws away all but the best of
each class over the whole set ("Ranking 2") makes room for classes that would have been crowded
out: AP-Old rises, though every ranking inside a class is what it was, and shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.limit.budgets import Budget, PerClass, PerImage, PerImageClass, describe
from lvdet.limit.needs import Need
from lvdet.metrics.account import Account, outcomes
from lvdet.metrics.inputs import Annotations, DetectionSource, Pair, Watch, load_pair
from lvdet.metrics.protocols import COCO_PER_IMAGE_CLASS, FIXED_PER_CLASS, LVIS_PER_IMAGE
from lvdet.metrics.result import percent
from lvdet.metrics.scores import NAMES, Scores
from lvdet.metrics.subsets import counted_classes
from lvdet.metrics.table_text import Cell, Layout, text
from lvdet.metrics.warnings import cut_warnings, reading_warnings
from lvdet.read.detections import read_detections
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Results

#: The search stops where caps differ by less than this share, or after so many rounds.
_CLOSE = 0.01
_ROUNDS = 4
#: Caps tried on each side of the best one in a round.
_SIDE = 3


@dataclass(frozen=True)
class ClassCap:
    """The class cap that raises AP-Old most, of those that were tried.

    best: the cap; tried: AP-Old at each cap, by rising cap
    before, after: AP, APr, APc, APf of AP-Old without a cap, and with the best
    """

    best: int
    tried: dict[int, float]
    before: dict[str, float]
    after: dict[str, float]


@dataclass(frozen=True, eq=False)
class Reranking:
    """Results re-ranked: the best of each class first, then so many an image.

    detections: the rows that are left, in file order
    before, after: {"old": …, "fixed": …}, each with AP, APr, APc, APf
    search: how the class cap was found, where it was searched for
    """

    detections: Detections
    dets_per_class: int
    dets_per_image: int
    before: dict[str, dict[str, float]]
    after: dict[str, dict[str, float]]
    search: ClassCap | None
    inputs: dict[str, Any]
    warnings: list[str]
    _account: Account = field(repr=False)

    def account(self) -> Account:
        """For each image what was dropped for what; the paper's first figure."""
        return self._account

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        return {
            "dets_per_class": self.dets_per_class,
            "dets_per_image": self.dets_per_image,
            "caps_tried": None if self.search is None else len(self.search.tried),
            "before": {name: _defined(values) for name, values in self.before.items()},
            "after": {name: _defined(values) for name, values in self.after.items()},
            "kept": len(self.detections),
            "changed_images": len(self._account),
            "inputs": self.inputs,
            "warnings": self.warnings,
        }

    def title(self) -> str:
        """What was done, in a line."""
        budgets = describe([PerClass(self.dets_per_class), PerImage(self.dets_per_image)])
        found = "" if self.search is None else f" (the best of {len(self.search.tried):,} tried)"
        return (
            f"{self.inputs['iou']}: re-ranked by {budgets}{found}: {len(self.detections):,} of "
            f"{self.inputs['detection_count']:,} detections left, {len(self._account):,} of "
            f"{self.inputs['images']:,} images changed"
        )

    def layouts(self) -> list[Layout]:
        """Before and after, for AP-Old and for AP-Fixed."""
        old = "AP-Old" if self.inputs["format"] == "lvis" else "AP"
        kinds = {
            "old": f"{old}, {PerImage(self.dets_per_image)}",
            "fixed": f"AP-Fixed, {PerClass(FIXED_PER_CLASS)}",
        }
        return [
            compared(title, {"before": self.before[name], "after": self.after[name]})
            for name, title in kinds.items()
        ]

    def __str__(self) -> str:
        return "\n\n".join([self.title(), text(self.layouts())])


def rerank(
    gt: Annotations,
    detections: DetectionSource,
    *,
    dets_per_class: int | str = FIXED_PER_CLASS,
    dets_per_image: int = LVIS_PER_IMAGE,
    iou: str | None = None,
    exact_lvis: bool = False,
    threads: int | None = None,
    watch: Watch | None = None,
) -> Reranking:
    """Throws away all but the best of each class, then all but the best of each image.

    dets_per_class: how many of each class are kept first; "best" searches for the number that
        raises AP-Old most, as `search_class_cap` does.
    dets_per_image: the limit of AP-Old, that of the results made here.
    """
    if isinstance(dets_per_class, str) and dets_per_class != "best":
        raise InputError(f"dets_per_class is {dets_per_class!r}, expected a number or 'best'")
    limits = [PerImage(dets_per_image)]
    if not isinstance(dets_per_class, str):
        PerClass(dets_per_class)  # what is no limit is refused before the work begins
    if not isinstance(detections, Detections):
        # The table itself is written again: all rows, and masks even where boxes are compared.
        detections = _read(detections, threads, watch)
    pair = load_pair(
        gt,
        detections,
        lambda gt: [Need(None, np.arange(len(gt.categories)))],
        iou=iou,
        exact_lvis=exact_lvis,
        threads=threads,
        watch=watch,
    )
    assert len(pair.results.ranking) == len(detections)  # rows of the one are rows of the other
    warnings = reading_warnings(pair.gt, pair.results, exact_lvis=exact_lvis)
    warnings = [*cut_warnings(pair.results, "what re-ranking gains", 1), *warnings]
    if not pair.gt.federated:
        warnings.append(
            f"{pair.gt.source} is a COCO file, whose own limit is "
            f"{PerImageClass(COCO_PER_IMAGE_CLASS)}: re-ranking cannot raise that. What is shown "
            f"is AP with {limits[0]} over all classes."
        )
    scores = Scores(pair, exact_lvis=exact_lvis, threads=threads)
    every = np.arange(len(pair.gt.categories))
    search = None
    if isinstance(dets_per_class, str):
        most = largest_class(pair.gt, pair.results, exact_lvis)
        search = search_caps(scores, every, dets_per_image, most)
    cap = dets_per_class if search is None else search.best
    assert isinstance(cap, int)
    reranked: list[Budget] = [PerClass(cap), *limits]
    fixed = PerClass(FIXED_PER_CLASS)
    first, second = (_mask(scores, pair, budgets, exact_lvis) for budgets in (limits, reranked))
    return Reranking(
        detections=detections if second.all() else detections[second],
        dets_per_class=cap,
        dets_per_image=dets_per_image,
        before={"old": scores.average(limits, every), "fixed": scores.average([fixed], every)},
        after={
            "old": scores.average(reranked, every),
            "fixed": scores.average([*reranked, fixed], every),
        },
        search=search,
        inputs=pair.facts(classes=len(every), exact_lvis=exact_lvis),
        warnings=warnings,
        _account=Account(
            pair.gt,
            detections,
            first & ~second,
            second & ~first,
            outcomes(scores.matches, len(detections)),
        ),
    )


def search_class_cap(
    gt: Annotations,
    detections: DetectionSource,
    *,
    dets_per_image: int = LVIS_PER_IMAGE,
    iou: str | None = None,
    exact_lvis: bool = False,
    threads: int | None = None,
    watch: Watch | None = None,
) -> ClassCap:
    """The class cap that raises AP-Old most when it comes before the limit an image.

    Caps are tried from 1 to the size of the largest class, each twice the last, and then ever
    closer around the best of them. AP need not rise and fall just once in between: what is found
    is the best of those tried.
    """
    PerImage(dets_per_image)
    pair = load_pair(
        gt,
        detections,
        lambda gt: [Need(None, np.arange(len(gt.categories)))],
        iou=iou,
        exact_lvis=exact_lvis,
        threads=threads,
        watch=watch,
    )
    reading_warnings(pair.gt, pair.results, exact_lvis=exact_lvis)  # refuses what has no class
    scores = Scores(pair, exact_lvis=exact_lvis, threads=threads)
    most = largest_class(pair.gt, pair.results, exact_lvis)
    return search_caps(scores, np.arange(len(pair.gt.categories)), dets_per_image, most)


def largest_class(gt: GroundTruth, results: Results, exact_lvis: bool) -> int:
    """How many detections the class with most of them has, of those that budgets count."""
    every = np.arange(len(gt.categories))
    members = counted_classes(gt, results.ranking, every, exact_lvis)
    counts = results.per_class if members is None else results.per_class[members]
    return int(counts.max(initial=1))


def search_caps(
    scores: Scores, classes: NDArray[np.int64], dets_per_image: int, most: int
) -> ClassCap:
    """The search, up to a cap of `most`; where several are equal, the largest is the best."""
    image = PerImage(dets_per_image)
    tried: dict[int, float] = {}

    def attempt(caps: Sequence[int]) -> int:
        for cap in caps:
            if cap not in tried:
                tried[cap] = scores.average([PerClass(cap), image], classes)["AP"]
        return max(tried, key=lambda cap: (np.nan_to_num(tried[cap]), cap))

    best = attempt([*(1 << power for power in range(most.bit_length())), most])
    for _ in range(_ROUNDS):
        ordered = sorted(tried)
        place = ordered.index(best)
        sides = ordered[max(place - 1, 0)], ordered[min(place + 1, len(ordered) - 1)]
        if max(abs(side - best) for side in sides) <= max(1, _CLOSE * best):
            break
        steps = np.arange(1, _SIDE + 1) / (_SIDE + 1)
        best = attempt(
            [round(best * (side / best) ** step) for side in sides for step in steps.tolist()]
        )
    return ClassCap(
        best,
        dict(sorted(tried.items())),
        scores.average([image], classes),
        scores.average([PerClass(best), image], classes),
    )


def compared(title: str, lines: dict[str, dict[str, float]]) -> Layout:
    """A table of metrics, a line for each set of them, with deltas from the first."""
    first = next(iter(lines.values()))
    shown = [
        key
        for key in NAMES
        if key == "AP" or not all(np.isnan(line[key]) for line in lines.values())
    ]
    rows = []
    for label, values in lines.items():
        cells = [Cell(label)]
        for key in shown:
            delta = 100 * (values[key] - first[key])
            known = values is not first and not np.isnan(delta)
            cells.append(Cell(percent(values[key]), f"{delta:+.2f}" if known else ""))
        rows.append(cells)
    return Layout("", title, ["", *shown], rows)


def _read(detections: Any, threads: int | None, watch: Watch | None) -> Detections:
    if watch is None:
        return read_detections(detections, threads=threads)
    with watch("reading results") as progress:
        return read_detections(detections, threads=threads, progress=progress)


def _mask(
    scores: Scores, pair: Pair, budgets: Sequence[Budget], exact_lvis: bool
) -> NDArray[np.bool_]:
    """[N] what the budgets leave."""
    every = np.arange(len(pair.gt.categories))
    members = counted_classes(pair.gt, pair.results.ranking, every, exact_lvis)
    mask = scores.ranks.mask(budgets, classes=members)
    return np.ones(len(pair.results.ranking), dtype=bool) if mask is None else mask


def _defined(values: dict[str, float]) -> dict[str, float | None]:
    return {name: None if np.isnan(value) else value for name, value in values.items()}
