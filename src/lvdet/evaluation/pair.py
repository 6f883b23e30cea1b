"""The evaluation engine: annotations and results, matched once and queried with any budget."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.evaluation.average_precision import Curves, Known, Ties, class_curves
from lvdet.evaluation.class_subsets import counted_classes, restricted
from lvdet.evaluation.pooled import Pools
from lvdet.evaluation.summary import SHORT, Groups, Metric, summarize
from lvdet.evaluation.ties import TieRange, bounding_matches, mean_range
from lvdet.limits.budgets import Budget, apply
from lvdet.limits.ranks import Ranks
from lvdet.matching.match import match, to_be_found
from lvdet.matching.match_options import MatchOptions
from lvdet.plausibility.finding import Finding
from lvdet.plausibility.findings import findings
from lvdet.tables.columns import take
from lvdet.tables.description import counted
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.matches import Matches
from lvdet.tables.problems import image_rows
from lvdet.tables.results import Results

_Answer = TypeVar("_Answer")
_Rows = NDArray[np.int64]
_Mask = NDArray[np.bool_]
#: Bytes of masks that are kept, with their curves, for the next limits; the oldest go first.
_REMEMBERED = 1 << 26


class Pair:
    """Annotations, results, comparison options (with an iou), and their match.

    They are matched once, on first use: budgets, subsets of classes and parts of the images are
    masks over that match, and scores that keep the order inside each image and class are another
    order of its rows. Rows are ranked once per kind of budget, and answers are cached.
    """

    def __init__(
        self,
        gt: GroundTruth,
        results: Results,
        options: MatchOptions,
        *,
        matches: Matches | None = None,
        dropped: int | None = None,
        files: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        assert options.iou is not None
        self.gt, self.results, self.options = gt, results, options
        self.iou: str = options.iou
        self.files = list(files)
        #: What is wrong with the shards that were left out.
        self.skipped: list[str] = []
        self._matches = matches
        self.dropped = dropped
        self._groups = gt.categories.groups()
        self._answers: dict[tuple[object, ...], Any] = {}
        self._pools: dict[tuple[bytes, ...], Pools] = {}
        self._counted: dict[bytes, _Mask | None] = {}
        self._digested: tuple[_Mask, tuple[int, int]] | None = None
        self._last: tuple[object, _Mask | None] | None = None
        # In a grid of limits, most classes have the rows that they had some limits before.
        self._recent: deque[tuple[bytes, Known]] = deque()

    @property
    def every_class(self) -> _Rows:
        """Rows of all classes."""
        return np.arange(len(self.gt.categories))

    @property
    def matches(self) -> Matches:
        """The match, with rows of the ranking."""
        if self._matches is None:
            self._matches = self._match(self.options)
        return self._matches

    @cached_property
    def findings(self) -> list[Finding]:
        """Evidence that the results are implausible."""
        return findings(self.gt, self.results, iou=self.iou)

    def matched_at(self, threshold: float, *, partners: bool = False) -> tuple[Matches, int]:
        """A match that has this IoU threshold, and the threshold's place in it: the one match; or
        another, where that lacks the threshold, or partners at it that are requested."""
        near = np.isclose(self.options.levels, threshold, rtol=0, atol=1e-9)
        if near.any() and not (partners and self.options.partners_at != threshold):
            return self.matches, int(np.flatnonzero(near)[0])
        at = threshold if partners else None
        return self._match(replace(self.options, thresholds=[threshold], partners_at=at)), 0

    def where(self, keep: _Mask) -> Pair:
        """The rows selected by a mask over the ranking ([N]), which must keep the best of each
        image and class, as budgets do."""
        matches = self._matches
        if matches is not None:
            place = np.cumsum(keep, dtype=np.int32) - np.int32(1)
            matches = matches.where(keep[matches.detection])
            matches = replace(matches, detection=place[matches.detection])
        results = self.results.where(keep)
        return Pair(self.gt, results, self.options, matches=matches, dropped=self.dropped)

    def with_scores(self, score: NDArray[np.float64]) -> Pair:
        """The same detections with other scores ([N]). They are matched again only if the order
        within an image and class changes."""
        matches = self.matches.with_scores(score, self.results.ranking.image)
        results = self.results.with_scores(score)
        return Pair(self.gt, results, self.options, matches=matches, dropped=self.dropped)

    def counted_classes(self, classes: _Rows) -> _Mask | None:
        """[category ids of the ranking] those whose detections budgets count where only these
        classes (rows) are evaluated; None for all."""
        key = classes.tobytes()
        if key not in self._counted:
            exact = self.options.exact_lvis
            self._counted[key] = counted_classes(self.gt, self.results.ranking, classes, exact)
        return self._counted[key]

    def kept(self, budgets: Sequence[Budget], classes: _Rows | None = None) -> _Mask | None:
        """[N] which rows of the ranking budgets leave of classes (all that the annotations have,
        where None are given); None for all."""
        ranking = self.results.ranking
        members = self.counted_classes(self.every_class if classes is None else classes)
        among = None if members is None else members[ranking.category]
        return apply(self._cutting(budgets), ranking, among=among)

    def kept_rows(self, budgets: Sequence[Budget], classes: _Rows) -> _Mask | None:
        """[K] the same over the rows of the match."""
        budgets = self._cutting(budgets)
        question = (tuple(budgets), classes.tobytes())
        if self._last is None or self._last[0] != question:
            # The same is requested twice in a row, for AP and AP-Pool, and seldom later.
            counted = self.counted_classes(classes)
            self._last = question, self._ranks.kept(budgets, classes=counted)
        return self._last[1]

    def kept_together(
        self, budgets: Sequence[Budget], classes: _Rows, images: _Mask | None = None
    ) -> _Mask | None:
        """[K] the same over those rows in the single ranking of all classes; restricted to some
        images by a mask ([I]), if given."""
        keep, order = self.kept_rows(budgets, classes), self.matches.together
        if keep is None and images is None:
            return None
        if images is None and self._ranks.has(budgets := self._cutting(budgets)):
            counted = self.counted_classes(classes)
            return self._ranks.kept(budgets, classes=counted, order=order)
        keep, _ = self._part(keep, images)
        return None if keep is None else take(keep, order)

    def rows_in(self, images: _Mask) -> _Mask:
        """[K] the rows of the match that belong to some of the images ([I])."""
        return take(images[image_rows(self.gt, self.results.ranking)], self._row_images)

    def curves(self, budgets: Sequence[Budget], classes: _Rows) -> Curves:
        """[C, A, T] the curves of classes (rows) in every range of area, with bounds over orders of
        equal scores; NaN for the others."""
        keep = self.kept_rows(budgets, classes)
        return self._curves(self.matches.truth, keep, classes, ties=self._ties(self.matches))

    def overall_curves(self, budgets: Sequence[Budget], classes: _Rows) -> Curves:
        """[C, 1, T] the same over all areas only."""
        keep = self.kept_rows(budgets, classes)
        return self._curves(self._overall_truth, keep, classes)

    def average(
        self, budgets: Sequence[Budget], classes: _Rows, *, images: _Mask | None = None
    ) -> dict[str, float]:
        """AP, APr, APc and APf: means over classes (rows), NaN where undefined; restricted to some
        images by a mask ([I]), if given."""
        keep, truth = self._part(self.kept_rows(budgets, classes), images)

        def values() -> dict[str, float]:
            curves = self._curves(truth, keep, classes, own=images is None)
            return summarize(SHORT, curves, self.matches, self._groups)

        return dict(self._answer(values, "average", keep, classes, truth))

    def pooled(
        self,
        budgets: Sequence[Budget],
        classes: _Rows,
        *,
        images: _Mask | None = None,
        metrics: Sequence[Metric] = SHORT,
        groups: Groups | None = None,
        bounds: bool = False,
    ) -> dict[str, float]:
        """The same for AP-Pool, or other metrics of other groups of classes. `bounds` announces
        that `pooled_range` will be called as well."""
        groups = self._groups if groups is None else groups
        keep, truth = self._part(self.kept_rows(budgets, classes), images)

        def values() -> dict[str, float]:
            if bounds and images is None:
                curves = self._pool_curves(budgets, classes, groups)
            else:
                together = self.kept_together(budgets, classes, images)
                curves = self.pools(classes, groups).curves(together, truth)
            places = {name: np.array([place + 1]) for place, name in enumerate(groups)}
            return summarize(metrics, curves, self.matches, places, whole=np.array([0]))

        rows = (classes, truth, *groups.values())
        return dict(self._answer(values, ("pooled", *metrics, *groups), keep, *rows))

    def tie_range(self, budgets: Sequence[Budget], classes: _Rows, curves: Curves) -> TieRange:
        """The range of AP, the mean over classes (rows) with these curves, over all orders of equal
        scores."""
        bounding = bounding_matches(self.matches)
        if bounding is None:
            return mean_range(curves)
        keep, truth = self.kept_rows(budgets, classes), np.zeros_like(self._overall_truth)
        truth[classes] = self._overall_truth[classes]
        low, high = (class_curves(one, keep, truth, ties=self._ties(one)) for one in bounding)
        return mean_range(low, high)

    def pooled_range(self, budgets: Sequence[Budget], classes: _Rows, groups: Groups) -> TieRange:
        """The same for AP-Pool."""
        bounding = bounding_matches(self.matches)
        if bounding is None:
            return mean_range(self._pool_curves(budgets, classes, groups))
        keep, score = self.kept_rows(budgets, classes), self.results.ranking.score
        found = []
        for one in bounding:
            pools = Pools(one, [classes])
            together = None if keep is None else take(keep, one.together)
            found.append(pools.curves(together, ties=pools.ties(score)))
        return mean_range(*found)

    def pools(self, classes: _Rows, groups: Groups) -> Pools:
        """Pools of classes (rows): all in one ranking, then each group."""
        members = [classes, *restricted(groups, classes).values()]
        key = tuple(rows.tobytes() for rows in members)
        if key not in self._pools:
            self._pools[key] = Pools(self.matches, members)
        return self._pools[key]

    def instances(self, classes: _Rows) -> int:
        """The number of objects of the classes to find."""
        return int(self.matches.truth[classes, 0].sum())

    def forget(self) -> None:
        """Frees what was derived from the match; it is recomputed when needed."""
        for name in ("_ranks", "_row_images"):
            self.__dict__.pop(name, None)
        self._answers.clear()
        self._recent.clear()
        self._pools.clear()

    def facts(self, classes: int | None = None) -> dict[str, Any]:
        """What was evaluated, for the output; `classes` is their number, if not all."""
        dropped = {} if self.dropped is None else {"duplicates_dropped": self.dropped}
        return {
            "ground_truth": self.gt.source,
            "detections": self.results.source,
            "format": "lvis" if self.gt.federated else "coco",
            "iou": self.iou,
            "images": len(self.gt.images),
            "classes": len(self.gt.categories) if classes is None else classes,
            "annotations": len(self.gt),
            "detection_count": self.results.total,
            "exact_lvis": self.options.exact_lvis,
            **dropped,
            **({"skipped_shards": self.skipped} if self.skipped else {}),
            "files": self.files,
        }

    def _cutting(self, budgets: Sequence[Budget]) -> list[Budget]:
        """The budgets that remove anything."""
        return [budget for budget in budgets if budget.limit < budget.most(self.results)]

    @cached_property
    def _ranks(self) -> Ranks:
        return Ranks(self.results.ranking, self.matches.detection)

    @cached_property
    def _row_images(self) -> NDArray[np.int32]:
        """[K] the image of each row of the match, as in the ranking."""
        return take(self.results.ranking.image, self.matches.detection)

    def _match(self, options: MatchOptions) -> Matches:
        if not self.results.matchable:
            raise InputError(f"{self.results.source} was matched in parts and has no boxes left")
        return self.results.placed(match(self.gt, self.results.detections, options))

    def _part(
        self, keep: _Mask | None, images: _Mask | None
    ) -> tuple[_Mask | None, NDArray[np.int64]]:
        """The kept rows that belong to some images, and [C, 1] the objects to find there."""
        if images is None:
            return keep, self._overall_truth
        gt, here = self.gt, self.rows_in(images)
        objects = gt.category[to_be_found(gt, self.options.exact_lvis) & images[gt.image]]
        truth = np.bincount(objects, minlength=len(gt.categories)).reshape(-1, 1)
        return here if keep is None else here & keep, truth

    @property
    def _overall_truth(self) -> NDArray[np.int64]:
        """[C, 1] the objects to find, over all areas."""
        return np.ascontiguousarray(self.matches.truth[:, :1])

    def _curves(
        self,
        truth: NDArray[np.int64],
        keep: _Mask | None,
        classes: _Rows,
        *,
        own: bool = True,
        ties: Ties | None = None,
    ) -> Curves:
        """The curves of classes; reuses earlier curves if the truth is the pair's `own`."""
        wanted = np.zeros_like(truth)
        wanted[classes] = truth[classes]  # others have nothing to find: undefined

        def curves(keep: _Mask | None, known: Sequence[Known] = ()) -> Curves:
            return class_curves(self.matches, keep, wanted, known, ties)

        if not own:
            return curves(keep)
        whole = self._answer(lambda: curves(None), "whole", None, wanted)
        if keep is None:
            return whole
        if ties is not None:
            return curves(keep, [(None, whole)])
        question = wanted.tobytes()
        recent = [known for requested, known in self._recent if requested == question]
        found = curves(keep, [(None, whole), *recent])
        self._recent.append((question, (keep, found)))
        while len(self._recent) * keep.nbytes > _REMEMBERED:
            self._recent.popleft()
        return found

    def _pool_curves(self, budgets: Sequence[Budget], classes: _Rows, groups: Groups) -> Curves:
        """The curves of all classes in one ranking and of groups of them, with bounds of the
        first."""
        rows = (classes, *groups.values())

        def curves() -> Curves:
            pools, score = self.pools(classes, groups), self.results.ranking.score
            ties = self._answer(lambda: pools.ties(score), "pool ties", None, *rows)
            return pools.curves(self.kept_together(budgets, classes), ties=ties)

        return self._answer(curves, "pool curves", self.kept_rows(budgets, classes), *rows)

    def _ties(self, matches: Matches) -> Ties:
        score = self.results.ranking.score

        def ties() -> Ties:
            offsets, detection = matches.category_offsets, matches.detection
            return Ties.of(matches.outcomes, offsets, None, detection, score)

        return ties() if matches is not self._matches else self._answer(ties, "ties", None)

    def _answer(
        self,
        make: Callable[[], _Answer],
        kind: object,
        keep: _Mask | None,
        *arrays: NDArray[np.int64],
    ) -> _Answer:
        """The cached answer for equal rows, whatever the budgets: many budgets keep all rows."""
        key = (kind, self._digest(keep), *(array.tobytes() for array in arrays))
        if key not in self._answers:
            self._answers[key] = make()
        answer: _Answer = self._answers[key]
        return answer

    def _digest(self, keep: _Mask | None) -> tuple[int, int]:
        """A digest: equal for equal rows, and for different rows with probability 2^-64."""
        if keep is None:
            return 0, -1
        if self._digested is None or self._digested[0] is not keep:
            rows = hash(np.packbits(keep).tobytes()), int(np.count_nonzero(keep))
            self._digested = keep, rows
        return self._digested[1]


def headline(facts: Mapping[str, Any]) -> str:
    """What was evaluated, on one line."""
    dropped = facts.get("duplicates_dropped")
    left_out = "" if dropped is None else f", {dropped:,} duplicates dropped"
    return (
        f"{facts['iou']}: {counted(facts['detection_count'], 'detection')} on "
        f"{counted(facts['images'], 'image')}, {counted(facts['classes'], 'class', 'classes')}"
        f"{left_out}"
    )
