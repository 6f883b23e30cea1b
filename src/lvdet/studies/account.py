"""What a re-ranking exchanged: for each image, the detections dropped and those added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.evaluation.pair import Pair
from lvdet.limits.budgets import Budget
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth
from lvdet.tables.matches import Matches
from lvdet.tables.problems import category_rows, image_rows

#: Outcomes as files name them, and the words for those that people read differently.
OUTCOMES = ("not counted", "wrong", "right")
WORDS = {"right": "correct", "wrong": "incorrect"}


def outcomes(matches: Matches, rows: int) -> NDArray[np.int8]:
    """[rows] the outcome of each detection at the first IoU threshold, as an index into
    `OUTCOMES`."""
    found = np.zeros(rows, dtype=np.int8)
    matched, ignored = matches.flags(0)
    found[matches.detection] = np.where(ignored, 0, np.where(matched, 2, 1))
    return found


@dataclass(frozen=True)
class Shown:
    """A detection, for a reader.

    outcome: "right", "wrong" or "not counted", at IoU 0.5
    row: its place among the detections
    """

    category_id: int
    name: str
    score: float
    box: tuple[float, ...]
    outcome: str
    row: int

    @property
    def judgement(self) -> str:
        """The outcome in words: correct, incorrect or not counted."""
        return WORDS.get(self.outcome, self.outcome)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "category_id": self.category_id,
            "class": self.name,
            "score": self.score,
            "bbox": list(self.box),
            "outcome": self.outcome,
        }


class Showing:
    """Detections prepared for display; outcome: [N] as of `outcomes`."""

    def __init__(self, gt: GroundTruth, detections: Detections, outcome: NDArray[np.int8]) -> None:
        self._names, self._detections, self._outcome = gt.categories.names, detections, outcome
        self._class_rows = category_rows(gt, detections)

    def rows(self, rows: NDArray[np.int64]) -> list[Shown]:
        """Some of them."""
        return [self._row(row) for row in rows.tolist()]

    def _row(self, row: int) -> Shown:
        dt = self._detections
        category = int(dt.category[row])
        known = int(self._class_rows[category])
        return Shown(
            int(dt.category_ids[category]),
            self._names[known] if known >= 0 else "",
            float(dt.score[row]),
            tuple(dt.box[row].tolist()),
            OUTCOMES[self._outcome[row]],
            row,
        )


@dataclass(frozen=True)
class ImageAccount:
    """The exchange in one image, both sides by descending score."""

    image_id: int
    file_name: str
    dropped: tuple[Shown, ...]
    added: tuple[Shown, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, a line of `lvdet rerank --account`."""
        return {
            "image_id": self.image_id,
            "file_name": self.file_name,
            "dropped": [item.to_dict() for item in self.dropped],
            "added": [item.to_dict() for item in self.added],
        }

    def __str__(self) -> str:
        name = f" ({self.file_name})" if self.file_name else ""
        width = max((len(item.name) for item in (*self.dropped, *self.added)), default=0)
        lines = [f"image {self.image_id}{name}"]
        for title, sign, items in (("dropped", "-", self.dropped), ("added", "+", self.added)):
            number = Counter(item.outcome for item in items)
            of_which = ", ".join(
                f"{number[outcome]:,} {WORDS.get(outcome, outcome)}" for outcome in OUTCOMES[::-1]
            )
            lines.append(f"{title}: {len(items):,} ({of_which}, at IoU 0.5)")
            lines += [
                f"  {sign} {item.score:.5f}  {item.name:<{width}}  {item.judgement:<11}  "
                f"[{', '.join(f'{value:g}' for value in item.box)}]"
                for item in items
            ]
        return "\n".join(lines)


class Account:
    """The images of a pair that change under other budgets, in order of id; each is built on
    demand. The results must be complete rows.

    kept: [N] rows that the new budgets keep
    """

    def __init__(self, pair: Pair, before: Sequence[Budget], after: Sequence[Budget]) -> None:
        gt, detections = pair.gt, pair.results.detections
        self._gt = gt
        first, self.kept = (_kept(pair, budgets) for budgets in (before, after))
        self._dropped = first & ~self.kept
        self._show = Showing(gt, detections, outcomes(pair.matches, len(detections)))
        image = image_rows(gt, detections)
        rows = np.flatnonzero(first ^ self.kept)
        where = image[detections.image[rows]]
        order = np.lexsort((rows, -detections.score[rows], where))
        self._rows, where = rows[order], where[order]
        self._images, starts = np.unique(where, return_index=True)
        self._starts = np.append(starts, len(where))

    def __len__(self) -> int:
        return len(self._images)

    def __iter__(self) -> Iterator[ImageAccount]:
        return (self._account(place) for place in range(len(self)))

    def image(self, image_id: int) -> ImageAccount:
        """The exchange in the image with that id; empty on both sides if nothing changed."""
        known = np.flatnonzero(self._gt.images.ids == image_id)
        if not len(known):
            raise InputError(f"image {image_id} is not in {self._gt.source}")
        place = int(np.searchsorted(self._images, known[0]))
        if place < len(self) and self._images[place] == known[0]:
            return self._account(place)
        return ImageAccount(image_id, self._gt.images.file_names[known[0]], (), ())

    def _account(self, place: int) -> ImageAccount:
        images = self._gt.images
        at = int(self._images[place])
        rows = self._rows[self._starts[place] : self._starts[place + 1]]
        went = self._dropped[rows]
        return ImageAccount(
            int(images.ids[at]),
            images.file_names[at],
            tuple(self._show.rows(rows[went])),
            tuple(self._show.rows(rows[~went])),
        )


def _kept(pair: Pair, budgets: Sequence[Budget]) -> NDArray[np.bool_]:
    mask = pair.kept(budgets)
    return np.ones(len(pair.results.ranking), dtype=bool) if mask is None else mask
