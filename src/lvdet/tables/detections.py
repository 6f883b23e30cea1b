"""The output of a detector: one row per detection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.tables.columns import require_columns, require_rows
from lvdet.tables.description import counted, describe_html, describe_line
from lvdet.tables.masks import Masks
from lvdet.tables.values import require, value_problems

#: Rows are numbered by int32.
MOST_ROWS = 2**31 - 1


@dataclass(frozen=True, eq=False, repr=False)
class Detections:
    """A results file as columns; rows are detections in file order.

    image, category: [N] int32, rows of `image_ids` and `category_ids`
    score:    [N] float64, finite
    box:      [N, 4] float64, x, y, width, height in pixels, finite, sizes not negative
    image_ids, category_ids: int64, the ids that occur, in order of first appearance
    masks:    N masks, or None
    boxes_given: False if all boxes were computed from the masks
    source:   the name of this table in messages
    file_row: [N] int64 or int32, rows of the file, if some were left out while reading
    """

    image: NDArray[np.int32]
    category: NDArray[np.int32]
    score: NDArray[np.float64]
    box: NDArray[np.float64]
    image_ids: NDArray[np.int64]
    category_ids: NDArray[np.int64]
    masks: Masks | None = None
    boxes_given: bool = True
    source: str = "detections"
    file_row: NDArray[np.int64] | NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        rows = len(self.score)
        if rows > MOST_ROWS:
            raise InputError(
                f"{self.source}: {rows:,} detections, but a table holds at most {MOST_ROWS:,}"
            )
        require_columns(
            self,
            self.source,
            {
                "image": (np.int32, (rows,)),
                "category": (np.int32, (rows,)),
                "score": (np.float64, (rows,)),
                "box": (np.float64, (rows, 4)),
                "image_ids": (np.int64, (len(self.image_ids),)),
                "category_ids": (np.int64, (len(self.category_ids),)),
            },
        )
        wrong = np.flatnonzero(~np.isfinite(self.score))
        if len(wrong):  # no order, no ranking
            row = int(wrong[0])
            raise InputError(
                f"{self.named(row)}: score is {self.score[row]:g}, expected a finite number"
            )
        require_rows(self.source, "image", self.image, len(self.image_ids))
        require_rows(self.source, "category", self.category, len(self.category_ids))
        if self.file_row is not None:
            narrow = getattr(self.file_row, "dtype", None) == np.int32
            dtype = np.int32 if narrow else np.int64
            require_columns(self, self.source, {"file_row": (dtype, (rows,))})
        if self.masks is not None and len(self.masks) != rows:
            raise InputError(f"{self.source}: {len(self.masks)} masks for {rows} detections")

    def __len__(self) -> int:
        return len(self.score)

    def __repr__(self) -> str:
        return describe_line(
            self,
            counted(len(self), "detection"),
            counted(len(self.image_ids), "image"),
            counted(len(self.category_ids), "class", "classes"),
            "" if self.masks is None else "masks",
        )

    def _repr_html_(self) -> str:
        facts = {
            "detections": len(self),
            "images": len(self.image_ids),
            "classes": len(self.category_ids),
            "masks": "no" if self.masks is None else "yes",
            "source": self.source,
        }
        return describe_html(self, facts)

    def __getitem__(self, rows: Any) -> Detections:
        """Rows by index array, boolean mask or slice, as a new table."""
        if np.ndim(self.score[rows]) != 1:
            raise InputError(
                f"rows are {rows!r}, expected an index array, a boolean mask or a slice"
            )
        return replace(
            self,
            image=self.image[rows],
            category=self.category[rows],
            score=self.score[rows],
            box=self.box[rows],
            masks=None if self.masks is None else self.masks[rows],
            file_row=None if self.file_row is None else self.file_row[rows],
        )

    def named(self, row: int) -> str:
        """The name of a row in messages."""
        return f"{self.source}, row {row if self.file_row is None else self.file_row[row]:,}"

    def with_scores(self, score: ArrayLike) -> Detections:
        """The same detections with other scores."""
        scores = floats(score, "score", self.source)
        if scores.shape != self.score.shape:
            raise InputError(f"{scores.size} scores for {len(self)} detections")
        return replace(self, score=scores)

    @staticmethod
    def from_arrays(
        image_id: ArrayLike,
        category_id: ArrayLike,
        score: ArrayLike,
        box: ArrayLike | None = None,
        masks: Masks | None = None,
        source: str = "detections",
    ) -> Detections:
        """A table from arrays of ids, scores and [N, 4] x, y, w, h boxes, all of equal length."""
        image_ids, image = encode_ids(image_id, "image_id", source)
        category_ids, category = encode_ids(category_id, "category_id", source)
        scores = floats(score, "score", source)
        if scores.ndim != 1:
            raise InputError(f"{source}: score has shape {scores.shape}, expected (N,)")
        lengths = {"image_id": len(image), "category_id": len(category), "score": len(scores)}
        if box is not None:
            boxes = floats(box, "bbox", source)
            if boxes.size == 0:
                boxes = boxes.reshape(0, 4)
            if boxes.ndim != 2 or boxes.shape[1] != 4:
                raise InputError(
                    f"{source}: box has shape {boxes.shape}, expected (N, 4) [x, y, w, h]"
                )
            lengths["box"] = len(boxes)
        elif masks is not None:
            boxes = masks_to_boxes(masks)
        else:
            raise InputError(f"{source}: detections need boxes or masks")
        if masks is not None:
            lengths["masks"] = len(masks)
        if len(set(lengths.values())) != 1:
            raise InputError(f"{source}: columns differ in length: {lengths}")
        require(value_problems(source, scores, boxes))
        return Detections(
            image,
            category,
            scores,
            boxes,
            image_ids,
            category_ids,
            masks,
            boxes_given=box is not None,
            source=source,
        )


def masks_to_boxes(masks: Masks) -> NDArray[np.float64]:
    """[N, 4] tight boxes of masks; zeros for empty masks; polygons by their vertices."""
    return _native.mask_boxes(masks.columns)


def encode_ids(
    values: ArrayLike, name: str, source: str
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Ids as (distinct ids by first appearance, index of each value among them)."""
    try:
        raw = np.asarray(values)
    except ValueError:  # lists of different lengths
        raise InputError(f"{source}: {name} is not a list of integers") from None
    if raw.size == 0:
        raw = raw.astype(np.int64).reshape(-1)
    if raw.ndim != 1 or raw.dtype.kind not in "iuf":
        raise InputError(
            f"{source}: {name} is a {raw.ndim}-dimensional array of {raw.dtype}, "
            "expected a one-dimensional array of integers"
        )
    if raw.dtype.kind != "i":
        # Above 2^63 - 1 there is no int64; as a float that bound is exactly 2^63.
        wrong = ~(np.floor(raw) == raw) | (raw >= 2.0**63) | (raw < -(2.0**63))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InputError(
                f"{source}, row {row:,}: {name} is {raw[row]}, expected a 64-bit integer"
            )
    distinct, rows = _native.encode_ids(np.ascontiguousarray(raw, dtype=np.int64))
    return distinct, rows


def floats(values: ArrayLike, name: str, source: str) -> NDArray[np.float64]:
    """Numbers as a contiguous float64 array."""
    try:
        raw = np.asarray(values)
        if raw.dtype.kind == "O":  # None is nan, an integer too long for int64 a float
            raw = raw.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{source}: {name} is not a list of numbers: {error}") from None
    if raw.size and raw.dtype.kind not in "iufb":
        raise InputError(f"{source}: {name} has dtype {raw.dtype}, expected numbers")
    return np.ascontiguousarray(raw, dtype=np.float64)
