"""Convolutions that add their bias and what follows themselves give what they gave."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from lvdet.training.model.bias import BiasedConv2d, add_bias, fuse_biases, rectified_transposed


def made() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(inplace=True)),
        nn.Sequential(nn.Conv2d(4, 4, 3, 2), nn.BatchNorm2d(4), nn.ReLU()),
        nn.Conv2d(4, 5, 1, bias=False),
        nn.Conv2d(5, 2, 1),
    ).double()


def test_fused_modules_give_the_same() -> None:
    plain, fused = made(), made()
    fuse_biases(fused)
    kinds = [type(module) for module in fused.modules() if isinstance(module, nn.Conv2d)]
    assert kinds == [BiasedConv2d, BiasedConv2d, nn.Conv2d, BiasedConv2d]
    assert sum(isinstance(module, nn.ReLU) for module in fused.modules()) == 1  # after the norm
    assert fused.state_dict().keys() == plain.state_dict().keys()
    x = torch.randn(2, 3, 9, 8, dtype=torch.float64)
    outs = [net(x) for net in (plain, fused)]
    torch.testing.assert_close(*outs)
    slopes = [
        torch.autograd.grad((out**2).sum(), list(net.parameters()))
        for out, net in zip(outs, (plain, fused), strict=True)
    ]
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other)


def test_a_sum() -> None:
    x, other, bias = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 4, 5), torch.randn(3)
    expected = x + bias[:, None, None] + other
    torch.testing.assert_close(add_bias(x.clone(), bias, other), expected)
    torch.testing.assert_close(add_bias(x.clone(), bias, other, rectified=True), expected.relu())


def test_transposed() -> None:
    conv, x = nn.ConvTranspose2d(3, 4, 2, 2), torch.randn(2, 3, 5, 5)
    assert conv.bias is not None
    expected = functional.conv_transpose2d(x, conv.weight, conv.bias, 2).relu()
    torch.testing.assert_close(rectified_transposed(conv, x), expected)
