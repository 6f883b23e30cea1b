"""The best detections of each class over a whole data set, image by image."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.files.bitmaps import masks_from_bitmaps
from lvdet.files.detection_files import read_detections, require_ending, write_detections
from lvdet.files.detections_json import json_rows
from lvdet.files.records import masks_from_segmentations
from lvdet.tables.detections import Detections, encode_ids
from lvdet.tables.masks import NONE, Masks
from lvdet.writers.arguments import sizes
from lvdet.writers.compact import compact
from lvdet.writers.tensors import to_numpy
from lvdet.writers.top_k_base import Scored, TopKBase


class TopKWriter(TopKBase):
    """Keeps the best `per_class` detections of each class over all images, and writes them.

        with lvdet.TopKWriter("out.parquet", per_class=10_000) as sink:
            for image_id, out in …:
                if image_id not in sink:
                    sink.add(image_id, out.boxes, out.scores, out.labels)

    The file (.parquet, .json, .jsonl or .ndjson) appears when the sink is closed, complete. Until
    then a journal lies beside it, in `out.parquet.parts`. Where the process ends before, even by
    SIGKILL, a new `TopKWriter` of the same path goes on after the last image whose `add` had
    returned. Memory holds only the scores that count; of equal scores the earlier added counts.
    Threads may share a sink: each image is added as a whole. Processes have one each.

    per_class:    how many detections of each class are kept, 1 or more
    box_format:   "xywh" or "xyxy", in pixels
    category_ids: the category id of each label 0, 1, …; without it labels are category ids
    overwrite:    replace a file that is there already, once this one is complete
    """

    def _require_ending(self, path: str | os.PathLike[str]) -> str:
        return require_ending(path)

    def _whole_numbers(self, values: Any, name: str, source: str) -> NDArray[np.int64]:
        distinct, places = encode_ids(to_numpy(values), name, source)
        return distinct[places]

    def _distinct(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        return _native.encode_ids(ids)

    def _scores_in(self, file: Path) -> Iterator[Scored]:
        rows = read_detections(file, masks=False)
        yield Scored(rows.category, rows.category_ids, rows.score)

    def _kept(
        self, image: int, boxes: Any, scores: Any, labels: Any, masks: Any, source: str
    ) -> tuple[Scored, bytes]:
        table = self._table(image, boxes, scores, labels, masks is not None, source)
        keep = self._could_enter(table)
        kept = table[keep]
        if masks is not None:
            kept = replace(kept, masks=_encoded(masks, len(table), np.flatnonzero(keep), source))
        if len(table):
            self._require_masks(masks is not None, source)
        text = json_rows(kept, 0, len(kept), separator="\n")
        return Scored(kept.category, kept.category_ids, kept.score), text

    def _compact(self, files: Iterable[Path]) -> int:
        return compact(files, self._scores)

    def _write(self, final: Path) -> None:
        best = read_detections([*self._journal.files], per_class=self._limit)
        write_detections(best, final)

    def _table(
        self, image: int, boxes: Any, scores: Any, labels: Any, with_masks: bool, source: str
    ) -> Detections:
        """The detections of an image without their masks, checked."""
        category_id = self._ids_of(labels, source)
        score = to_numpy(scores)
        box = to_numpy(boxes)
        if box is None and with_masks:
            box = np.zeros((len(category_id), 4))
        elif box is not None and self._corners:
            box = sizes(box, source)
        table = Detections.from_arrays(
            np.full(len(category_id), image), category_id, score, box, source=source
        )
        return table if boxes is not None else replace(table, boxes_given=False)

    def _could_enter(self, table: Detections) -> NDArray[np.bool_]:
        """[n] above their class's threshold, and among the best of their class in the image."""
        threshold = self._scores.thresholds(table.category_ids)
        keep = (table.score > threshold[table.category]).astype(np.uint8)
        _native.keep_top(table.category, len(table.category_ids), table.score, self._limit, keep, 1)
        return keep.view(np.bool_)


def _encoded(masks: Any, count: int, rows: NDArray[np.int64], source: str) -> Masks:
    """The masks of some rows of an image. Of tensors only these rows leave their device."""
    shape = getattr(masks, "shape", None)
    if shape is None and not isinstance(masks, Sequence):
        raise InputError(
            f"{source}: masks are a {type(masks).__name__}, expected a list or an array"
        )
    length = len(masks) if shape is None else int(shape[0])
    if length != count:
        raise InputError(f"{source}: {length} masks for {count} detections")
    if shape is not None and len(shape) != 1 and len(rows):
        return masks_from_bitmaps(np.asarray(to_numpy(masks[rows.tolist()])), source)
    chosen = {row: to_numpy(masks[row]) for row in rows.tolist()}
    if any(isinstance(mask, np.ndarray) and mask.ndim == 2 for mask in chosen.values()):
        return Masks.concatenate(
            [
                masks_from_bitmaps(np.asarray(mask)[None], f"{source}, row {row:,}")
                for row, mask in chosen.items()
            ]
        )
    encoded = masks_from_segmentations([chosen.get(row) for row in range(count)], source)[rows]
    missing = np.flatnonzero(encoded.kind == NONE)
    if len(missing):
        raise InputError(f"{source}, row {rows[missing[0]]:,}: has no mask, but may be kept")
    return encoded
