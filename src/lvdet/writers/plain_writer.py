"""`TopKWriter` without the compiled core: NumPy and the json module, for JSON only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError
from lvdet.files.writing import write_whole
from lvdet.writers.arguments import floats, sizes
from lvdet.writers.tensors import to_numpy
from lvdet.writers.top_k_base import Scored, TopKBase

#: The endings of what can be written.
ENDINGS = (".json", ".jsonl", ".ndjson")
#: Lines that are looked at together.
BLOCK = 1 << 14


class PlainTopKWriter(TopKBase):
    """Keeps the best `per_class` detections of each class over all images, and writes them.

    It takes the same arguments as `TopKWriter`, has the same journal and keeps the same rows, in
    the same order; either goes on with what the other has begun. It writes .json (a record a
    line), .jsonl or .ndjson, holds no more than the scores in memory, also when it is closed, and
    takes masks only as COCO run lengths, {"size": [height, width], "counts": text}.
    """

    def _require_ending(self, path: str | os.PathLike[str]) -> str:
        return require_plain_ending(path)

    def _whole_numbers(self, values: Any, name: str, source: str) -> NDArray[np.int64]:
        found = floats(values, name, source)
        if found.size == 0:
            return np.zeros(0, dtype=np.int64)
        given = np.asarray(to_numpy(values))
        if given.ndim != 1 or given.dtype.kind not in "iuf" or not (found == np.floor(found)).all():
            raise InputError(f"{source}: {name} has to be a list of whole numbers")
        return given.astype(np.int64)

    def _distinct(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        return np.unique(ids, return_inverse=True)

    def _scores_in(self, file: Path) -> Iterator[Scored]:
        for _, category, score in _blocks(file):
            yield _scored(category, score)

    def _kept(
        self, image: int, boxes: Any, scores: Any, labels: Any, masks: Any, source: str
    ) -> tuple[Scored, bytes]:
        category = self._ids_of(labels, source)
        count = len(category)
        score = floats(scores, "scores", source)
        if score.shape != (count,):
            raise InputError(f"{source}: {score.size} scores for {count} labels")
        if not np.isfinite(score).all():
            raise InputError(f"{source}: a score is not finite")
        box = None if boxes is None and masks is not None else self._boxes(boxes, count, source)
        keep = np.flatnonzero(self._could_enter(category, score))
        pictured = None if masks is None else _segmentations(masks, count, keep, source)
        if count:
            self._require_masks(masks is not None, source)
        category, score = category[keep], score[keep]
        text = _lines(image, category, None if box is None else box[keep], score, pictured)
        return _scored(category, score), text

    def _compact(self, files: Iterable[Path]) -> int:
        left = dict(self._scores.ties())
        rows = 0
        for path in files:
            with write_whole(path) as file:
                for line in self._best_of(path, left):
                    file.write(line)
                    rows += 1
        return rows

    def _write(self, final: Path) -> None:
        """A list with a record a line, or lines."""
        left = dict(self._scores.ties())
        best = (
            line.rstrip(b"\n") for path in self._journal.files for line in self._best_of(path, left)
        )
        with write_whole(final) as file:
            if self._ending != ".json":
                file.writelines(line + b"\n" for line in best)
                return
            file.write(b"[" + next(best, b""))
            file.writelines(b",\n" + line for line in best)
            file.write(b"]\n")

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

    def _boxes(self, boxes: Any, count: int, source: str) -> NDArray[np.float64]:
        """[n, 4] x, y, w, h."""
        box = floats(boxes, "boxes", source)
        if box.size == 0 and count == 0:
            return box.reshape(0, 4)
        if box.shape != (count, 4):
            raise InputError(f"{source}: boxes have shape {box.shape}, expected ({count}, 4)")
        if self._corners:
            box = sizes(box, source)
        wrong = ~np.isfinite(box).all(axis=1) | (box[:, 2:] < 0).any(axis=1)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(
                f"{source}, row {row:,}: bbox is {box[row].tolist()}, expected finite numbers and "
                "a width and height of 0 or more"
            )
        return box


def require_plain_ending(path: str | os.PathLike[str]) -> str:
    """The ending, in small letters, of a file that can be written without the compiled core."""
    ending = Path(path).suffix
    if ending.lower() not in ENDINGS:
        raise InputError(
            f"{os.fspath(path)}: unknown ending {ending!r}, expected one of {', '.join(ENDINGS)} "
            "where lvdet's compiled core is missing"
        )
    return ending.lower()


def _scored(category: NDArray[np.int64], score: NDArray[np.float64]) -> Scored:
    distinct, places = np.unique(category, return_inverse=True)
    return Scored(places.astype(np.int32), distinct, score)


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
