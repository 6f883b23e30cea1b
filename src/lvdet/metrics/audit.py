"""What may be published of a results file: was it cut, and how far can its number be raised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.limit.budgets import Budget, PerClass, PerImage, PerImageClass, describe
from lvdet.limit.needs import Need
from lvdet.metrics.gaming import ClassCap, compared, largest_class, search_caps
from lvdet.metrics.inputs import Annotations, DetectionSource, Watch, headline, load_pair
from lvdet.metrics.protocols import COCO_PER_IMAGE_CLASS, FIXED_PER_CLASS, LVIS_PER_IMAGE
from lvdet.metrics.scores import Scores
from lvdet.metrics.table_text import Layout, text
from lvdet.metrics.warnings import image_cut, lower_bound, reading_warnings
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.problems import category_rows
from lvdet.tables.results import Results

#: A gain below this (a tenth of a point) is called none.
NOTHING = 0.001
#: How many of the short classes are printed.
_SHOWN = 5


@dataclass(frozen=True)
class ShortClass:
    """A class with fewer detections in the file than AP-Fixed looks at."""

    category_id: int
    name: str
    frequency: str
    detections: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "category_id": self.category_id,
            "name": self.name,
            "frequency": self.frequency,
            "detections": self.detections,
        }


@dataclass(frozen=True, eq=False)
class Audit:
    """The outcome of `audit`.

    cut: detections an image at which the file was evidently cut, and the images that have
        exactly so many; None where nothing speaks for a cut
    short: classes with fewer than 10,000 detections in the file, fewest first
    old, fixed, pool: AP, APr, APc, APf of each protocol; NaN where undefined
    reranked: AP-Old after a class cap of 10,000; None for COCO files
    search: the class cap that raises AP-Old most; None for COCO files
    standing: for each protocol "publishable", "lower bound" or "gameable"
    verdict: the same in sentences
    """

    cut: tuple[int, int] | None
    short: list[ShortClass]
    old_budget: str
    old: dict[str, float]
    fixed: dict[str, float]
    pool: dict[str, float]
    reranked: dict[str, float] | None
    search: ClassCap | None
    standing: dict[str, str]
    verdict: list[str]
    inputs: dict[str, Any]
    warnings: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `lvdet audit --output` writes them."""
        reranking = None
        if self.reranked is not None and self.search is not None:
            reranking = {
                "dets_per_class": FIXED_PER_CLASS,
                **_defined(self.reranked),
                "gain": _difference(self.reranked["AP"], self.old["AP"]),
                "best": {
                    "dets_per_class": self.search.best,
                    "caps_tried": len(self.search.tried),
                    **_defined(self.search.after),
                    "gain": _difference(self.search.after["AP"], self.old["AP"]),
                },
            }
        return {
            "cut": None if self.cut is None else {"limit": self.cut[0], "images": self.cut[1]},
            "short_classes": {
                "below": FIXED_PER_CLASS,
                "count": len(self.short),
                "of": self.inputs["classes"],
                "classes": [item.to_dict() for item in self.short],
            },
            "old": {"budget": self.old_budget, **_defined(self.old)},
            "fixed": {"budget": str(PerClass(FIXED_PER_CLASS)), **_defined(self.fixed)},
            "pool": {"budget": str(PerClass(FIXED_PER_CLASS)), **_defined(self.pool)},
            "fixed_minus_old": _difference(self.fixed["AP"], self.old["AP"]),
            "reranking": reranking,
            "standing": self.standing,
            "verdict": self.verdict,
            "inputs": self.inputs,
            "warnings": self.warnings,
        }

    def title(self) -> str:
        """What was audited, in a line."""
        return headline(self.inputs)

    def layouts(self) -> list[Layout]:
        """The numbers, compared with AP-Old."""
        lines = {f"AP-Old, {self.old_budget}": self.old}
        if self.reranked is not None and self.search is not None:
            lines[f"re-ranked, {PerClass(FIXED_PER_CLASS)} first"] = self.reranked
            lines[f"re-ranked, {PerClass(self.search.best)} first (best)"] = self.search.after
        fixed = PerClass(FIXED_PER_CLASS)
        lines[f"AP-Fixed, {fixed}"] = self.fixed
        return [
            compared("AP, mean over classes", lines),
            compared("AP-Pool", {f"AP-Pool, {fixed}": self.pool}),
        ]

    def findings(self) -> list[str]:
        """What was found in the file, in sentences."""
        found = ["The file was not evidently cut at a number of detections an image."]
        if self.cut is not None:
            found = [
                f"The file was cut at {self.cut[0]:,} detections an image: {self.cut[1]:,} images "
                "have exactly so many, and none has more."
            ]
        if self.short:
            first = ", ".join(f"{item.name} {item.detections:,}" for item in self.short[:_SHOWN])
            more = ", …" if len(self.short) > _SHOWN else ""
            found.append(
                f"{len(self.short):,} of {self.inputs['classes']:,} classes have fewer than "
                f"{FIXED_PER_CLASS:,} detections in the file ({first}{more})."
            )
        return found

    def __str__(self) -> str:
        return "\n\n".join(
            [
                self.title(),
                text(self.layouts()),
                "\n".join(self.findings()),
                "\n".join(f"- {sentence}" for sentence in self.verdict),
            ]
        )


