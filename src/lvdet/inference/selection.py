"""Of a batch's candidates those that a budget may keep, without doubles.

Whether a box is suppressed depends only on the boxes of its class and image that come before it, by
descending score and among equals by place. So candidates can be left out before suppression,
wherever all that come before one that is taken are taken too. Taken are

- those above the bound of their class, of which there are fewer the more images have been seen,
- and, for a budget per image, those that are not below the image's candidate of some rank `most`.
  If `dets_per_image` of these are left, they are the image's best; if not, `most` was too few.

Everything has a shape that is known before, so that the host need not wait for a GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from lvdet.training.model.candidates import Candidates
from lvdet.training.model.nms import suppressed_in_groups


@dataclass(frozen=True)
class Wanted:
    """The selection criteria.

    bound: [K] what a score of each class has to exceed to be among the best of its class; inf if
           there is no such budget
    floor: what any score has to exceed
    dets_per_image: the best of each image to keep, whatever their classes; 0: none
    nms:   IoUs above which the better of two boxes of a class suppresses the other
    """

    bound: Tensor
    floor: float
    dets_per_image: int
    nms: Sequence[float]


class Selected(NamedTuple):
    """The boxes kept in B images at one suppression threshold.

    place:  [N] among all scores, by image, in each by descending score; as many as `ends` says,
            what follows means nothing
    box:    [N, 4]; score: [N]
    ends:   [B] how many there are up to the end of each image
    enough: [B] whether everything that a budget per image keeps is included
    """

    place: Tensor
    box: Tensor
    score: Tensor
    ends: Tensor
    enough: Tensor


class _Taken(NamedTuple):
    """P candidates, by image, within each by descending score; followed by padding of image B.

    lowest: [B] the lowest score considered for its image's budget; -inf: all scores
    """

    place: Tensor
    image: Tensor
    label: Tensor
    score: Tensor
    box: Tensor
    lowest: Tensor


def select(
    candidates: Candidates, wanted: Wanted, most: int, room: int | None
) -> tuple[list[Selected], Tensor]:
    """The selection at each threshold, and the number of candidates taken, which must not exceed
    the room for them.

    most: candidates of an image to consider for its budget
    room: candidates in all; None: as many as there are, which makes the host wait
    """
    images, rows, classes = candidates.score.shape
    taken, count = _taken(candidates, wanted, most, room)
    group = torch.where(taken.image < images, taken.image * classes + taken.label, images * classes)
    group, order = group.int().sort(stable=True)
    edges = torch.arange(images * classes + 1, dtype=torch.int32, device=group.device)
    begin = torch.searchsorted(group, edges)
    box = taken.box[order]
    found = []
    for threshold in wanted.nms:
        left = suppressed_in_groups(box, begin, threshold, rows)
        kept = torch.empty_like(left).scatter_(0, order, left)
        found.append(_kept(taken, kept, wanted, images))
    return found, count


def _taken(
    candidates: Candidates, wanted: Wanted, most: int, room: int | None
) -> tuple[_Taken, Tensor]:
    images, rows, classes = candidates.score.shape
    device = candidates.score.device
    score = candidates.score.masked_fill(~(candidates.score > wanted.floor), -torch.inf)
    take = score > wanted.bound
    lowest = torch.full((images,), torch.inf, device=device)
    if wanted.dets_per_image:
        if most < rows * classes:
            best = score.flatten(1).topk(most, dim=1, sorted=False).values
            lowest = best.amin(dim=1)
        else:
            lowest = torch.full_like(lowest, -torch.inf)
        take |= (score >= lowest[:, None, None]) & (score > -torch.inf)
    number = take.flatten().cumsum(0, dtype=torch.int32)
    count = number[-1:] if len(number) else torch.zeros(1, dtype=torch.int32, device=device)
    room = int(count) if room is None else room
    # The first place up to which there are 1, 2, … of them; the end where there are fewer.
    place = torch.searchsorted(
        number, torch.arange(1, room + 1, dtype=torch.int32, device=device), out_int32=False
    )
    there = place < len(number)
    place = torch.where(there, place, 0)
    score = score.flatten()[place]
    box = candidates.boxes(place)
    there &= (box[:, 2:] > box[:, :2]).all(dim=1)  # others overlap with nothing
    image = torch.where(there, place // (rows * classes), images)
    order = torch.argsort((image << 32) + _falling(score), stable=True)
    place = place[order]
    taken = _Taken(place, image[order], place % classes, score[order], box[order], lowest)
    return taken, count


def _falling(score: Tensor) -> Tensor:
    """[N] int64 from 0 to 2³² - 1, lower for higher float32 scores; equal for equal ones."""
    bits = (score + 0.0).view(torch.int32).long()
    return 0x7FFFFFFF - (bits ^ ((bits >> 31) & 0x7FFFFFFF))


def _kept(taken: _Taken, kept: Tensor, wanted: Wanted, images: int) -> Selected:
    """The boxes that a budget may keep, among those left by suppression."""
    device = kept.device
    edges = torch.searchsorted(taken.image, torch.arange(images + 1, device=device))
    enough = torch.ones(images, dtype=torch.bool, device=device)
    useful = kept & (taken.score > wanted.bound[taken.label])
    if wanted.dets_per_image:
        before = _before(kept)
        rank = before[:-1] - before[edges][taken.image]
        useful |= kept & (rank < wanted.dets_per_image)
        lowest = torch.cat([taken.lowest, taken.lowest.new_full((1,), torch.inf)])
        best = _before(kept & (taken.score >= lowest[taken.image]))[edges].diff()
        enough = (best >= wanted.dets_per_image) | (taken.lowest == -torch.inf)
    before = _before(useful)
    row = torch.searchsorted(
        before[1:], torch.arange(1, len(useful) + 1, dtype=torch.int32, device=device)
    )
    row.clamp_(max=max(len(useful) - 1, 0))
    return Selected(taken.place[row], taken.box[row], taken.score[row], before[edges[1:]], enough)


def _before(marked: Tensor) -> Tensor:
    """[N + 1] int32, the number of marks before each position."""
    zero = torch.zeros(1, dtype=torch.int32, device=marked.device)
    return torch.cat([zero, marked.cumsum(0, dtype=torch.int32)])
