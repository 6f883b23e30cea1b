"""What the sinks share: the best of each class image by image, a journal, and how they end."""

from __future__ import annotations

import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError, OutputError
from lvdet.writers.arguments import floats, whole_number
from lvdet.writers.journal import Journal
from lvdet.writers.tensors import to_numpy
from lvdet.writers.top_scores import TopScores

#: Rows a journal may have whatever they are; beyond them, GROWTH times those that count.
COMPACT_ROWS = 1 << 20
GROWTH = 3


class Scored(NamedTuple):
    """Scores of rows.

    category:     [n] int32 places among the ids
    category_ids: int64 ids
    score:        [n] float64
    """

    category: NDArray[np.int32]
    category_ids: NDArray[np.int64]
    score: NDArray[np.float64]


class TopKBase(ABC):
    """Takes images, says what can still enter, and goes on with a journal.

    What a sink adds is how rows are checked, read and written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        per_class: int,
        box_format: str = "xywh",
        category_ids: Sequence[int] | None = None,
        overwrite: bool = False,
    ) -> None:
        self._limit = whole_number(per_class, f"per_class is {per_class!r}, expected 1 or more")
        if self._limit < 1:
            raise InputError(f"per_class is {per_class!r}, expected 1 or more")
        if box_format not in ("xywh", "xyxy"):
            raise InputError(f"box_format is {box_format!r}, expected 'xywh' or 'xyxy'")
        self._corners = box_format == "xyxy"
        self._category_ids: NDArray[np.int64] | None = None
        if category_ids is not None:
            self._category_ids = self._whole_numbers(category_ids, "category_ids", "TopKWriter")
        known = self._category_ids
        self._ending = self._require_ending(path)
        self._target = Path(os.path.realpath(path))
        self._process = os.getpid()
        self._lock = RLock()
        self._ended = False
        self._journal = self._open(overwrite)
        self._journal.begin(
            {
                "per_class": self._limit,
                "box_format": box_format,
                "category_ids": None if known is None else known.tolist(),
            }
        )
        self._scores = TopScores(self._limit)
        self._rows = 0
        try:
            for file in self._journal.files:
                for rows in self._scores_in(file):
                    self._scores.add(*rows)
                    self._rows += len(rows.score)
        except BaseException:
            self._journal.release()
            raise

    def _open(self, overwrite: bool) -> Journal:
        """The journal; a run that was killed while it closed is brought to its end before."""
        folder = self._target.with_name(self._target.name + ".parts")
        there = self._target.exists()
        if there and not self._target.is_file():
            raise InputError(f"{self._target}: is no file, and cannot be replaced by one")
        refusal = f"{self._target}: is there already; overwrite=True replaces it"
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

    @abstractmethod
    def _require_ending(self, path: str | os.PathLike[str]) -> str:
        """The ending of a file that can be written, in small letters."""

    @abstractmethod
    def _whole_numbers(self, values: Any, name: str, source: str) -> NDArray[np.int64]:
        """[n] whole numbers, also those that are whole by value alone."""

    @abstractmethod
    def _distinct(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Ids once each, and [n] the place of each among them."""

    @abstractmethod
    def _scores_in(self, file: Path) -> Iterator[Scored]:
        """The scores in a file of the journal, in parts."""

    @abstractmethod
    def _kept(
        self, image: int, boxes: Any, scores: Any, labels: Any, masks: Any, source: str
    ) -> tuple[Scored, bytes]:
        """The detections of an image that could enter, checked, and as lines."""

    @abstractmethod
    def _compact(self, files: Iterable[Path]) -> int:
        """Rewrites files of rows with only the best of each class; returns how many are left."""

    @abstractmethod
    def _write(self, final: Path) -> None:
        """Writes the best rows of the journal."""

    def add(self, image_id: Any, boxes: Any, scores: Any, labels: Any, masks: Any = None) -> None:
        """Adds all detections of one image, which is then finished. An image is added once.

        Arrays, lists, and tensors of any device.

        boxes:  [n, 4] in the sink's format; None where there are masks to make them from
        scores: [n] finite numbers
        labels: [n] whole numbers
        masks:  [n, height, width] bool or uint8; or a list of n such masks or of n COCO
                segmentations. Those of rows which `keeps` rules out are not looked at.
        """
        with self._lock:
            self._require_open()
            image = whole_number(
                to_numpy(image_id), f"image_id is {image_id!r}, not a whole number"
            )
            source = f"image {image}"
            if image in self._journal.images:
                raise InputError(f"{source}: was added before, each image is added once")
            kept, text = self._kept(image, boxes, scores, labels, masks, source)
            try:
                self._journal.append(image, text)
                self._scores.add(*kept)
                self._rows += len(kept.score)
                if self._rows > max(COMPACT_ROWS, GROWTH * self._scores.rows):
                    self._journal.roll()
                    self._rows = self._compact(self._journal.files[:-1])
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
        distinct, places = self._distinct(category_id)
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
        """The thresholds of the classes that have `per_class` detections, by category id."""
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

    def close(self) -> None:
        """Writes the file, and removes the journal."""
        with self._lock:
            if self._ended:
                return
            if self._journal.released:
                raise OutputError(
                    f"{self._target}: is not written, as an error had ended the sink; a new "
                    "TopKWriter goes on with it"
                )
            self._require_open()
            final = self._journal.folder / f".final{self._ending}"
            try:
                self._journal.sync()
                self._write(final)
            except BaseException:
                self._journal.release()
                raise
            self._journal.finish(final, self._target)
            self._ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it; after an error the journal stays, to go on from."""
        if kind is None:
            self.close()
        else:
            self._journal.release()
            self._ended = True

    def _require_open(self) -> None:
        if self._journal.released:
            raise InputError(f"{self._target}: the sink is closed")
        if os.getpid() != self._process:
            raise InputError(
                f"{self._target}: the sink was opened by another process; each needs its own file"
            )

    def _ids_of(self, labels: Any, source: str) -> NDArray[np.int64]:
        """[n] the category ids of labels."""
        label = self._whole_numbers(labels, "label", source)
        if self._category_ids is None:
            return label
        known = len(self._category_ids)
        wrong = (label < 0) | (label >= known)
        if wrong.any():
            raise InputError(
                f"{source}: label {label[wrong][0]}, expected 0 to {known - 1}, the places of "
                "category_ids"
            )
        return self._category_ids[label]

    def _require_masks(self, given: bool, source: str) -> None:
        """All detections have masks, or none."""
        before = self._journal.settings.get("masks")
        if before is None:
            self._journal.settle("masks", given)
        elif before != given:
            names = {True: "masks", False: "no masks"}
            raise InputError(f"{source}: has {names[given]}, but images before {names[before]}")
