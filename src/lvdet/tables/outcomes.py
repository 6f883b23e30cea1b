"""The outcome of matching for each row of a ranking: correct, incorrect or not counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Columns: TypeAlias = tuple[
    "np.ndarray[tuple[int], np.dtype[np.uint8]]",
    "np.ndarray[tuple[int], np.dtype[np.int32]]",
    "np.ndarray[tuple[int, int, int, int], np.dtype[np.uint8]]",
]


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of K rows in each of S scopes: ranges of area, or pools of classes.

    Nine in ten rows match nothing at any threshold: for them, one byte says where they are
    incorrect. The others are the hits.

    wrong: [K] uint8, bit s: the row matches nothing, and is incorrect in scope s
    hits:  [H] int32, the rows that match something, ascending
    bits:  [H, S, 2, B] uint8, bit t % 8 of byte t // 8 for IoU threshold t: first, matched with an
           object; second, not counted. Correct means matched and counted; incorrect means neither.
    """

    wrong: NDArray[np.uint8]
    hits: NDArray[np.int32]
    bits: NDArray[np.uint8]

    @staticmethod
    def at_one_threshold(right: NDArray[np.bool_]) -> Outcomes:
        """The rows that are correct, and those that are incorrect ([K]), in one scope."""
        hits = np.flatnonzero(right).astype(np.int32)
        bits = np.zeros((len(hits), 1, 2, 1), dtype=np.uint8)
        bits[:, 0, 0] = 1
        return Outcomes((~right).view(np.uint8), hits, bits)

    @property
    def columns(self) -> Columns:
        """The columns as kernels take them."""
        return self.wrong, self.hits, self.bits

    def where(self, keep: NDArray[np.bool_]) -> Outcomes:
        """The rows selected by a mask ([K])."""
        place = np.cumsum(keep, dtype=np.int32) - np.int32(1)
        kept = keep[self.hits]
        return Outcomes(self.wrong[keep], place[self.hits[kept]], self.bits[kept])

    def ordered(self, order: NDArray[np.int32]) -> Outcomes:
        """The same rows in another order: its k-th row is row order[k]."""
        place = np.empty_like(order)
        place[order] = np.arange(len(order), dtype=order.dtype)
        hits = place[self.hits]
        rising = np.argsort(hits)
        return Outcomes(self.wrong[order], hits[rising], self.bits[rising])

    def replaced(self, rows: NDArray[np.int32], bits: NDArray[np.uint8]) -> Outcomes:
        """The same, with the bits of these rows ([P]) in the first scope only replaced ([P, 2,
        B])."""
        hits = np.union1d(self.hits, rows).astype(np.int32)
        every = np.zeros((len(hits), 1, 2, self.bits.shape[3]), dtype=np.uint8)
        every[np.searchsorted(hits, self.hits)] = self.bits[:, :1]
        every[np.searchsorted(hits, rows), 0] = bits
        wrong = self.wrong & np.uint8(1)
        wrong[rows] = 0
        return Outcomes(wrong, hits, every)

    def flags(self, threshold: int, scope: int = 0) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """[K] whether each row is matched, and not counted, at a threshold and scope by index."""
        byte, bit = self.bits[:, scope, :, threshold // 8], np.uint8(1 << threshold % 8)
        matched = np.zeros(len(self.wrong), dtype=bool)
        matched[self.hits] = byte[:, 0] & bit
        ignored = self.wrong & np.uint8(1 << scope) == 0
        ignored[self.hits] = byte[:, 1] & bit
        return matched, ignored
