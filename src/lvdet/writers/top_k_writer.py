"""The best detections of each class over a whole data set, image by image."""

from __future__ import annotations

import operator
import os
from collections.abc import KeysView, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError, OutputError
from lvdet.files.bitmaps import masks_from_bitmaps
from lvdet.files.detection_files import WRITTEN, read_detections, write_detections
from lvdet.files.detections_json import json_rows
from lvdet.files.records import masks_from_segmentations
from lvdet.files.writing import require_ending
from lvdet.tables.detections import Detections, encode_ids
from lvdet.tables.masks import NONE, Masks
from lvdet.writers.arguments import floats, sizes, to_numpy, whole_number
from lvdet.writers.compact import compact
from lvdet.writers.journal import Journal
from lvdet.writers.top_scores import TopScores

#: Rows a journal may hold regardless; beyond them, GROWTH times the rows that count.
COMPACT_ROWS = 1 << 20
GROWTH = 3


class TopKWriter:
    """Keeps the best `dets_per_class` detections of each class over all images, and writes them.

        with lvdet.TopKWriter("out.parquet", dets_per_class=10_000) as writer:
            for image_id, out in …:
                if image_id not in writer:
                    writer.add(image_id, out.boxes, out.scores, out.labels)

    The file (.parquet, .json, .jsonl or .ndjson) appears, complete, when the writer is closed.
    Until then a journal lies beside it, in `out.parquet.parts`. If the process ends early, even by
    SIGKILL, a new `TopKWriter` of the same path resumes after the last image whose `add` returned.
    Memory holds only the scores that count; among equal scores the earlier one counts. Threads may
    share a writer: each image is added as a whole. Each process needs a writer of its own.

    dets_per_class: detections to keep per class, 1 or more
    box_format:     "xywh" or "xyxy", in pixels
    category_ids:   the category id of each label 0, 1, …; without it labels are category ids
    overwrite:      replace an existing file once this one is complete
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        dets_per_class: int,
        box_format: str = "xywh",
        category_ids: Sequence[int] | None = None,
        overwrite: bool = False,
    ) -> None:
        refusal = f"dets_per_class is {dets_per_class!r}, expected 1 or more"
        self._limit = whole_number(dets_per_class, refusal)
        if self._limit < 1:
            raise InputError(refusal)
        if box_format not in ("xywh", "xyxy"):
            raise InputError(f"box_format is {box_format!r}, expected 'xywh' or 'xyxy'")
        self._corners = box_format == "xyxy"
        self._category_ids: NDArray[np.int64] | None = None
        if category_ids is not None:
            self._category_ids = _whole_numbers(category_ids, "category_ids", "TopKWriter")
        self._ending = require_ending(path, WRITTEN)
        self._target = Path(os.path.realpath(path))
        self._process = os.getpid()
        self._lock = RLock()
        self._ended = False
        self._journal = self._open(overwrite)
        known = self._category_ids
        self._journal.begin(
            {
                "dets_per_class": self._limit,
                "box_format": box_format,
                "category_ids": None if known is None else known.tolist(),
            }
        )
        self._scores = TopScores(self._limit)
        self._rows = 0
        try:
            for file in self._journal.files:
                rows = read_detections(file, masks=False)
                self._scores.add(rows.category, rows.category_ids, rows.score)
                self._rows += len(rows)
        except BaseException:
            self._journal.release()
            raise

    def _open(self, overwrite: bool) -> Journal:
        """The journal; a run that was killed while closing is completed first."""
        folder = self._target.with_name(self._target.name + ".parts")
        there = self._target.exists()
        if there and not self._target.is_file():
            raise InputError(f"{self._target}: not a regular file, cannot be replaced")
        refusal = f"{self._target}: already exists; pass overwrite=True to replace it"
        if there and not overwrite and not folder.exists():
            raise InputError(refusal)
        journal = Journal(folder)
        journal.recover_finished(self._target)
        if self._target.exists() and not overwrite:
            if journal.begun:
                journal.release()
            else:
                journal.remove()
            raise InputError(refusal)
        return journal

    def add(self, image_id: Any, boxes: Any, scores: Any, labels: Any, masks: Any = None) -> None:
        """Adds all detections of one image, which is then finished. An image is added once.

        Takes arrays, lists, and tensors of any device.

        boxes:  [n, 4] in the writer's format; None where there are masks to make them from
        scores: [n] finite numbers
        labels: [n] whole numbers
        masks:  [n, height, width] bool or uint8; a list of n such masks or of n COCO
                segmentations; or a `Masks` table. Those of rows that `keeps` rules out are not
                looked at.
        """
        with self._lock:
            self._require_open()
            image = whole_number(
                to_numpy(image_id), f"image_id is {image_id!r}, not a whole number"
            )
            source = f"image {image}"
            if image in self._journal.images:
                raise InputError(f"{source}: already added; add each image once")
            table = self._table(image, boxes, scores, labels, masks is not None, source)
            keep = self._could_enter(table)
            kept = table[keep]
            if masks is not None:
                rows = np.flatnonzero(keep)
                kept = replace(kept, masks=_encoded(masks, len(table), rows, source))
            if len(table):
                self._require_masks(masks is not None, source)
            text = json_rows(kept, 0, len(kept), separator="\n")
            try:
                self._journal.append(image, text)
                self._scores.add(kept.category, kept.category_ids, kept.score)
                self._rows += len(kept)
                if self._rows > max(COMPACT_ROWS, GROWTH * self._scores.rows):
                    self._journal.roll()
                    self._rows = compact(self._journal.files[:-1], self._scores)
            except BaseException:  # what is on disk is right, what is in memory may not be
                self._journal.release()
                raise

    def keeps(self, scores: Any, labels: Any) -> NDArray[np.bool_]:
        """[n] which of these could still be among the best.

        All others can be left out of `add`, or have None in the list of their masks.
        """
        score = floats(scores, "scores", "keeps")
        category_id = self._ids_of(labels, "keeps")
        if score.shape != category_id.shape:
            raise InputError(f"keeps: {score.size} scores for {category_id.size} labels")
        distinct, places = _native.encode_ids(category_id)
        with self._lock:
            threshold = self._scores.thresholds(distinct)
        kept: NDArray[np.bool_] = ~(score <= threshold[places])
        return kept

    def threshold(self, label: Any) -> float:
        """The score that a detection of this label has to exceed; -inf while any enters."""
        category_id = int(self._ids_of([to_numpy(label)], "threshold")[0])
        with self._lock:
            return self._scores.threshold(category_id)

    @property
    def thresholds(self) -> Mapping[int, float]:
        """The thresholds of the classes that have `dets_per_class` detections, by category id."""
        with self._lock:
            return self._scores.full()

    @property
    def images(self) -> KeysView[int]:
        """The ids of the finished images, in the order in which they were added."""
        return self._journal.images.keys()

    @property
    def rows(self) -> int:
        """How many detections the journal holds, some of which may no longer count."""
        return self._rows

    def __contains__(self, image_id: Any) -> bool:
        """Whether the image is finished."""
        try:
            return operator.index(to_numpy(image_id)) in self._journal.images
        except TypeError:
            return False

    def __len__(self) -> int:
        """How many images are finished."""
        return len(self._journal.images)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return (
            f"TopKWriter({str(self._target)!r}, dets_per_class={self._limit}): "
            f"{len(self):,} images, {self._rows:,} rows"
        )

    def close(self) -> None:
        """Writes the file, and removes the journal."""
        with self._lock:
            if self._ended:
                return
            if self._journal.released:
                raise OutputError(
                    f"{self._target}: not written, an error ended the writer; open a new "
                    "TopKWriter to resume"
                )
            self._require_open()
            final = self._journal.folder / f".final{self._ending}"
            try:
                self._journal.sync()
                best = read_detections([*self._journal.files], dets_per_class=self._limit)
                write_detections(best, final)
            except BaseException:
                self._journal.release()
                raise
            self._journal.finish(final, self._target)
            self._ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Closes it; after an error the journal stays, to resume from."""
        if kind is None:
            self.close()
        else:
            self._journal.release()
            self._ended = True

    def _require_open(self) -> None:
        if self._journal.released:
            raise InputError(f"{self._target}: the writer is closed")
        if os.getpid() != self._process:
            raise InputError(
                f"{self._target}: the writer belongs to another process; give each its own file"
            )

    def _ids_of(self, labels: Any, source: str) -> NDArray[np.int64]:
        """[n] the category ids of labels."""
        label = _whole_numbers(labels, "label", source)
        if self._category_ids is None:
            return label
        known = len(self._category_ids)
        wrong = (label < 0) | (label >= known)
        if wrong.any():
            raise InputError(
                f"{source}: label {label[wrong][0]}, expected 0 to {known - 1}, a place in "
                "category_ids"
            )
        return self._category_ids[label]

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

    def _require_masks(self, given: bool, source: str) -> None:
        """All detections have masks, or none."""
        before = self._journal.settings.get("masks")
        if before is None:
            self._journal.settle("masks", given)
        elif before != given:
            names = {True: "masks", False: "no masks"}
            raise InputError(f"{source}: has {names[given]}, earlier images have {names[before]}")


def _whole_numbers(values: Any, name: str, source: str) -> NDArray[np.int64]:
    """[n] whole numbers, also those that are whole by value alone."""
    distinct, places = encode_ids(to_numpy(values), name, source)
    return distinct[places]


def _encoded(masks: Any, count: int, rows: NDArray[np.int64], source: str) -> Masks:
    """The masks of some rows of an image. Of tensors only these rows leave their device."""
    shape = getattr(masks, "shape", None)
    if shape is None and not isinstance(masks, Masks) and not isinstance(masks, Sequence):
        raise InputError(
            f"{source}: masks are a {type(masks).__name__}, expected a list or an array"
        )
    length = len(masks) if shape is None else int(shape[0])
    if length != count:
        raise InputError(f"{source}: {length} masks for {count} detections")
    if isinstance(masks, Masks):
        return masks[rows]
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
        raise InputError(f"{source}, row {rows[missing[0]]:,}: the mask is missing")
    return encoded
