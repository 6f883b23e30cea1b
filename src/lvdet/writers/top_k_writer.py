"""Keeps the best detections of each class over a whole data set, and of each image, image by
image."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterator, KeysView, Mapping, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError, OutputError
from lvdet.files.detection_files import require_format, write_tables
from lvdet.tables.detections import Detections, floats, masks_to_boxes
from lvdet.writers.arguments import budgets, to_numpy, whole_numbers
from lvdet.writers.blocks import Block
from lvdet.writers.compact import compact, counting_blocks, made_ahead
from lvdet.writers.image_rows import image_masks, image_number, image_rows, labels_to_ids
from lvdet.writers.journal import Journal

#: Rows a journal may hold regardless; beyond them, GROWTH times the rows that count.
COMPACT_ROWS = 1 << 20
GROWTH = 3


class TopKWriter:
    """Keeps the best `dets_per_class` detections of each class over all images and the best
    `dets_per_image` of each image over all classes, and writes them, each once.

        with lvdet.TopKWriter("out.parquet", dets_per_class=10_000) as writer:
            for image_id, out in …:
                if image_id not in writer:
                    writer.add(image_id, out.boxes, out.scores, out.labels)

    The file (.parquet, .json, .jsonl or .ndjson) appears, complete, when the writer is closed.
    Until then a journal lies beside it, in `out.parquet.parts`. If the process ends early, even by
    SIGKILL, a new `TopKWriter` of the same path resumes after the last image whose `add` returned.
    Only the scores that count are kept in memory; ties go to the earlier one. Rows keep the order
    in which they were added, so applying a budget to the file, per class or per image, gives the
    same result as applying it to all detections. Threads may share a writer, because each image is
    added atomically. Each process needs its own writer.

    dets_per_class: detections to keep per class across all images; 0 turns this budget off
    dets_per_image: detections to keep per image across all classes; 0 turns this budget off
    box_format:     "xywh" or "xyxy", in pixels
    category_ids:   the category id of each label 0, 1, …; by default labels are category ids
    overwrite:      replace an existing file once this one is complete
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        *,
        dets_per_class: int = 10_000,
        dets_per_image: int = 0,
        box_format: str = "xywh",
        category_ids: Sequence[int] | None = None,
        overwrite: bool = False,
    ) -> None:
        self._per_class, self._per_image = budgets(dets_per_class, dets_per_image)
        if box_format not in ("xywh", "xyxy"):
            raise InputError(f"box_format is {box_format!r}, expected 'xywh' or 'xyxy'")
        self._box_format = box_format
        self._category_ids: NDArray[np.int64] | None = None
        if category_ids is not None:
            self._category_ids = whole_numbers(category_ids, "category_ids", "TopKWriter").copy()
        self._ending = require_format(target)
        self._target = Path(os.path.realpath(target))
        self._process = os.getpid()
        self._lock = RLock()
        self._ended = False
        self._final = f".final{self._ending}"
        self._journal = self._open(overwrite)
        known = self._category_ids
        self._ledger = _native.Ledger(self._per_class)
        self._rows = 0
        self._counting = 0  # rows that counted when the journal was last compacted
        self._boxes_given = False  # for any of the rows
        blocks = self._journal.begin(
            {
                "dets_per_class": self._per_class,
                "dets_per_image": self._per_image,
                "box_format": box_format,
                "category_ids": None if known is None else known.tolist(),
            }
        )
        try:
            for block in blocks:
                self._take_in(block)
        except BaseException:
            self._journal.release()
            raise

    def _open(self, overwrite: bool) -> Journal:
        """Opens the journal; first completes a run that was killed while closing."""
        folder = self._target.with_name(self._target.name + ".parts")
        there = self._target_exists()
        refusal = f"{self._target}: already exists; pass overwrite=True to replace it"
        if there and not overwrite and not os.path.lexists(folder):
            raise InputError(refusal)
        journal = Journal(folder)
        journal.recover_finished(self._final, self._target)
        if self._target_exists() and not overwrite:
            if journal.resumable:
                journal.release()
            else:
                journal.remove()
            raise InputError(refusal)
        return journal

    def _target_exists(self) -> bool:
        try:
            mode = os.stat(self._target).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            what = error.strerror or error
            raise OutputError(f"{self._target}: cannot write: {what}") from None
        if not stat.S_ISREG(mode):
            raise InputError(f"{self._target}: not a regular file, cannot be replaced")
        return True

    def add(self, image_id: Any, boxes: Any, scores: Any, labels: Any, masks: Any = None) -> None:
        """Adds all detections of one image, which is then finished. Each image can be added only
        once.

        Takes arrays, lists, and tensors of any device.

        boxes:  [n, 4] in the writer's format; None to compute them from the masks
        scores: [n] finite numbers
        labels: [n] whole numbers
        masks:  [n, height, width] bool or integers, or floats 0 and 1; a list of n such masks or of
                n COCO segmentations; or a `Masks` table. Masks of rows that `keeps` rules out are
                ignored.
        """
        with self._lock:
            self._require_open()
            image = image_number(image_id)
            source = f"image {image}"
            if image in self._journal.images:
                raise InputError(f"{source}: already added; add each image once")
            rows = image_rows(
                *(labels, boxes, scores),
                source=source,
                box_format=self._box_format,
                class_ids=self._category_ids,
                boxless=masks is not None,
            )
            keep = self._ledger.choose(rows.category_id, rows.score, self._per_image)
            keep = keep.view(np.bool_)
            encoded = None
            if masks is not None:  # of these rows alone
                encoded = image_masks(masks, len(keep), source, np.flatnonzero(keep))
            if len(keep):
                self._require_masks(masks is not None, source)
            kept: Any = slice(None) if keep.all() else keep
            box = rows.box[kept]
            if boxes is None and encoded is not None:
                box = masks_to_boxes(encoded)
            block = Block(
                np.array([image]),
                np.array([len(box)]),
                rows.category_id[kept],
                rows.score[kept],
                box,
                encoded,
                boxes_given=boxes is not None and len(box) > 0,
            )
            try:
                self._journal.append(block)
                self._take_in(block)
                if self._rows > max(COMPACT_ROWS, GROWTH * max(self._ledger.rows, self._counting)):
                    self._journal.roll()
                    self._rows = compact(self._journal, self._ledger, self._per_image)
                    self._counting = self._rows
            except BaseException:  # what is on disk is right, what is in memory may not be
                self._journal.release()
                raise

    def keeps(self, scores: Any, labels: Any) -> NDArray[np.bool_]:
        """[n] which of these rows of one image could still be among the best.

        All others can be omitted from `add`, or have None in the list of masks.
        """
        score = floats(to_numpy(scores), "score", "keeps")
        category_id = labels_to_ids(labels, self._category_ids, "keeps")
        if score.shape != category_id.shape:
            raise InputError(f"keeps: {score.size} scores for {category_id.size} labels")
        with self._lock:
            threshold = self._ledger.thresholds(category_id)
        kept: NDArray[np.bool_] = ~(score <= threshold)
        if self._per_image:
            best = np.ones(len(score), dtype=np.uint8)
            one = np.zeros(len(score), dtype=np.int32)
            ranked = np.nan_to_num(score, nan=math.inf)  # for `add` to refuse
            _native.keep_top(one, 1, ranked, self._per_image, best, 1)
            kept |= best.view(np.bool_)
        return kept

    def class_thresholds(self, category_ids: Any) -> NDArray[np.float64]:
        """[n] what a score of each class has to exceed to be among the best of its class so far;
        -inf while any is, inf where no budget per class is kept.

        category_ids: [n] integers: category ids, whatever the labels are
        """
        wanted = whole_numbers(category_ids, "category_ids", "class_thresholds")
        with self._lock:
            return self._ledger.thresholds(wanted)

    def threshold(self, label: Any) -> float:
        """The score that a detection with this label must exceed to be among the best of its class;
        -inf while any score is."""
        category_id = labels_to_ids([to_numpy(label)], self._category_ids, "threshold")
        with self._lock:
            return float(self._ledger.thresholds(category_id)[0])

    @property
    def thresholds(self) -> Mapping[int, float]:
        """The thresholds of the classes that already have `dets_per_class` detections, by category
        id."""
        with self._lock:
            names, floors = (column.tolist() for column in self._ledger.floors())
        pairs = zip(names, floors, strict=True)
        return {name: floor for name, floor in pairs if math.isfinite(floor)}

    @property
    def images(self) -> KeysView[int]:
        """The ids of the finished images, in the order they were added."""
        return self._journal.images.keys()

    @property
    def rows(self) -> int:
        """The number of detections in the journal, some of which may no longer count."""
        return self._rows

    def __contains__(self, image_id: Any) -> bool:
        """Whether the image is finished."""
        try:
            return image_number(image_id) in self._journal.images
        except InputError:
            return False

    def __len__(self) -> int:
        """The number of finished images."""
        return len(self._journal.images)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return (
            f"TopKWriter({str(self._target)!r}, "
            f"dets_per_class={self._per_class}, dets_per_image={self._per_image}): "
            f"{len(self):,} images, {self._rows:,} rows"
        )

    def close(self) -> None:
        """Writes the file and removes the journal."""
        with self._lock:
            if self._ended:
                return
            if self._journal.released:
                raise OutputError(
                    f"{self._target}: not written because of an error; open a new TopKWriter "
                    "to resume"
                )
            self._require_open()
            try:
                write_tables(made_ahead(self._best()), self._journal.place_for(self._final))
            except BaseException:
                self._journal.release()
                raise
            self._journal.finish(self._final, self._target)
            self._ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Closes the writer; after an error the journal is kept, to resume from."""
        if kind is None:
            self.close()
        else:
            self._journal.release()
            self._ended = True

    def _take_in(self, block: Block) -> None:
        """Accounts for the rows of the journal."""
        self._ledger.note(block.category_id, block.score)
        self._rows += len(block)
        self._boxes_given |= block.boxes_given

    def _best(self) -> Iterator[Detections]:
        """The rows that count, in order and in batches."""
        left = self._ledger.ties()
        for name in self._journal.files:
            blocks = self._journal.blocks(name)
            for block in counting_blocks(blocks, self._ledger, self._per_image, left):
                yield block.table(str(self._target), boxes_given=self._boxes_given)

    def _require_open(self) -> None:
        if self._journal.released:
            raise InputError(f"{self._target}: the writer is closed")
        if os.getpid() != self._process:
            raise InputError(
                f"{self._target}: the writer belongs to another process; give each its own file"
            )

    def _require_masks(self, given: bool, source: str) -> None:
        """Checks that all detections have masks, or none."""
        before = self._journal.settings.get("masks")
        if before is None:
            self._journal.settle("masks", given)
        elif before != given:
            names = {True: "masks", False: "no masks"}
            raise InputError(f"{source}: has {names[given]}, earlier images have {names[before]}")