def audit(
    gt: Annotations,
    detections: DetectionSource,
    *,
    iou: str | None = None,
    exact_lvis: bool = False,
    threads: int | None = None,
    watch: Watch | None = None,
) -> Audit:
    """Whether a results file was cut, and which of its numbers can be published.

    AP-Old, AP-Fixed and AP-Pool with their usual limits; how far AP-Old rises by re-ranking alone,
    with a class cap of 10,000 and with the best that is found. COCO's own limit counts each class
    of an image by itself, so there re-ranking changes nothing and is not tried.
    """

    def needs(gt: GroundTruth) -> list[Need]:
        every = np.arange(len(gt.categories))
        return [Need(_old(gt), every), Need(PerClass(FIXED_PER_CLASS), every)]

    pair = load_pair(
        gt, detections, needs, iou=iou, exact_lvis=exact_lvis, threads=threads, watch=watch
    )
    truth, results = pair.gt, pair.results
    warnings = reading_warnings(truth, results, exact_lvis=exact_lvis)
    scores = Scores(pair, exact_lvis=exact_lvis, threads=threads)
    every = np.arange(len(truth.categories))
    old, fixed = _old(truth), PerClass(FIXED_PER_CLASS)
    reranked = search = None
    if isinstance(old, PerImage):
        reranked = scores.average([fixed, old], every)
        most = largest_class(truth, results, exact_lvis)
        if results.total > len(results.ranking):
            most = min(most, FIXED_PER_CLASS)  # of larger classes, the rest was not kept
        search = search_caps(scores, every, old.limit, most)
    cut = image_cut(results.per_image)
    before, after = scores.average([old], every), scores.average([fixed], every)
    gain = None if search is None else search.after["AP"] - before["AP"]
    standing = _standing(cut, old, gain)
    found = Audit(
        cut=cut,
        short=_short(truth, results, every),
        old_budget=describe([old]),
        old=before,
        fixed=after,
        pool=scores.pooled([fixed], every),
        reranked=reranked,
        search=search,
        standing=standing,
        verdict=[],
        inputs=pair.facts(classes=len(every), exact_lvis=exact_lvis),
        warnings=warnings,
    )
    found.verdict.extend(_verdict(found, gain))
    return found


def _old(gt: GroundTruth) -> Budget:
    return PerImage(LVIS_PER_IMAGE) if gt.federated else PerImageClass(COCO_PER_IMAGE_CLASS)


def _short(gt: GroundTruth, results: Results, every: NDArray[np.int64]) -> list[ShortClass]:
    rows = category_rows(gt, results.ranking)
    counts = np.zeros(len(every), dtype=np.int64)
    np.add.at(counts, rows[rows >= 0], results.per_class[rows >= 0])
    below = np.flatnonzero(counts < FIXED_PER_CLASS)
    categories = gt.categories
    return [
        ShortClass(
            int(categories.ids[row]),
            categories.names[row],
            str(categories.frequency[row]),
            int(counts[row]),
        )
        for row in below[np.argsort(counts[below], kind="stable")].tolist()
    ]


def _standing(cut: tuple[int, int] | None, old: Budget, gain: float | None) -> dict[str, str]:
    def bounded(budgets: Sequence[Budget]) -> bool:
        return cut is not None and lower_bound(cut[0], budgets, every_class=True)

    fixed = "lower bound" if bounded([PerClass(FIXED_PER_CLASS)]) else "publishable"
    standing = "publishable"
    if bounded([old]):
        standing = "lower bound"
    elif isinstance(old, PerImage) and (cut is not None or (gain is not None and gain >= NOTHING)):
        standing = "gameable"
    return {"old": standing, "fixed": fixed, "pool": fixed}


def _verdict(found: Audit, gain: float | None) -> list[str]:
    """The standing of each number, and why, one sentence each."""
    sentences = []
    limit = None if found.cut is None else f"{found.cut[0]:,}"
    if found.standing["fixed"] == "publishable":
        sentences.append("AP-Fixed and AP-Pool can be published.")
    else:
        sentences.append(
            f"AP-Fixed and AP-Pool are only lower bounds: what was beyond {limit} an image is "
            "missing. Write results without a limit an image, with at least the best "
            f"{FIXED_PER_CLASS:,} of each class, before publishing them."
        )
    if found.search is None:
        sentences.append(
            f"AP-Old of a COCO file counts {found.old_budget}: no class takes the place of "
            "another, so re-ranking cannot raise it."
        )
    elif gain is not None and gain >= NOTHING:
        least = "at least " if found.cut is not None else ""
        sentences.append(
            f"AP-Old is gameable: re-ranking alone raises it by {least}{100 * gain:.2f} points "
            f"(the best {found.search.best:,} of each class first; {len(found.search.tried):,} "
            "class caps tried). A lead smaller than that says nothing about detectors."
        )
    elif found.cut is not None:
        sentences.append(
            "Re-ranking does not raise AP-Old here, but that is the cut's doing: with no more "
            f"than {limit} detections an image there is nothing to bring in. Of uncut results it "
            "may rise."
        )
    else:
        sentences.append(
            f"Re-ranking does not raise AP-Old here ({len(found.search.tried):,} class caps "
            "tried): it can be published, but AP-Fixed is the safer number."
        )
    if found.standing["old"] == "lower bound":
        sentences.append("AP-Old too is only a lower bound: the file was cut below its limit.")
    difference = found.fixed["AP"] - found.old["AP"]
    if not np.isnan(difference):
        sentences.append(f"AP-Fixed less AP-Old is {100 * difference:+.2f} points.")
    if found.short:
        sentences.append(
            "Short classes matter only because the file was cut: some would have more, and which "
            "ones cannot be told from here."
            if found.cut is not None
            else "Short classes are no fault where the file was not cut: the detector found no "
            "more of them, or kept no lower scores."
        )
    return sentences


def _difference(value: float, base: float) -> float | None:
    return None if np.isnan(value - base) else value - base


def _defined(values: dict[str, float]) -> dict[str, float | None]:
    return {name: None if np.isnan(value) else value for name, value in values.items()}
