"""Which classes are mistaken for which."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.tables.categories import Categories


@dataclass(frozen=True, eq=False)
class Confusions:
    """Pairs of classes in classification errors, most frequent first; ties by descending highest
    score.

    detected, actual: [P] int32, rows of `categories`: the predicted and the actual class
    count:   [P] int64, errors
    highest: [P] float64, the highest score among them
    total:   [P] float64, the sum of their scores
    """

    categories: Categories
    detected: NDArray[np.int32]
    actual: NDArray[np.int32]
    count: NDArray[np.int64]
    highest: NDArray[np.float64]
    total: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.count)

    @staticmethod
    def of(
        categories: Categories,
        detected: NDArray[np.int32],
        actual: NDArray[np.int32],
        score: NDArray[np.float64],
    ) -> Confusions:
        """From one row per error."""
        pairs = detected.astype(np.int64) * len(categories) + actual
        # Sums of floats depend on their order: by score, they are the same for any order of rows.
        order = np.lexsort((-score, pairs))
        pairs, score = pairs[order], score[order]
        first = np.flatnonzero(np.append(True, np.diff(pairs) != 0)[: len(pairs)])
        count = np.diff(np.append(first, len(pairs)))
        total = np.add.reduceat(score, first) if len(first) else np.empty(0)
        places = np.lexsort((pairs[first], -score[first], -count))
        distinct = pairs[first][places]
        return Confusions(
            categories,
            (distinct // max(len(categories), 1)).astype(np.int32),
            (distinct % max(len(categories), 1)).astype(np.int32),
            count[places],
            score[first][places],
            total[places],
        )

    def rows(self, most: int) -> list[dict[str, Any]]:
        """The first of them as plain values."""
        ids, names = self.categories.ids, self.categories.names
        return [
            {
                "detected": {"id": int(ids[detected]), "name": names[detected]},
                "actual": {"id": int(ids[actual]), "name": names[actual]},
                "count": count,
                "highest_score": highest,
                "score_sum": total,
            }
            for detected, actual, count, highest, total in zip(
                *(
                    column[:most].tolist()
                    for column in (
                        self.detected,
                        self.actual,
                        self.count,
                        self.highest,
                        self.total,
                    )
                ),
                strict=True,
            )
        ]
