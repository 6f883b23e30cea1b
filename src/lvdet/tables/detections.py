"""What a detector said: one row a detection."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.tables.masks import Masks


@dataclass(frozen=True, eq=False)
class Detections:
    """A results file as columns; rows are detections in file order.

    image, category: [N] int32, rows of `image_ids` and `category_ids`
    score:    [N] float64, finite
    box:      [N, 4] float64, x, y, width, height in pixels, finite, sizes not negative
    image_ids, category_ids: int64, the ids that occur, in order of first appearance
    masks:    N masks, or None
    boxes_given: False where the boxes were made from the masks
    source:   what to call this table in messages
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

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, rows: Any) -> Detections:
        """Rows by index array, boolean mask or slice, as a new table."""
        return replace(
            self,
            image=self.image[rows],
            category=self.category[rows],
            score=self.score[rows],
            box=self.box[rows],
            masks=None if self.masks is None else self.masks[rows],
        )

    def with_scores(self, score: NDArray[np.float64]) -> Detections:
        """The same detections with other scores."""
        if score.shape != self.score.shape:
            raise InputError(f"{len(score)} scores for {len(self)} detections")
        return replace(self, score=np.ascontiguousarray(score, dtype=np.float64))

    @staticmethod
    def from_arrays(
        image_id: ArrayLike,
        category_id: ArrayLike,
        score: ArrayLike,
        box: ArrayLike | None = None,
        masks: Masks | None = None,
        source: str = "detections",
    ) -> Detections:
        """A table from equal-length arrays of ids, scores and [N, 4] x, y, w, h boxes."""
        image_ids, image = encode_ids(image_id, "image_id", source)
        category_ids, category = encode_ids(category_id, "category_id", source)
        scores = np.ascontiguousarray(score, dtype=np.float64)
        lengths = {"image_id": len(image), "category_id": len(category), "score": len(scores)}
        if box is not None:
            boxes = np.ascontiguousarray(box, dtype=np.float64)
            if boxes.ndim != 2 or boxes.shape[1] != 4:
                if boxes.size:
                    raise InputError(
                        f"{source}: box has shape {boxes.shape}, expected (N, 4) [x, y, w, h]"
                    )
                boxes = boxes.reshape(0, 4)
            lengths["box"] = len(boxes)
        elif masks is not None:
            boxes = masks_to_boxes(masks)
        else:
            raise InputError(f"{source}: detections need boxes or masks, neither was given")
        if masks is not None:
            lengths["masks"] = len(masks)
        if len(set(lengths.values())) != 1:
            raise InputError(f"{source}: columns differ in length: {lengths}")
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
    """[N, 4] tight boxes of masks; zeros for empty masks, and polygons by their corners."""
    return _native.mask_boxes(masks.columns)


def encode_ids(
    values: ArrayLike, name: str, source: str
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Ids as (distinct ids by first appearance, place of each value among them)."""
    raw = np.asarray(values)
    if raw.size == 0:
        raw = raw.astype(np.int64).reshape(-1)
    if raw.ndim != 1 or raw.dtype.kind not in "iuf":
        raise InputError(
            f"{source}: {name} is a {raw.ndim}-dimensional array of {raw.dtype}, "
            "expected one dimension of whole numbers"
        )
    if raw.dtype.kind == "f":
        wrong = np.flatnonzero(~(np.isfinite(raw) & (np.floor(raw) == raw)))
        if len(wrong):
            row = int(wrong[0])
            raise InputError(
                f"{source}, row {row:,}: {name} is {raw[row]}, expected a whole number"
            )
    distinct, rows = _native.encode_ids(np.ascontiguousarray(raw, dtype=np.int64))
    return distinct, rows
