"""Matching is torchvision's; samples have the requested sizes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torchvision.models.detection._utils import Matcher
from torchvision.ops import box_iou

from lvdet.training.model import sampling
from lvdet.training.model.draws import uniform
from lvdet.training.model.sampling import match, sample, taken


def scene(seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Boxes, and objects of which the first few of each image are there."""
    rng = torch.Generator().manual_seed(seed)
    low = torch.randint(0, 40, (3, 60, 2), generator=rng).float()
    box = torch.cat([low, low + torch.randint(4, 30, (3, 60, 2), generator=rng)], dim=2)
    target = box[:, torch.randperm(60, generator=rng)[:6]] + torch.randint(
        0, 4, (3, 6, 4), generator=rng
    )
    there = torch.arange(6) < torch.tensor([[6], [3], [1]])
    return box, target, there


@pytest.mark.parametrize("best_of_object", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_matching(seed: int, best_of_object: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:  # an image at a time
        monkeypatch.setattr(sampling, "_PAIRS", 1)
    box, target, there = scene(seed)
    got = match(box, target, there, foreground=0.7, background=0.3, best_of_object=best_of_object)
    matcher = Matcher(0.7, 0.3, allow_low_quality_matches=best_of_object)
    for image in range(3):
        iou = box_iou(target[image, there[image]], box[image])
        expected = matcher(iou.clone())
        kind = torch.where(expected >= 0, 1, torch.where(expected == -1, 0, -1))
        assert got.kind[image].tolist() == kind.tolist()
        rows = expected >= 0
        best = iou.max(dim=0).values
        assert torch.equal(iou[got.object[image, rows], rows.nonzero().squeeze(1)], best[rows])


def test_an_image_without_objects_is_background() -> None:
    box, target, there = scene(0)
    got = match(box, target, there & False, foreground=0.7, background=0.3, best_of_object=True)
    assert (got.kind == 0).all()


@given(
    fronts=st.integers(0, 30),
    backs=st.integers(0, 30),
    neither=st.integers(0, 5),
    number=st.integers(1, 40),
    share=st.sampled_from([0.25, 0.5]),
    seed=st.integers(0, 99),
)
def test_samples(
    fronts: int, backs: int, neither: int, number: int, share: float, seed: int
) -> None:
    kind = torch.tensor([1] * fronts + [0] * backs + [-1] * (neither + 1))
    kind = kind[torch.randperm(len(kind), generator=torch.Generator().manual_seed(seed))][None]
    got = sample(kind, uniform(torch.tensor([seed]), kind.shape[1], 1), number, share)
    chosen = min(fronts, int(number * share))
    assert got.foreground.sum() == chosen
    assert got.taken.sum() == chosen + min(backs, number - chosen)
    places = got.place[got.taken]
    assert len(set(places.tolist())) == len(places)
    assert (kind[0, places] == got.foreground[got.taken].long()).all()
    assert not (got.foreground & ~got.taken).any()


def test_every_box_is_as_likely() -> None:
    kind = torch.tensor([1] * 10 + [0] * 30).expand(4000, -1)
    got = sample(kind, uniform(torch.arange(4000), 40, 1), 16, 0.25)
    count = torch.bincount(got.place[got.taken], minlength=40) / 4000
    assert (count[:10] - 0.4).abs().max() < 0.04
    assert (count[10:] - 0.4).abs().max() < 0.04


def test_draws_are_uniform_and_depend_on_seed_and_purpose_alone() -> None:
    drawn = uniform(torch.tensor([5, -6, 2**62]), 50_000, 1)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    assert (drawn.mean(dim=1) - 0.5).abs().max() < 0.01
    assert (drawn.var(dim=1) - 1 / 12).abs().max() < 0.002
    another = uniform(torch.tensor([5]), 50_000, 2)
    corr = torch.corrcoef(torch.cat([drawn, another]))
    assert (corr - torch.eye(4)).abs().max() < 0.02
    assert torch.equal(uniform(torch.tensor([-6]), 100, 1)[0], drawn[1, :100])


def test_taken() -> None:
    values = torch.arange(24.0).view(2, 4, 3)
    place = torch.tensor([[3, 0], [1, 1]])
    assert torch.equal(taken(values, place)[1, 0], values[1, 1])
    assert torch.equal(taken(values[:1], place)[1, 0], values[0, 1])
    assert torch.equal(taken(values[:, :, 0], place)[0], values[0, [3, 0], 0])
