"""The last layer, plain and normalised."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from lvdet.training.model.linear import Linear, NormalizedLinear
from oracles import loss_references as reference

torch.set_num_threads(1)


def forward_normalized(linear: nn.Linear, x: Tensor, temperature: float) -> Tensor:
    """The paper's listing."""
    x_normed = functional.normalize(x, p=2, dim=1)
    w_normed = functional.normalize(linear.weight, p=2, dim=1)
    return functional.linear(temperature * x_normed, w_normed, linear.bias)


@pytest.mark.parametrize("temperature", [20.0, 50.0, 0.3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normalised_layer_is_the_papers_to_the_last_bit(
    temperature: float, dtype: torch.dtype
) -> None:
    torch.manual_seed(3)
    layer = NormalizedLinear(64, 30, temperature).to(dtype)
    plain = nn.Linear(64, 30).to(dtype)
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(50, 64, dtype=dtype)
    x[7] = 0
    assert torch.equal(layer(x), forward_normalized(plain, x, temperature))


@pytest.mark.parametrize("temperature", [None, 20.0])
def test_layers_are_their_formulas(temperature: float | None) -> None:
    torch.manual_seed(4)
    layer = Linear(6, 5) if temperature is None else NormalizedLinear(6, 5, temperature)
    layer = layer.double()
    x = torch.randn(9, 6, dtype=torch.float64)
    expected = reference.linear(
        x.numpy(), layer.weight.detach().numpy(), layer.bias.detach().numpy(), temperature
    )
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-12, atol=1e-12)


def test_normalised_logits_know_no_lengths() -> None:
    torch.manual_seed(5)
    layer = NormalizedLinear(8, 5, 20.0).double()
    x = torch.randn(9, 8, dtype=torch.float64)
    before = layer(x)
    with torch.no_grad():
        layer.weight.mul_(torch.rand(5, 1).double() + 0.1)
    torch.testing.assert_close(layer(x * 7), before, rtol=1e-12, atol=1e-12)
    assert (before - layer.bias).abs().max() <= 20


@pytest.mark.parametrize("layer", [Linear(32, 9), NormalizedLinear(32, 9, 20.0)])
def test_logits_are_float32_under_autocast(layer: Linear) -> None:
    x = torch.randn(4, 32).bfloat16()
    plain = layer(x.float())
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(x), plain)
    assert plain.dtype == torch.float32
