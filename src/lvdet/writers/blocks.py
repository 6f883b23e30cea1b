"""Rows of images as blocks of bytes, each with its length and checksum.

A block is a header of 40 bytes (b"LVDB", a CRC-32 of everything that follows, the bytes after the
header, images, rows, flags) and then columns, little-endian, in this order:

    image ids, rows of each image   int64, [images]
    category ids, scores            int64, float64, [rows]
    boxes                           float64, [rows, 4] x, y, width, height
    where masks begin               int64, [rows + 1]; like the following only if there are any
    heights, widths, kinds          int32, int32, uint8, [rows]
    masks                           bytes, as in `lvdet.tables.masks.Masks`

and zeros up to a multiple of eight bytes.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.errors import InputError
from lvdet.tables.detections import Detections
from lvdet.tables.masks import Masks

_HEADER = struct.Struct("<4sIqqqII")
_MAGIC = b"LVDB"
_BOXES, _MASKS = 1, 2


@dataclass(frozen=True, eq=False)
class Block:
    """Images and their rows, in order.

    image_ids: [I] int64; counts: [I] int64, rows of each image
    category_id: [N] int64; score: [N] float64; box: [N, 4] float64
    boxes_given: boxes were given for some of the rows, not made from masks
    """

    image_ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    category_id: NDArray[np.int64]
    score: NDArray[np.float64]
    box: NDArray[np.float64]
    masks: Masks | None
    boxes_given: bool

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, keep: NDArray[np.bool_]) -> Block:
        """The selected rows; all images are kept."""
        image = np.repeat(np.arange(len(self.counts)), self.counts)
        return Block(
            self.image_ids,
            np.bincount(image[keep], minlength=len(self.counts)).astype(np.int64),
            self.category_id[keep],
            self.score[keep],
            self.box[keep],
            None if self.masks is None else self.masks[keep],
            self.boxes_given,
        )

    @property
    def image(self) -> NDArray[np.int32]:
        """[N] the index of each row's image among the ids."""
        return np.repeat(np.arange(len(self.counts), dtype=np.int32), self.counts)

    def table(self, source: str, *, boxes_given: bool) -> Detections:
        """The rows as a table."""
        category_ids, category = _native.encode_ids(self.category_id)
        return Detections(
            self.image,
            category,
            self.score,
            self.box,
            self.image_ids,
            category_ids,
            self.masks,
            boxes_given=boxes_given,
            source=source,
        )

    def pieces(self) -> list[Any]:
        """The bytes of the block, in pieces to write in order."""
        columns: list[Any] = [
            self.image_ids,
            self.counts,
            self.category_id,
            self.score,
            self.box,
        ]
        if self.masks is not None:
            data, offsets, kind, height, width = self.masks.columns
            columns += [offsets, height, width, kind, data[: offsets[-1]]]
        parts: list[Any] = [
            np.ascontiguousarray(column).reshape(-1).view(np.uint8).data
            for column in columns
            if column.size
        ]
        size = sum(len(part) for part in parts)
        padding = -size % 8
        flags = _BOXES * self.boxes_given | _MASKS * (self.masks is not None)
        rest = (size + padding, len(self.image_ids), len(self), flags, 0)
        tail = _HEADER.pack(_MAGIC, 0, *rest)[8:]
        parts.append(bytes(padding))
        crc = zlib.crc32(tail)
        for part in parts:
            crc = zlib.crc32(part, crc)
        return [_HEADER.pack(_MAGIC, crc, *rest), *parts]


def join(blocks: Sequence[Block]) -> Block:
    """Joins the images of several blocks into one."""
    if len(blocks) == 1:
        return blocks[0]
    masks = [block.masks for block in blocks if block.masks is not None]
    return Block(
        np.concatenate([block.image_ids for block in blocks]),
        np.concatenate([block.counts for block in blocks]),
        np.concatenate([block.category_id for block in blocks]),
        np.concatenate([block.score for block in blocks]),
        np.concatenate([block.box for block in blocks]),
        Masks.concatenate(masks) if masks else None,
        any(block.boxes_given for block in blocks),
    )


def read_blocks(content: Any, *, check: bool) -> Iterator[tuple[Block, int]]:
    """The blocks in some bytes, each with its end, up to the first incomplete one.

    check: compares checksums; a ValueError if a block has the right one, but is not of a writer
    """
    at = 0
    size = len(content)
    while at + _HEADER.size <= size:
        magic, crc, length, images, rows, flags, _ = _HEADER.unpack_from(content, at)
        begin = at + _HEADER.size
        end = begin + length
        if magic != _MAGIC or length < 16 * images + 48 * rows or end > size:
            return
        if min(images, rows) < 0:
            return
        if check and zlib.crc32(memoryview(content)[at + 8 : end]) != crc:
            return
        block = _block(memoryview(content)[:end], begin, images, rows, flags)
        if check:
            _require_sound(block)
        yield block, end
        at = end


def _require_sound(block: Block) -> None:
    """The native code relies on it."""
    if (block.counts < 0).any() or block.counts.sum() != len(block):
        raise ValueError("the images have another number of rows")
    if _native.first_bad_row(block.score, block.box, 1) >= 0:
        raise ValueError("a score or a box is not usable")
    if block.masks is not None and _native.mask_problems(block.masks.columns):
        raise ValueError("a mask is damaged")


def _block(content: Any, at: int, images: int, rows: int, flags: int) -> Block:
    def column(dtype: type[np.generic], count: int) -> NDArray[Any]:
        nonlocal at
        values = np.frombuffer(content, dtype, count, at)
        at += values.nbytes
        return values

    image_ids, counts = column(np.int64, images), column(np.int64, images)
    category_id, score = column(np.int64, rows), column(np.float64, rows)
    box = column(np.float64, 4 * rows).reshape(rows, 4)
    masks = None
    if flags & _MASKS:
        offsets = column(np.int64, rows + 1)
        height, width = column(np.int32, rows), column(np.int32, rows)
        kind = column(np.uint8, rows)
        try:
            masks = Masks(column(np.uint8, int(offsets[-1])), offsets, kind, height, width)
        except InputError as error:
            raise ValueError(str(error)) from None
    return Block(image_ids, counts, category_id, score, box, masks, bool(flags & _BOXES))
