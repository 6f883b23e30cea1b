"""Suppression on a GPU without a wait: which boxes overlap as bits, then one walk a group.

torchvision's `nms` takes one group at a time and returns as many rows as are left, so the host has
to wait for each. Here all groups are walked at once, and what comes back has the shape of what went
in.
"""

# Triton's functions have no types.
# mypy: disable-error-code="no-untyped-def, untyped-decorator, no-untyped-call"
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

#: Bits of a word; rows that a program compares; words of columns that it compares them with.
_WORD, _ROWS, _WORDS = 32, 32, 8


def survivors_on_gpu(box: Tensor, there: Tensor, threshold: float) -> Tensor:
    """[G, N] bool, as `nms.survivors`."""
    groups, number = there.shape
    if number == 0 or groups == 0:
        return there.clone()
    words = triton.cdiv(number, _WORD)
    box = box.float().contiguous()
    free = there.contiguous()
    bits = torch.empty(groups, words * _WORD, words, dtype=torch.int32, device=box.device)
    grid = (groups, triton.cdiv(words * _WORD, _ROWS), triton.cdiv(words, _WORDS))
    _compare[grid](
        box, bits, number, words, threshold, row_block=_ROWS, word_block=_WORDS, word_bits=_WORD
    )
    kept = torch.empty(groups, words * _WORD, dtype=torch.bool, device=box.device)
    width = triton.next_power_of_2(words)
    _walk[(groups,)](bits, free, kept, number, words, width=width, word_bits=_WORD, num_warps=4)
    return kept[:, :number]


def suppressed_on_gpu(box: Tensor, begin: Tensor, threshold: float, largest: int) -> Tensor:
    """[N] bool, as `nms.suppressed_in_groups`."""
    kept = torch.zeros(len(box), dtype=torch.bool, device=box.device)
    if len(box) and largest:
        width = max(16, triton.next_power_of_2(largest))
        _suppress[(len(begin) - 1,)](
            box.float().contiguous(), begin, kept, threshold, width=width, num_warps=4
        )
    return kept


@triton.jit
def _suppress(box, begin, kept, threshold, width: tl.constexpr):
    """Walks down a group: each box that is left removes those after it that overlap it."""
    group = tl.program_id(0)
    first = tl.load(begin + group)
    count = tl.load(begin + group + 1) - first
    if count > 0:
        slot = tl.arange(0, width)
        there = slot < count
        box += first * 4
        u1 = tl.load(box + slot * 4, mask=there, other=0.0)
        v1 = tl.load(box + slot * 4 + 1, mask=there, other=0.0)
        u2 = tl.load(box + slot * 4 + 2, mask=there, other=0.0)
        v2 = tl.load(box + slot * 4 + 3, mask=there, other=0.0)
        extent = (u2 - u1) * (v2 - v1)
        left = there.to(tl.int32)
        for row in range(count):
            if tl.sum(tl.where(slot == row, left, 0), axis=0) > 0:
                x1, y1 = tl.load(box + row * 4), tl.load(box + row * 4 + 1)
                x2, y2 = tl.load(box + row * 4 + 2), tl.load(box + row * 4 + 3)
                wide = tl.maximum(tl.minimum(x2, u2) - tl.maximum(x1, u1), 0.0)
                high = tl.maximum(tl.minimum(y2, v2) - tl.maximum(y1, v1), 0.0)
                shared = wide * high
                whole = (x2 - x1) * (y2 - y1) + extent - shared
                over = (shared / tl.maximum(whole, 1e-12) > threshold) & (slot > row)
                left = tl.where(over, 0, left)
        tl.store(kept + first + slot, left > 0, mask=there)


@triton.jit
def _compare(
    box,
    bits,
    number,
    words,
    threshold,
    row_block: tl.constexpr,
    word_block: tl.constexpr,
    word_bits: tl.constexpr,
):
    """bits[g, i, w]: which of the boxes 32 w … 32 w + 31 come after box i and overlap it."""
    group = tl.program_id(0).to(tl.int64)
    row = tl.program_id(1) * row_block + tl.arange(0, row_block)
    word = tl.program_id(2) * word_block + tl.arange(0, word_block)
    column = tl.program_id(2) * word_block * word_bits + tl.arange(0, word_block * word_bits)
    box += group * number * 4
    at_row, at_column = row < number, column < number
    x1 = tl.load(box + row * 4, mask=at_row, other=0.0)[:, None]
    y1 = tl.load(box + row * 4 + 1, mask=at_row, other=0.0)[:, None]
    x2 = tl.load(box + row * 4 + 2, mask=at_row, other=0.0)[:, None]
    y2 = tl.load(box + row * 4 + 3, mask=at_row, other=0.0)[:, None]
    u1 = tl.load(box + column * 4, mask=at_column, other=0.0)[None, :]
    v1 = tl.load(box + column * 4 + 1, mask=at_column, other=0.0)[None, :]
    u2 = tl.load(box + column * 4 + 2, mask=at_column, other=0.0)[None, :]
    v2 = tl.load(box + column * 4 + 3, mask=at_column, other=0.0)[None, :]
    wide = tl.maximum(tl.minimum(x2, u2) - tl.maximum(x1, u1), 0.0)
    high = tl.maximum(tl.minimum(y2, v2) - tl.maximum(y1, v1), 0.0)
    shared = wide * high
    whole = (x2 - x1) * (y2 - y1) + (u2 - u1) * (v2 - v1) - shared
    over = (shared / tl.maximum(whole, 1e-12) > threshold) & (column[None, :] > row[:, None])
    weight = 1 << (tl.arange(0, word_block * word_bits) % word_bits)
    packed = tl.sum(
        tl.reshape(tl.where(over, weight[None, :], 0), (row_block, word_block, word_bits)), axis=2
    )
    at = (group * words * word_bits + row[:, None]) * words + word[None, :]
    tl.store(bits + at, packed, mask=(row[:, None] < words * word_bits) & (word[None, :] < words))


@triton.jit
def _either(first, second):
    return first | second


@triton.jit
def _walk(bits, there, kept, number, words, width: tl.constexpr, word_bits: tl.constexpr):
    """Walks down a group, 32 boxes at a time: among themselves, then against all that follow."""
    group = tl.program_id(0).to(tl.int64)
    bits += group * words * word_bits * words
    there += group * number
    kept += group * words * word_bits
    word = tl.arange(0, width)
    inside = tl.arange(0, word_bits)
    gone = tl.zeros((width,), dtype=tl.int32)
    for block in range(words):
        row = block * word_bits + inside
        present = tl.load(there + row, mask=row < number, other=0).to(tl.int32)
        missing = tl.sum(tl.where(present == 0, 1 << inside, 0), axis=0)
        out = missing | tl.sum(tl.where(word == block, gone, 0), axis=0)
        for place in tl.static_range(word_bits):
            beats = tl.load(bits + (block * word_bits + place) * words + block)
            out = tl.where((out >> place) & 1 == 0, out | beats, out)
        free = (out >> inside) & 1 == 0
        tl.store(kept + row, free)
        beaten = tl.load(
            bits + row[:, None] * words + word[None, :],
            mask=free[:, None] & (word[None, :] < words),
            other=0,
        )
        gone = gone | tl.reduce(beaten, 0, _either)
