"""Compacts a journal to the rows that count: the best of each class and of each image."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lvdet import _native
from lvdet.threads import thread_count
from lvdet.writers.blocks import Block, join
from lvdet.writers.journal import Journal

T = TypeVar("T")
#: Rows and mask bytes processed at a time.
ROWS, MASK_BYTES = 1 << 18, 1 << 26


def counting_blocks(
    blocks: Iterable[Block], ledger: _native.Ledger, dets_per_image: int, left: NDArray[np.int64]
) -> Iterator[Block]:
    """Blocks, joined to some size, with only the rows that count.

    `ledger` has the scores of all rows. Of equal scores the earlier rows count: `left` says for
    each of its classes how many of just the threshold still do, and is brought up to date.
    """
    for block in _joined(blocks):
        keep = ledger.count(block.category_id, block.score, left)
        if dets_per_image:
            best = np.ones(len(block), dtype=np.uint8)
            images = len(block.image_ids)
            _native.keep_top(block.image, images, block.score, dets_per_image, best, 1)
            keep |= best
        yield block if keep.all() else block[keep.view(np.bool_)]


def compact(journal: Journal, ledger: _native.Ledger, dets_per_image: int) -> int:
    """Rewrites the files of a journal, one at a time, with only the rows that count; returns how
    many. The last file must be empty."""
    rows = 0
    left = ledger.ties()
    for name in journal.files[:-1]:
        blocks = [*counting_blocks(journal.blocks(name), ledger, dets_per_image, left)]
        if blocks:
            rows += sum(map(len, blocks))
            journal.replace(name, blocks)
    return rows


def _joined(blocks: Iterable[Block]) -> Iterator[Block]:
    parts: list[Block] = []
    rows = size = 0
    for block in blocks:
        parts.append(block)
        rows += len(block)
        size += 0 if block.masks is None else len(block.masks.data)
        if rows >= ROWS or size >= MASK_BYTES:
            yield join(parts)
            parts, rows, size = [], 0, 0
    if parts:
        yield join(parts)


def made_ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, each computed on another thread while the previous one is used."""
    if thread_count() == 1:
        yield from items
        return
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(next, items, None)
        while (item := pending.result()) is not None:
            pending = pool.submit(next, items, None)
            yield item
