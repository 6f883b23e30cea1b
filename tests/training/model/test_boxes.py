"""Boxes of many images at once: torchvision's of one at a time."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torchvision.models.detection._utils import BoxCoder
from torchvision.ops import box_iou, clip_boxes_to_image

from lvdet.training.model.boxes import clip, decode, encode, is_box, overlaps

WEIGHTS = (10.0, 10.0, 5.0, 5.0)


def boxes(seed: int, images: int, number: int) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    low = torch.rand(images, number, 2, generator=rng) * 100 - 10
    return torch.cat([low, low + 2 + torch.rand(images, number, 2, generator=rng) * 60], dim=2)


def test_overlaps() -> None:
    first, second = boxes(0, 3, 9), boxes(1, 3, 5)
    expected = torch.stack([box_iou(a, b) for a, b in zip(first, second, strict=True)])
    torch.testing.assert_close(overlaps(first, second), expected)


def test_an_empty_box_overlaps_nothing() -> None:
    nothing = torch.zeros(1, 1, 4)
    assert overlaps(nothing, torch.cat([nothing, boxes(0, 1, 1)], dim=1)).tolist() == [[[0.0, 0.0]]]


def test_codes_are_those_of_torchvision() -> None:
    box, target = boxes(2, 1, 20)[0], boxes(3, 1, 20)[0]
    coder = BoxCoder(WEIGHTS)
    torch.testing.assert_close(encode(target, box, WEIGHTS), coder.encode_single(target, box))
    codes = torch.randn(20, 4) * 5
    torch.testing.assert_close(decode(codes, box, WEIGHTS), coder.decode_single(codes, box))


@given(seed=st.integers(0, 10_000))
def test_decoding_undoes_encoding(seed: int) -> None:
    box, target = boxes(seed, 2, 6), boxes(seed + 1, 2, 6)
    there = decode(encode(target, box, WEIGHTS), box, WEIGHTS)
    torch.testing.assert_close(there, target, rtol=1e-4, atol=1e-3)


def test_clipping_to_each_image() -> None:
    box, size = boxes(4, 2, 8) * 2, torch.tensor([[50, 80], [70, 30]])
    expected = [clip_boxes_to_image(b, tuple(s)) for b, s in zip(box, size.tolist(), strict=True)]
    torch.testing.assert_close(clip(box, size), torch.stack(expected))
    several = clip(box[:, :, None].expand(-1, -1, 3, -1), size)
    torch.testing.assert_close(several[:, :, 2], torch.stack(expected))


def test_what_is_no_box() -> None:
    box = torch.tensor([[1.0, 1, 2, 2], [1, 1, 1, 2], [1, 1, 2, 1.0005], [2, 2, 1, 1]])
    assert is_box(box).tolist() == [True, False, False, False]
