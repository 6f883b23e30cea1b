"""What a trained detector records about its data: the classes, and how often each occurred."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.training.model.classifier import Frequencies

if TYPE_CHECKING:
    from lvdet.training.data.dataset import Dataset


@dataclass(frozen=True)
class Vocabulary:
    """K classes in the order of their ids.

    ids:       [K] int64, rising
    names:     of K classes
    frequency: "r", "c" or "f" of each class, where the annotations say it
    """

    ids: NDArray[np.int64]
    names: list[str]
    frequency: list[str] | None
    frequencies: Frequencies

    @staticmethod
    def of(dataset: Dataset) -> Vocabulary:
        """The vocabulary of a training set."""
        frequencies = Frequencies(
            len(dataset.trainable), dataset.image_count, dataset.instance_count
        )
        return Vocabulary(
            dataset.category_ids, list(dataset.category_names), dataset.frequency, frequencies
        )

    def to_texts(self) -> dict[str, str]:
        """As JSON texts "categories" and "frequencies"."""
        marks: Sequence[str | None] = self.frequency or [None] * len(self.names)
        rows = zip(self.ids.tolist(), self.names, marks, strict=True)
        counts = self.frequencies
        return {
            "categories": json.dumps([{"id": i, "name": n, "frequency": f} for i, n, f in rows]),
            "frequencies": json.dumps(
                {
                    "images": counts.images,
                    "image_count": counts.image_count.tolist(),
                    "instance_count": counts.instance_count.tolist(),
                }
            ),
        }

    @staticmethod
    def from_texts(texts: dict[str, str], where: object) -> Vocabulary:
        """The reverse; errors refer to it as `where`."""
        try:
            rows: list[dict[str, Any]] = json.loads(texts["categories"])
            counts = json.loads(texts["frequencies"])
            marks = [row["frequency"] for row in rows]
            found = Vocabulary(
                np.array([row["id"] for row in rows], dtype=np.int64),
                [str(row["name"]) for row in rows],
                None if None in marks else [str(mark) for mark in marks],
                Frequencies(
                    int(counts["images"]),
                    np.array(counts["image_count"], dtype=np.int64),
                    np.array(counts["instance_count"], dtype=np.int64),
                ),
            )
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{where}: not an lvdet detector: its classes are missing") from None
        shape = (len(rows),)
        if found.frequencies.image_count.shape != shape:
            raise InputError(f"{where}: counts do not match its {len(rows):,} classes")
        return found

    def require_classes_of(self, data: Vocabulary, where: object) -> None:
        """Raises for data with other classes, on one line about the first difference."""
        mine = dict(zip(self.ids.tolist(), self.names, strict=True))
        theirs = dict(zip(data.ids.tolist(), data.names, strict=True))
        for number, name in theirs.items():
            if number not in mine:
                raise InputError(
                    f"{where}: trained without class {name!r} (id {number}), which is in the "
                    f"data; it has {len(mine):,} classes, the data has {len(theirs):,}"
                )
            if mine[number] != name:
                raise InputError(
                    f"{where}: class {number} is {mine[number]!r} there, but {name!r} in the data"
                )
        for number, name in mine.items():
            if number not in theirs:
                raise InputError(
                    f"{where}: trained with class {name!r} (id {number}), which the data "
                    f"lacks; it has {len(mine):,} classes, the data has {len(theirs):,}"
                )

    def require_same_data(self, data: Vocabulary, where: object) -> None:
        """Raises for a different training set, as far as the counts tell."""
        self.require_classes_of(data, where)
        mine, theirs = self.frequencies, data.frequencies
        if mine.images != theirs.images:
            raise InputError(
                f"{where}: trained on {mine.images:,} images with objects, but data.train has "
                f"{theirs.images:,}"
            )
        for name in ("image_count", "instance_count"):
            a, b = getattr(mine, name), getattr(theirs, name)
            if not np.array_equal(a, b):
                row = int(np.flatnonzero(a != b)[0])
                raise InputError(
                    f"{where}: {name} of class {self.names[row]!r} was {a[row]:,}, now {b[row]:,} "
                    "in data.train: not the data it was trained on"
                )
