"""The best scores of each class so far, and what a further one has to exceed."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from heapq import heappush, heapreplace

import numpy as np
from numpy.typing import NDArray

#: New scores of a class from which sorting them in is faster than one at a time.
MANY = 64


class TopScores:
    """The best `limit` scores of each class: 10 to 20 bytes per score, and no more of them."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._classes: dict[int, _ClassScores] = {}
        self.rows = 0

    def add(
        self,
        category: NDArray[np.int32],
        category_ids: NDArray[np.int64],
        score: NDArray[np.float64],
    ) -> None:
        """Scores of rows whose classes are places among the ids."""
        order = np.argsort(category, kind="stable")
        ordered = score[order]
        begin = 0
        for name, count in zip(
            category_ids.tolist(),
            np.bincount(category, minlength=len(category_ids)).tolist(),
            strict=True,
        ):
            if count:
                of_class = self._classes.get(name)
                if of_class is None:
                    of_class = self._classes[name] = _ClassScores(self._limit)
                self.rows += of_class.add(ordered[begin : begin + count])
                begin += count

    def threshold(self, category_id: int) -> float:
        """The score of the class's last row that counts; -inf while there are fewer than wanted."""
        of_class = self._classes.get(category_id)
        return -math.inf if of_class is None else of_class.threshold

    def thresholds(self, category_ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """[C] the thresholds of these classes."""
        return np.array([self.threshold(name) for name in category_ids.tolist()], dtype=np.float64)

    def full(self) -> dict[int, float]:
        """The thresholds of the classes that have as many as wanted."""
        return {
            name: of_class.threshold
            for name, of_class in self._classes.items()
            if of_class.threshold > -math.inf
        }

    def ties(self) -> Mapping[int, int]:
        """How many of the best of each full class have just its threshold."""
        return {name: of_class.ties() for name, of_class in self._classes.items()}


class _ClassScores:
    """The best scores of one class.

    Until there are `limit` of them they are only collected. Then all but the latest are sorted,
    from `_head` on those that still count, and the latest are in a heap; the lower of the two
    beginnings is the threshold. A heap that has grown long is sorted in.
    """

    __slots__ = ("_best", "_first", "_head", "_limit", "_new", "threshold")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._first: array[float] | None = array("d")
        self._best = np.zeros(0)
        self._head = 0
        self._new: list[float] = []
        self.threshold = -math.inf

    def add(self, scores: NDArray[np.float64]) -> int:
        """Takes in the scores; returns by how many there are now more that count."""
        if self._first is not None:
            before = len(self._first)
            self._first.frombytes(scores.tobytes())
            if len(self._first) < self._limit:
                return len(scores)
            self._sort(np.frombuffer(self._first))
            self._first = None
            return self._limit - before
        better = scores[scores > self.threshold]
        if len(better) > MANY:
            self._sort(np.concatenate([self._best[self._head :], self._new, better]))
            return 0
        for score in better.tolist():
            if score > self.threshold:
                self._insert(score)
        return 0

    def ties(self) -> int:
        counting = self._best[self._head :]
        return int(np.count_nonzero(counting == self.threshold)) + self._new.count(self.threshold)

    def _insert(self, score: float) -> None:
        """Puts in a score above the threshold, in the place of the lowest."""
        if self._new and self._new[0] < self._best[self._head]:
            heapreplace(self._new, score)
        else:
            self._head += 1
            heappush(self._new, score)
            if len(self._new) > self._limit // 16:
                self._sort(np.concatenate([self._best[self._head :], self._new]))
                return
        self.threshold = min(self._new[0], float(self._best[self._head]))

    def _sort(self, scores: NDArray[np.float64]) -> None:
        surplus = len(scores) - self._limit
        self._best = np.sort(np.partition(scores, surplus)[surplus:])
        self._head = 0
        self._new = []
        self.threshold = float(self._best[0])
