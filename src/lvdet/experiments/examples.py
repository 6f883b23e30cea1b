"""Single images for the paper's figures, as lists of detections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.pair import Pair
from lvdet.limits.budgets import PerClass, PerImage
from lvdet.studies.account import OUTCOMES, Account, ImageAccount, Shown, outcomes
from lvdet.tables.problems import category_rows

#: Detections that are shown of an image.
BEST, EXCHANGED = 20, 10
RIGHT = "right"


def reranking_example(pair: Pair, old: PerImage, fixed: PerClass) -> dict[str, Any]:
    """The image in which a class limit before the image limit brings most objects that were not
    found (the paper's first figure): the best of what goes and comes."""
    best: ImageAccount | None = None
    for account in Account(pair, [old], [fixed, old]):
        if best is None or _right(account.added) > _right(best.added):
            best = account
    if best is None:
        return {}
    return {
        "image": best.image_id,
        "dropped": _plain(best.dropped[:EXCHANGED]),
        "added": _plain(best.added[:EXCHANGED]),
    }


def calibration_example(pair: Pair, after: NDArray[np.float64]) -> dict[str, Any]:
    """The image in which new scores ([N]) most increase the share of correct detections among the
    best: its best before and after."""
    ranking = pair.results.ranking
    outcome = outcomes(pair.matches, len(ranking))
    image = ranking.image
    order = np.argsort(image, kind="stable")
    best: tuple[int, int, NDArray[np.int64], NDArray[np.int64]] | None = None
    for rows in np.split(order, np.flatnonzero(np.diff(image[order])) + 1):
        if not len(rows):
            continue
        first, then = (_top(rows, score) for score in (ranking.score, after))
        gain = int((outcome[then] == 2).sum() - (outcome[first] == 2).sum())
        if best is None or gain > best[0]:
            best = gain, int(ranking.image_ids[image[rows[0]]]), first, then
    if best is None:
        return {}
    names, categories = pair.gt.categories.names, category_rows(pair.gt, ranking)

    def shown(rows: NDArray[np.int64], score: NDArray[np.float64]) -> list[dict[str, Any]]:
        return [
            {
                "class": names[categories[ranking.category[row]]],
                "score": round(float(score[row]), 4),
                "outcome": OUTCOMES[outcome[row]],
            }
            for row in rows.tolist()
        ]

    return {
        "image": best[1],
        "before": shown(best[2], ranking.score),
        "after": shown(best[3], after),
    }


def _top(rows: NDArray[np.int64], score: NDArray[np.float64]) -> NDArray[np.int64]:
    return rows[np.argsort(-score[rows], kind="stable")[:BEST]]


def _right(shown: Sequence[Shown]) -> int:
    return sum(one.outcome == RIGHT for one in shown)


def _plain(shown: Sequence[Shown]) -> list[dict[str, Any]]:
    return [
        {"class": one.name, "score": round(one.score, 4), "outcome": one.outcome} for one in shown
    ]
