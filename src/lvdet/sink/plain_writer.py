"""`TopKWriter` without the compiled core: NumPy and the json module, for JSON only."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError, OutputError
from lvdet.read.files import write_whole
from lvdet.sink.journal import Journal
from lvdet.sink.tensors import to_numpy
from lvdet.sink.top_scores import TopScores

#: Rows a journal may have whatever they are; beyond them, GROWTH times those that count.
COMPACT_ROWS = 1 << 20
GROWTH = 3
#: The endings of what can be written.
ENDINGS = (".json", ".jsonl", ".ndjson")
#: Lines that are looked at together.
BLOCK = 1 << 14


class PlainTopKWriter:
    """Keeps the best `per_class` detections of each class over all images, and writes them.

    It takes the same arguments as `TopKWriter`, has the same journal and keeps the same rows, in
    the same order; either goes on with what the other has begun. It writes .json (a record a
    line), .jsonl or .ndjson, holds no more than the scores in memory, also when it is closed, and
    takes masks as COCO run lengths whose counts are text. One thread may use it.
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
        self._limit = _whole_number(per_class, f"per_class is {per_class!r}, expected 1 or more")
        if self._limit < 1:
            raise InputError(f"per_class is {per_class!r}, expected 1 or more")
        if box_format not in ("xywh", "xyxy"):
            raise InputError(f"box_format is {box_format!r}, expected 'xywh' or 'xyxy'")
        self._corners = box_format == "xyxy"
        self._category_ids: NDArray[np.int64] | None = None
        if category_ids is not None:
            self._category_ids = _whole_numbers(to_numpy(category_ids), "category_ids", "the sink")
        known = self._category_ids
        self._target = Path(os.path.realpath(path))
        self._ending = self._target.suffix.lower()
        if self._ending not in ENDINGS:
            raise InputError(
                f"{os.fspath(path)}: unknown ending {self._target.suffix!r}, expected one of "
                f"{', '.join(ENDINGS)} where lvdet's compiled core is missing"
            )
        self._process = os.getpid()
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
                for _, category, score in _blocks(file):
                    self._count(category, score)
                    self._rows += len(score)
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

    def add(self, image_id: Any, boxes: Any, scores: Any, labels: Any, masks: Any = None) -> None:
        """Adds all detections of one image, which is then finished. An image is added once.

        boxes:  [n, 4] in the sink's format; None where there are masks
        scores: [n] finite numbers
        labels: [n] whole numbers
        masks:  [n] COCO run lengths, {"size": [height, width], "counts": text}. Those of rows
                which `keeps` rules out are not looked at.
        """
        self._require_open()
        image = _whole_number(to_numpy(image_id), f"image_id is {image_id!r}, not a whole number")
        source = f"image {image}"
        if image in self._journal.images:
            raise InputError(f"{source}: was added before, each image is added once")
        category = self._ids_of(labels, source)
        count = len(category)
        score = _floats(scores, "scores", source)
        if score.shape != (count,):
            raise InputError(f"{source}: {score.size} scores for {count} labels")
        if not np.isfinite(score).all():
            raise InputError(f"{source}: a score is not finite")
        box = None if boxes is None and masks is not None else self._sizes(boxes, count, source)
        keep = np.flatnonzero(self._could_enter(category, score))
        pictured = None if masks is None else _segmentations(masks, count, keep, source)
        if count:
            self._require_masks(masks is not None, source)
        text = _lines(
            image, category[keep], None if box is None else box[keep], score[keep], pictured
        )
        try:
            self._journal.append(image, text)
            self._count(category[keep], score[keep])
            self._rows += len(keep)
            if self._rows > max(COMPACT_ROWS, GROWTH * self._scores.rows):
                self._journal.roll()
                self._rows = self._compact(self._journal.files[:-1])
        except BaseException:  # what is on disk is right, what is in memory may not be
            self._journal.release()
            raise

    def keeps(self, scores: Any, labels: Any) -> NDArray[np.bool_]:
        """[n] which of these could still be among the best."""
        score = _floats(scores, "scores", "keeps")
        category = self._ids_of(labels, "keeps")
        if score.shape != category.shape:
            raise InputError(f"keeps: {score.size} scores for {category.size} labels")
        distinct, places = np.unique(category, return_inverse=True)
        kept: NDArray[np.bool_] = ~(score <= self._scores.thresholds(distinct)[places])
        return kept

    def threshold(self, label: Any) -> float:
        """The score that a detection of this label has to exceed; -inf while any enters."""
        return self._scores.threshold(int(self._ids_of([to_numpy(label)], "threshold")[0]))

    @property
    def thresholds(self) -> Mapping[int, float]:
        """The thresholds of the classes that have `per_class` detections, by category id."""
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
        if self._ended:
            return
        if self._journal.released:
            raise OutputError(
                f"{self._target}: is not written, as an error had ended the sink; a new one goes "
                "on with it"
            )
        self._require_open()
        try:
            self._journal.sync()
            final = self._journal.folder / f".final{self._ending}"
            with write_whole(final) as file:
                self._write(file)
        except BaseException:
            self._journal.release()
            raise
        self._journal.finish(final, self._target)
        self._ended = True

    def __enter__(self) -> PlainTopKWriter:
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

    def _write(self, file: IO[bytes]) -> None:
        """The best rows: a list with a record a line, or lines."""
        best = (line.rstrip(b"\n") for line in self._best(self._journal.files))
        if self._ending != ".json":
            file.writelines(line + b"\n" for line in best)
            return
        first = next(best, None)
        if first is None:
            file.write(b"[]\n")
            return
        file.write(b"[" + first)
        file.writelines(b",\n" + line for line in best)
        file.write(b"]\n")

    def _compact(self, files: Iterable[Path]) -> int:
        """Rewrites files, one at a time, without the rows that no longer count; how many are
        left."""
        left = dict(self._scores.ties())
        rows = 0
        for path in files:
            with write_whole(path) as file:
                for line in self._best_of(path, left):
                    file.write(line)
                    rows += 1
        return rows

    def _best(self, files: Iterable[Path]) -> Iterator[bytes]:
        left = dict(self._scores.ties())
        return chain.from_iterable(self._best_of(path, left) for path in files)

    def _best_of(self, path: Path, left: dict[int, int]) -> Iterator[bytes]:
        """The lines of a file that count. `left`: how many rows at just their class's threshold
        still count; the earlier ones do."""
        for lines, category, score in _blocks(path):
            distinct, places = np.unique(category, return_inverse=True)
            threshold = self._scores.thresholds(distinct)[places]
            keep = score > threshold
            for row in np.flatnonzero(score == threshold).tolist():
                name = int(category[row])
                keep[row] = left[name] > 0
                left[name] -= 1
            for row in np.flatnonzero(keep).tolist():
                yield lines[row]

    def _count(self, category: NDArray[np.int64], score: NDArray[np.float64]) -> None:
        distinct, places = np.unique(category, return_inverse=True)
        self._scores.add(places.astype(np.int32), distinct, score)

    def _could_enter(
        self, category: NDArray[np.int64], score: NDArray[np.float64]
    ) -> NDArray[np.bool_]:
        """[n] above their class's threshold, and among the best of their class in the image."""
        distinct, places = np.unique(category, return_inverse=True)
        keep: NDArray[np.bool_] = score > self._scores.thresholds(distinct)[places]
        if len(score) > self._limit:
            order = np.lexsort((-score, places))  # stable: the earlier among equals
            begin = np.searchsorted(places[order], np.arange(len(distinct)))
            rank = np.arange(len(order)) - begin[places[order]]
            keep[order[rank >= self._limit]] = False
        return keep

    def _ids_of(self, labels: Any, source: str) -> NDArray[np.int64]:
        """[n] the category ids of labels."""
        label = _whole_numbers(to_numpy(labels), "label", source)
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

    def _sizes(self, boxes: Any, count: int, source: str) -> NDArray[np.float64]:
        """[n, 4] x, y, w, h."""
        box = _floats(boxes, "boxes", source)
        if box.size == 0 and count == 0:
            return box.reshape(0, 4)
        if box.shape != (count, 4):
            raise InputError(f"{source}: boxes have shape {box.shape}, expected ({count}, 4)")
        if self._corners:
            box = np.concatenate([box[:, :2], box[:, 2:] - box[:, :2]], axis=1)
        wrong = ~np.isfinite(box).all(axis=1) | (box[:, 2:] < 0).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"{source}, row {row:,}: bbox is {box[row].tolist()}, expected finite numbers and "
                "a width and height of 0 or more"
            )
        return box

    def _require_masks(self, given: bool, source: str) -> None:
        """All detections have masks, or none."""
        before = self._journal.settings.get("masks")
        if before is None:
            self._journal.settle("masks", given)
        elif before != given:
            names = {True: "masks", False: "no masks"}
            raise InputError(f"{source}: has {names[given]}, but images before {names[before]}")


