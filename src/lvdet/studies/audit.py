"""Which numbers of a results file can be published: whether it was truncated, and how far
re-ranking raises AP."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lvdet.evaluation.input_warnings import reading_warnings
from lvdet.evaluation.load_pair import Annotations, ResultSource, load_pair
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.protocols import FIXED_PER_CLASS, old_budget
from lvdet.evaluation.truncation import Cuts
from lvdet.files.collect import ROOM_WITH_BOXES
from lvdet.files.progress import Progress
from lvdet.limits.budgets import Budget, PerClass, PerImage
from lvdet.limits.needs import Need
from lvdet.matching.match_options import MatchOptions
from lvdet.studies.audit_result import Audit, ShortClass
from lvdet.studies.class_caps import largest_class, search_caps
from lvdet.studies.score_digits import ScoreDigits
from lvdet.tables.categories import Categories
from lvdet.tables.ground_truth import GroundTruth


def audit(
    gt: Annotations,
    detections: ResultSource,
    *,
    iou: str | None = None,
    exact_lvis: bool = False,
    drop_duplicates: bool = False,
    progress: Progress | None = None,
) -> Audit:
    """Audits whether a results file was truncated, and which of its numbers can be published.

    Reports AP-Old, AP-Fixed and AP-Pool under their usual limits, and how far re-ranking alone
    raises AP-Old, with a class cap of 10,000 and with the best cap found up to 10,000. COCO's own
    limit applies to each class of an image separately, so re-ranking changes nothing there and is
    not tried.
    """

    def needs(gt: GroundTruth) -> list[Need]:
        every = np.arange(len(gt.categories))
        return [Need(old_budget(gt.federated), every), Need(PerClass(FIXED_PER_CLASS), every)]

    pair = load_pair(
        gt,
        detections,
        needs,
        MatchOptions(iou, exact_lvis=exact_lvis),
        drop_duplicates=drop_duplicates,
        progress=progress,
    )
    truth, results = pair.gt, pair.results
    every = pair.every_class
    old, fixed = old_budget(truth.federated), PerClass(FIXED_PER_CLASS)
    reranked = search = None
    if isinstance(old, PerImage):
        reranked = pair.average([fixed, old], every)
        # Of larger classes no more is kept than that, where files are read.
        most = min(largest_class(pair), FIXED_PER_CLASS)
        search = search_caps(pair, old.limit, most)
    cuts = Cuts.of(truth, results)
    return Audit(
        cuts=cuts,
        short=_short(truth.categories, cuts.counts),
        budgets={"old": old, "fixed": fixed, "pool": fixed},
        old=pair.average([old], every),
        fixed=pair.average([fixed], every),
        pool=pair.pooled([fixed], every),
        ties={
            "old": pair.tie_range([old], every, pair.curves([old], every)),
            "fixed": pair.tie_range([fixed], every, pair.curves([fixed], every)),
            "pool": pair.pooled_range([fixed], every, {}),
        },
        reranked=reranked,
        search=search,
        scores=ScoreDigits.of(_scores(pair, [old, fixed])),
        inputs=pair.facts(),
        implausible=pair.findings,
        warnings=reading_warnings(pair),
    )


def _scores(pair: Pair, budgets: Sequence[Budget]) -> NDArray[np.float64]:
    """The scores of all detections; of a large file, of which not all are read, only the scores
    that the budgets keep."""
    score = pair.results.ranking.score
    if pair.results.total <= ROOM_WITH_BOXES:
        return score
    kept = [pair.kept([budget]) for budget in budgets]
    masks = [mask for mask in kept if mask is not None]
    return score if len(masks) < len(kept) else score[np.logical_or.reduce(masks)]


def _short(categories: Categories, counts: NDArray[np.int64]) -> list[ShortClass]:
    below = np.flatnonzero(counts < FIXED_PER_CLASS)
    return [
        ShortClass(
            int(categories.ids[row]),
            categories.names[row],
            str(categories.frequency[row]),
            int(counts[row]),
        )
        for row in below[np.argsort(counts[below], kind="stable")].tolist()
    ]
