"""Softmax cross-entropy by hand."""

from __future__ import annotations

import math

import pytest
import torch

from lvdet.training.losses.softmax import Softmax, softmax_loss


def test_by_hand() -> None:
    """Odds 1 : 2 : 5, the last being background; the third row is padding."""
    logits = torch.tensor([[1.0, 2.0, 5.0]] * 3, dtype=torch.float64).log()
    loss = softmax_loss(logits, torch.tensor([1, 2, -1]), torch.tensor(2.0))
    assert loss.item() == pytest.approx(-(math.log(2 / 8) + math.log(5 / 8)) / 2, rel=1e-14)


def test_scores_leave_background_out() -> None:
    scores = Softmax(2).scores(torch.tensor([[1.0, 2.0, 5.0]], dtype=torch.float64).log())
    torch.testing.assert_close(scores, torch.tensor([[1 / 8, 2 / 8]], dtype=torch.float64))


def test_slope_is_the_score_less_the_target() -> None:
    torch.manual_seed(0)
    logits = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    label = torch.tensor([0, 3, -1, 2, 3])
    softmax_loss(logits, label, torch.tensor(4.0)).backward()
    expected = torch.softmax(logits.detach(), 1)
    expected[torch.arange(5), label.clamp(min=0)] -= 1
    expected[2] = 0
    torch.testing.assert_close(logits.grad, expected / 4, rtol=1e-12, atol=1e-15)