def _blocks(path: Path) -> Iterator[tuple[list[bytes], NDArray[np.int64], NDArray[np.float64]]]:
    """Lines of a file of rows, with their category ids and scores."""
    with open(path, "rb") as file:
        while lines := list(islice(file, BLOCK)):
            records = json.loads(b"[" + b",".join(lines) + b"]")
            yield (
                lines,
                np.array([record["category_id"] for record in records], dtype=np.int64),
                np.array([record["score"] for record in records], dtype=np.float64),
            )


def _lines(
    image: int,
    category: NDArray[np.int64],
    box: NDArray[np.float64] | None,
    score: NDArray[np.float64],
    masks: list[dict[str, Any]] | None,
) -> bytes:
    """Records of an image, one a line."""
    boxes = [None] * len(score) if box is None else box.tolist()
    pictured = [None] * len(score) if masks is None else masks
    lines = []
    for name, corner, chance, mask in zip(
        category.tolist(), boxes, score.tolist(), pictured, strict=True
    ):
        record: dict[str, Any] = {"image_id": image, "category_id": name}
        if corner is not None:
            record["bbox"] = corner
        record["score"] = chance
        if mask is not None:
            record["segmentation"] = mask
        lines.append(json.dumps(record) + "\n")
    return "".join(lines).encode()


