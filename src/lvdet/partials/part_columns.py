"""The columns of a partial: rows that budgets can keep, how they matched, and facts about the rest.

Classes and images are numbered by ascending id among those of the part. Rows are in file order: by
position, equal positions by image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.matching.match import AREAS
from lvdet.partials.needed_rows import Request, needed_rows
from lvdet.tables.results import Ranking

Size: TypeAlias = str | int
#: Type and shape of each column. Sizes are numbers, or names that several columns share; `bytes`
#: is the number of bytes with a bit per IoU threshold.
LAYOUT: MappingProxyType[str, tuple[str, tuple[Size, ...]]] = MappingProxyType(
    {
        "image_ids": ("<i8", ("images",)),
        "image_rows": ("<i8", ("images",)),
        "category_ids": ("<i8", ("classes",)),
        "category_rows": ("<i8", ("classes",)),
        "lowest": ("<f8", ("classes",)),
        "highest": ("<f8", ("classes",)),
        "outside": ("<i8", ("classes",)),
        "in_budgets": ("|u1", ("classes",)),
        "image": ("<i4", ("rows",)),
        "category": ("<i4", ("rows",)),
        "score": ("<f8", ("rows",)),
        "position": ("<i8", ("rows",)),
        "matched": ("<i4", ("matched",)),
        "wrong": ("|u1", ("matched",)),
        "hits": ("<i4", ("hits",)),
        "bits": ("|u1", ("hits", len(AREAS), 2, "bytes")),
        "contested": ("<i4", ("contested",)),
        "reached": ("|u1", ("contested", "bytes")),
        "boxed": ("<i4", ("boxed",)),
        "box": ("<f8", ("boxed", 4)),
        "drawn": ("<i4", ("drawn",)),
        "drawn_place": ("<i4", ("drawn",)),
        "object_image": ("<i4", ("cells",)),
        "object_category": ("<i4", ("cells",)),
        "objects": ("<i4", ("cells", len(AREAS) + 1)),
    }
)
#: Images of which all rows are kept, with boxes, to see whether the results are plausible; and the
#: most rows of such images.
DRAWN_IMAGES, DRAWN_ROWS = 200, 30_000


@dataclass(frozen=True, eq=False)
class PartColumns:
    """Columns as in `LAYOUT`.

    image_ids, image_rows: the images, and the number of detections of each
    category_ids, category_rows: the classes, and the number of detections of each
    lowest, highest, outside: `ScoreFacts` of each class
    in_budgets:  whether budgets count the detections of a class
    image, category, score, position: the rows, with their places in the whole
    matched:     rows that can be correct or incorrect, rising
    wrong, hits, bits: their `Outcomes`
    contested, reached: as of `Matches`, over the matched rows
    boxed, box:  rows with boxes, rising: those of the drawn images
    drawn, drawn_place: images whose rows are all kept, by their place in the order of sampling
    object_image, object_category, objects: cells with annotations, if the partial carries them: the
        objects to find in each area range, and all annotations
    """

    image_ids: NDArray[np.int64]
    image_rows: NDArray[np.int64]
    category_ids: NDArray[np.int64]
    category_rows: NDArray[np.int64]
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]
    outside: NDArray[np.int64]
    in_budgets: NDArray[np.uint8]
    image: NDArray[np.int32]
    category: NDArray[np.int32]
    score: NDArray[np.float64]
    position: NDArray[np.int64]
    matched: NDArray[np.int32]
    wrong: NDArray[np.uint8]
    hits: NDArray[np.int32]
    bits: NDArray[np.uint8]
    contested: NDArray[np.int32]
    reached: NDArray[np.uint8]
    boxed: NDArray[np.int32]
    box: NDArray[np.float64]
    drawn: NDArray[np.int32]
    drawn_place: NDArray[np.int32]
    object_image: NDArray[np.int32]
    object_category: NDArray[np.int32]
    objects: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.score)

    @property
    def nbytes(self) -> int:
        """Memory of all columns."""
        return sum(column.nbytes for column in self.columns().values())

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def ranking(self, source: str) -> Ranking:
        """The rows as budgets count them."""
        columns = (self.image, self.category, self.score, self.image_ids, self.category_ids)
        return Ranking(*columns, source)

    def taken(self, rows: NDArray[np.int64]) -> PartColumns:
        """Some rows, in the given order; facts about images and classes stay."""
        place = np.full(len(self), -1, dtype=np.int32)
        place[rows] = np.arange(len(rows), dtype=np.int32)
        matched, of_matched = _moved(place, self.matched)
        place_of = np.full(len(self.matched), -1, dtype=np.int32)
        place_of[of_matched] = np.arange(len(of_matched), dtype=np.int32)
        hits, of_hits = _moved(place_of, self.hits)
        contested, of_contested = _moved(place_of, self.contested)
        boxed, of_boxed = _moved(place, self.boxed)
        return replace(
            self,
            image=self.image[rows],
            category=self.category[rows],
            score=self.score[rows],
            position=self.position[rows],
            matched=matched,
            wrong=self.wrong[of_matched],
            hits=hits,
            bits=self.bits[of_hits],
            contested=contested,
            reached=self.reached[of_contested],
            boxed=boxed,
            box=self.box[of_boxed],
        )

    def needed(self, requests: Sequence[Request]) -> PartColumns:
        """Without rows that none of the requests, of classes as the part numbers them, can use.
        Rows of the drawn images stay."""
        part = self.sampled()
        keep = needed_rows(self.ranking(""), requests, part.whole_images())
        return part if keep is None else part.taken(np.flatnonzero(keep))

    def sampled(self) -> PartColumns:
        """With the boxes of the drawn images alone, and with the first of these."""
        drawn = self._drawn_images()
        boxed = drawn.whole_images()[self.image[self.boxed]]
        return replace(drawn, boxed=self.boxed[boxed], box=self.box[boxed])

    def whole_images(self) -> NDArray[np.bool_]:
        """[I] the drawn images."""
        whole = np.zeros(len(self.image_ids), dtype=bool)
        whole[self.drawn] = True
        return whole

    def in_file_order(self) -> PartColumns:
        """The rows by position, equal positions by image, and then as they are."""
        position, image = self.position, self.image
        if (position[1:] > position[:-1]).all():
            return self
        return self.taken(np.lexsort((image, position)))

    def without_images(self, gone: NDArray[np.bool_]) -> PartColumns:
        """Without some images ([I]) and their rows."""
        place = np.cumsum(~gone, dtype=np.int32) - np.int32(1)
        rows = gone[self.image]
        lost = np.bincount(self.category[rows], minlength=len(self.category_ids))
        cells, drawn = ~gone[self.object_image], ~gone[self.drawn]
        part = self.taken(np.flatnonzero(~rows))
        return replace(
            part,
            image_ids=self.image_ids[~gone],
            image_rows=self.image_rows[~gone],
            category_rows=self.category_rows - lost,
            image=place[part.image],
            drawn=place[self.drawn[drawn]],
            drawn_place=self.drawn_place[drawn],
            object_image=place[self.object_image[cells]],
            object_category=self.object_category[cells],
            objects=self.objects[cells],
        )

    def _drawn_images(self) -> PartColumns:
        """With the first of the drawn images alone."""
        order = np.argsort(self.drawn_place, kind="stable")[:DRAWN_IMAGES]
        within = np.cumsum(self.image_rows[self.drawn[order]]) <= DRAWN_ROWS
        within[:1] = DRAWN_ROWS > 0
        order = order[within]
        return replace(self, drawn=self.drawn[order], drawn_place=self.drawn_place[order])


def joined(parts: Sequence[PartColumns]) -> PartColumns:
    """The rows and facts of parts that have no image in common."""
    image_ids = np.concatenate([part.image_ids for part in parts])
    order = np.argsort(image_ids, kind="stable")
    image_place = np.empty(len(order), dtype=np.int32)
    image_place[order] = np.arange(len(order), dtype=np.int32)
    category_ids = np.unique(np.concatenate([part.category_ids for part in parts]))
    category_rows = np.zeros(len(category_ids), dtype=np.int64)
    lowest, highest = np.full(len(category_ids), np.inf), np.full(len(category_ids), -np.inf)
    outside = np.zeros(len(category_ids), dtype=np.int64)
    in_budgets = np.zeros(len(category_ids), dtype=np.uint8)
    moved = []
    first: dict[str, int] = dict.fromkeys(("images", "rows", "matched"), 0)
    for part in parts:
        of = np.searchsorted(category_ids, part.category_ids).astype(np.int32)
        category_rows[of] += part.category_rows
        lowest[of] = np.minimum(lowest[of], part.lowest)
        highest[of] = np.maximum(highest[of], part.highest)
        outside[of] += part.outside
        in_budgets[of] |= part.in_budgets
        image = image_place[first["images"] : first["images"] + len(part.image_ids)]
        moved.append(
            replace(
                part,
                image=image[part.image],
                category=of[part.category],
                matched=part.matched + np.int32(first["rows"]),
                hits=part.hits + np.int32(first["matched"]),
                contested=part.contested + np.int32(first["matched"]),
                boxed=part.boxed + np.int32(first["rows"]),
                drawn=image[part.drawn],
                object_image=image[part.object_image],
                object_category=of[part.object_category],
            )
        )
        first["images"] += len(part.image_ids)
        first["rows"] += len(part)
        first["matched"] += len(part.matched)
    names = list(LAYOUT)
    columns = {name: np.concatenate([getattr(part, name) for part in moved]) for name in names}
    columns |= {
        "image_ids": image_ids[order],
        "image_rows": columns["image_rows"][order],
        "category_ids": category_ids,
        "category_rows": category_rows,
        "lowest": lowest,
        "highest": highest,
        "outside": outside,
        "in_budgets": in_budgets,
    }
    return PartColumns(**columns).in_file_order()


def _moved(
    place: NDArray[np.int32], rows: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """The new numbers of the rows that have one, rising, and where each was in `rows`."""
    new = place[rows]
    order = np.argsort(new, kind="stable")
    order = order[np.searchsorted(new[order], 0) :]
    return new[order], order
