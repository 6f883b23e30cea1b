"""Runs of pasted masks are those of the whole image by `grid_sample` and pycocotools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from inference.brute_force import assert_mask, pasted
from lvdet.inference import paste as module
from lvdet.inference.paste import paste, runs_of

torch.set_num_threads(1)


def random_masks(seed: int, count: int, side: int = 28) -> tuple[torch.Tensor, ...]:
    """Maps, boxes and sizes: some boxes reach out of their images, some are tiny, some whole."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 60, (count, 2))
    limit = size[:, ::-1]
    corner = rng.uniform(-0.1, 1, (count, 2)) * limit
    extent = rng.uniform(0, 1.1, (count, 2)) ** 2 * limit + 1e-3
    box = np.concatenate([corner, corner + extent], axis=1)
    whole = rng.random(count) < 0.2
    box[whole] = np.concatenate([np.zeros_like(limit), limit], axis=1)[whole]
    at_half = rng.random(count) < 0.3
    box[at_half] = np.round(box[at_half] * 2) / 2 + [0, 0, 0.5, 0.5]
    kind = rng.integers(0, 4, count)
    chance = rng.random((count, side, side))
    chance[kind == 1] = 1.0
    chance[kind == 2] = 0.0
    chance[kind == 3] = chance[kind == 3] > 0.4
    return torch.tensor(chance).float(), torch.tensor(box), torch.tensor(size)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 12), st.sampled_from([1, 500, 1 << 24]))
def test_as_in_whole_images(seed: int, count: int, window_pixels: int) -> None:
    chance, box, size = random_masks(seed, count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW_PIXELS", window_pixels)
        masks = paste(chance, box, size)
    assert len(masks) == count
    for row, (height, width) in enumerate(size.tolist()):
        whole = pasted(chance[row], box[row], height, width)
        assert (masks.height[row], masks.width[row]) == (height, width)
        assert_mask({"size": [height, width], "counts": masks.row(row).decode()}, whole)


def test_full_and_empty() -> None:
    """Runs go on from column to column, and begin with zeros."""
    chance = torch.stack([torch.ones(28, 28), torch.zeros(28, 28), torch.ones(28, 28)])
    box = torch.tensor([[0.0, 0, 6, 4], [0, 0, 6, 4], [2, 0, 4, 4]], dtype=torch.float64)
    counts, offsets = runs_of(chance, box, torch.tensor([[4, 6]] * 3))
    assert counts.dtype == np.uint32
    parts = [part.tolist() for part in np.split(counts, offsets[1:-1])]
    assert parts == [[0, 24], [24], [8, 8, 8]]


def test_exactly_half_belongs_to_the_object() -> None:
    """At the edge of a box whose map is 1 the value is 0.5."""
    box = torch.tensor([[1.5, 1.5, 3.5, 3.5]], dtype=torch.float64)
    text = paste(torch.ones(1, 28, 28), box, torch.tensor([[6, 6]])).row(0).decode()
    assert_mask({"size": [6, 6], "counts": text}, pasted(torch.ones(28, 28), box[0], 6, 6))
    counts, _ = runs_of(torch.ones(1, 28, 28), box, torch.tensor([[6, 6]]))
    # The middles of pixels 1 and 3 lie on the box, where only the corner is less: a quarter.
    assert int(counts[1::2].sum()) == 5


def test_a_box_without_an_area_is_empty() -> None:
    box = torch.tensor([[2.0, 2, 2, 5]], dtype=torch.float64)
    counts, _ = runs_of(torch.ones(1, 28, 28), box, torch.tensor([[7, 9]]))
    assert counts.tolist() == [63]


class Operations(TorchDispatchMode):
    """Keeps the names of what is called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_no_product_of_matrices() -> None:
    """Which training sets to TF32 for the whole process: of ten bits, pixels at 0.5 flip."""
    chance, box, size = random_masks(0, 12)
    with Operations() as seen:
        runs_of(chance, box, size)
    assert len(seen.names) > 5
    assert not seen.names & {"mm", "bmm", "addmm", "baddbmm", "matmul", "linear"}


def test_a_map_of_one_value_stays_as_it_is() -> None:
    """Between equal values there is nothing else: 0.5 is 0.5 wherever pixels are."""
    chance = torch.full((40, 28, 28), 0.5)
    corner = torch.rand(40, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    box = torch.cat([corner - 5, corner * 7 + 40], dim=1)
    counts, _ = runs_of(chance, box, torch.tensor([[30, 31]] * 40))
    assert counts.tolist() == [0, 930] * 40