def _segmentations(
    masks: Any, count: int, rows: NDArray[np.int64], source: str
) -> list[dict[str, Any]]:
    """The masks of some rows of an image."""
    if not isinstance(masks, Sequence):
        raise InputError(f"{source}: masks are a {type(masks).__name__}, expected a list")
    if len(masks) != count:
        raise InputError(f"{source}: {len(masks)} masks for {count} detections")
    chosen = []
    for row in rows.tolist():
        mask = masks[row]
        if mask is None:
            raise InputError(f"{source}, row {row:,}: has no mask, but may be kept")
        counts = mask.get("counts") if isinstance(mask, dict) else None
        text = counts.decode() if isinstance(counts, bytes) else counts
        if not isinstance(text, str) or len(mask.get("size", ())) != 2:
            raise InputError(
                f"{source}, row {row:,}: the mask is not "
                '{"size": [height, width], "counts": text}'
            )
        chosen.append({"size": [int(side) for side in mask["size"]], "counts": text})
    return chosen


def _whole_number(value: Any, refusal: str) -> int:
    """A whole number of 64 bits."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(refusal) from None
    if isinstance(value, bool) or not -(2**63) <= number < 2**63:
        raise InputError(refusal)
    return number


def _whole_numbers(values: Any, name: str, source: str) -> NDArray[np.int64]:
    """[n] whole numbers, also those that are whole by value alone."""
    found = _floats(values, name, source)
    if found.size == 0:
        return np.zeros(0, dtype=np.int64)
    given = np.asarray(values)
    if given.ndim != 1 or given.dtype.kind not in "iuf" or not (found == np.floor(found)).all():
        raise InputError(f"{source}: {name} has to be a list of whole numbers")
    return given.astype(np.int64)


def _floats(values: Any, name: str, source: str) -> NDArray[np.float64]:
    try:
        return np.asarray(to_numpy(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{source}: {name} are not numbers: {error}") from None
