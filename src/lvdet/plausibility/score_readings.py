"""Detects scores that are not probabilities or that rank in reverse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lvdet.plausibility.finding import Finding
from lvdet.plausibility.image_sample import Objects, Sample, known_classes
from lvdet.plausibility.pairing import Pairing
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.results import Results

#: Fewer scores are inconclusive.
_FEWEST = 50
#: Minimum number of objects found by the lowest scores, and its ratio to those found by the
# highest.
_REVERSED, _RATIO = 15, 4


def misread_scores(
    gt: GroundTruth, results: Results, sample: Sample, objects: Objects
) -> list[Finding]:
    """Whether scores are all equal, on another scale, or reversed, judged on a sample of verified
    detections."""
    low, high = float(sample.score.min()), float(sample.score.max())
    rows = _rows(results)
    if low == high and rows >= _FEWEST and _every_score(results)[:2] == (low, low):
        return [
            Finding(
                "constant-scores",
                rows,
                {"score": low},
                f"All {rows:,} scores of {results.source} are {low:g}: the order of the file "
                "decides the ranking.",
                "Write each detection with its own score.",
            )
        ]
    found = _scale(results, low, high)
    reversed_ = _reversed(gt, results, sample, objects)
    return found if reversed_ is None else [*found, reversed_]


class _Scores(NamedTuple):
    """The lowest and the highest of scores, and how many are not in [0, 1]."""

    lowest: float
    highest: float
    outside: int


def _rows(results: Results) -> int:
    """How many scores facts are known about."""
    return len(results.ranking) if results.scores is None else results.total


def _every_score(results: Results) -> _Scores:
    """Facts about all scores: of the whole file, if they are known."""
    score, known = results.ranking.score, results.scores
    if known is not None:
        ends = float(known.lowest.min()), float(known.highest.max())
        return _Scores(*ends, int(known.outside.sum()))
    outside = int(((score < 0) | (score > 1)).sum())
    return _Scores(float(score.min()), float(score.max()), outside)


def _scale(results: Results, low: float, high: float) -> list[Finding]:
    rows = _rows(results)
    if (low >= 0 and high <= 1) or rows < _FEWEST:
        return []
    low, high, outside = _every_score(results)
    percent = low >= 0 and 10 < high <= 100
    what = "are percentages" if percent else "look like logits" if low < 0 else "exceed 1"
    remedy = "Divide them by 100." if percent else "Write probabilities, such as a sigmoid's."
    return [
        Finding(
            "score-scale",
            outside,
            {"lowest": low, "highest": high},
            f"Scores of {results.source} {what}: they lie between {low:g} and {high:g}, "
            f"{outside:,} of {rows:,} outside 0 to 1.",
            remedy,
            changes_ap=False,
        )
    ]


def _reversed(
    gt: GroundTruth, results: Results, sample: Sample, objects: Objects
) -> Finding | None:
    """Whether the lowest scores belong to the best detections."""
    classes = known_classes(gt, results)
    number = np.bincount(sample.row_image, minlength=len(sample.images))
    most = sample.objects[sample.row_image]
    able = number[sample.row_image] >= 3 * most
    first = able & (sample.row_rank < most)
    last = able & (sample.row_rank >= number[sample.row_image] - most)

    def right(rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int:
        part = sample.where(rows)
        pairing = Pairing.of(part, objects, part.images)
        near = pairing.overlapping(gt, part.box)
        same = classes[part.row_category[pairing.row]] == gt.category[
            pairing.objects[pairing.target]
        ].astype(np.int64)
        return int(pairing.found(near & same).sum())

    lowest = right(last)
    if lowest < _REVERSED:
        return None
    highest = right(first)
    if lowest < _RATIO * highest + _REVERSED:
        return None
    total = int(sample.objects[np.unique(sample.row_image[able])].sum())
    return Finding(
        "reversed-scores",
        total,
        {"objects": total, "found_by_highest": highest, "found_by_lowest": lowest},
        f"The lowest scores of {results.source} are its best detections: of {total:,} "
        f"objects, the highest scores of each image find {highest:,}, and the same number of "
        f"lowest scores find {lowest:,}.",
        "Write scores that rise with confidence.",
    )
