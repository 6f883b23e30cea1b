"""Random numbers that depend only on a seed and a position."""

from __future__ import annotations

import torch
from torch import Tensor

#: What random numbers are for.
ANCHORS, BOXES, CLASSES = 1, 2, 3

_STEP = -7046029254386353131  # 2^64 / golden ratio, as splitmix64 takes it
_MIX_1, _MIX_2 = -4658895280553007687, -7723592293110705685


def uniform(seed: Tensor, count: int, purpose: int) -> Tensor:
    """[B, count] float32 in [0, 1) from [B] int64 seeds: splitmix64 of seed, purpose and place.

    The same image gets the same numbers on any device and in any batch, so training does not
    depend on how many processes share a batch, nor on where it was interrupted.
    """
    start = _mixed(_mixed(seed) + purpose)
    place = torch.arange(1, count + 1, device=seed.device)
    bits = _mixed(start[:, None] + place * _STEP)
    return _shifted(bits, 40).to(torch.float32) * 2.0**-24


def _mixed(bits: Tensor) -> Tensor:
    bits = (bits ^ _shifted(bits, 30)) * _MIX_1
    bits = (bits ^ _shifted(bits, 27)) * _MIX_2
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, by: int) -> Tensor:
    """Shifted to the right, with zeros from the left: the sign is a bit like any other."""
    return (bits >> by) & ((1 << (64 - by)) - 1)
