"""Sigmoid binary cross-entropy by hand, and objectness."""

from __future__ import annotations

import math

import pytest
import torch

from lvdet.training.losses.objectness import objectness_loss
from lvdet.training.losses.sigmoid import binary_cross_entropy, log_odds, sigmoid_loss

#: Scores 1/4, 1/2 and 4/5.
LOGITS = torch.tensor([1 / 3, 1.0, 4.0], dtype=torch.float64).log()


def test_by_hand() -> None:
    """A sample of class 2, background, and a padding row."""
    loss = sigmoid_loss(LOGITS.repeat(3, 1), torch.tensor([2, 3, -1]), torch.tensor(2.0))
    product = (3 / 4 * 1 / 2 * 4 / 5) * (3 / 4 * 1 / 2 * 1 / 5)
    assert loss.item() == pytest.approx(-math.log(product) / 2, rel=1e-14)


def test_objectness_by_hand() -> None:
    """Any class is an object; background is none."""
    loss = objectness_loss(LOGITS, torch.tensor([0, 6, 7]), 7, torch.tensor(3.0))
    assert loss.item() == pytest.approx(-math.log(1 / 4 * 1 / 2 * 1 / 5) / 3, rel=1e-14)
    loss = objectness_loss(LOGITS, torch.tensor([-1, 6, -1]), 7, torch.tensor(3.0))
    assert loss.item() == pytest.approx(math.log(2) / 3, rel=1e-14)


@pytest.mark.parametrize("x", [-700.0, -40.0, -21.0, 0.0, 21.0, 40.0, 700.0])
def test_far_logits_keep_their_digits(x: float) -> None:
    """Of a class that is as sure as 1e-304, the loss is neither 0 nor infinite."""
    pair = binary_cross_entropy(
        torch.tensor([[x, x]], dtype=torch.float64), torch.tensor([[True, False]])
    )
    small = math.log1p(math.exp(-abs(x)))
    expected = (small, small + x) if x > 0 else (small - x, small)
    assert pair[0].tolist() == pytest.approx(expected, rel=1e-13, abs=0)


@pytest.mark.parametrize("prior", [0.5, 0.01, 0.001])
def test_bias_gives_the_prior(prior: float) -> None:
    assert 1 / (1 + math.exp(-log_odds(prior))) == pytest.approx(prior, rel=1e-12)
