"""Convolutions that add their bias, another map and a ReLU in one pass over the features.

On a GPU each of them is a pass of its own otherwise, and takes as long as a convolution of few
channels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class BiasedConv2d(nn.Conv2d):
    """A convolution, followed by a ReLU if `rectified`."""

    bias: Tensor
    rectified: bool

    def __init__(self, conv: nn.Conv2d, *, rectified: bool = False) -> None:
        super().__init__(
            conv.in_channels,
            conv.out_channels,
            conv.kernel_size,  # type: ignore[arg-type]
            conv.stride,  # type: ignore[arg-type]
            conv.padding,  # type: ignore[arg-type]
            conv.dilation,  # type: ignore[arg-type]
            conv.groups,
            bias=False,
            device="meta",
        )
        self.weight = conv.weight
        if conv.bias is not None:
            self.bias = conv.bias
        self.rectified = rectified

    def forward(self, x: Tensor) -> Tensor:
        """The features."""
        return self.convolved(x, self.weight, self.bias)

    def convolved(
        self, x: Tensor, weight: Tensor, bias: Tensor, other: Tensor | None = None
    ) -> Tensor:
        """With this weight and bias, and another map added before the ReLU."""
        own = None if x.is_cuda else bias
        out: Tensor = self._conv_forward(x, weight, own)
        if x.is_cuda:
            return add_bias(out, bias, other, rectified=self.rectified)
        if other is not None:
            out += other
        return out.relu_() if self.rectified else out


def add_bias(
    x: Tensor, bias: Tensor, other: Tensor | None = None, *, rectified: bool = False
) -> Tensor:
    """[N, C, H, W] x + bias + other, with a ReLU if `rectified`; overwrites x."""
    if x.is_cuda and x.numel() and x.is_contiguous(memory_format=torch.channels_last):
        from lvdet.training.model.bias_kernels import add_bias_on_gpu

        return add_bias_on_gpu(x, bias, other, rectified)
    x += bias[:, None, None]
    if other is not None:
        x += other
    return x.relu_() if rectified else x


def fuse_biases(module: nn.Module) -> None:
    """Replaces every convolution with a bias, together with a ReLU that follows it."""
    children = list(module.named_children())
    for name, child in children:
        if type(child) is nn.Conv2d and child.bias is not None:
            setattr(module, name, BiasedConv2d(child))
        else:
            fuse_biases(child)
    if isinstance(module, nn.Sequential):
        fuse_activations(module)


def fuse_activations(module: nn.Module) -> None:
    """Merges ReLUs into the convolutions just before them, for adjacent children."""
    before: nn.Module | None = None
    for name, child in list(module.named_children()):
        if isinstance(child, nn.ReLU) and isinstance(before, BiasedConv2d):
            before.rectified = True
            setattr(module, name, nn.Identity())
        if not isinstance(child, nn.Identity):
            before = child


def rectified_transposed(conv: nn.ConvTranspose2d, x: Tensor) -> Tensor:
    """A transposed convolution and a ReLU."""
    if not x.is_cuda:
        return conv(x).relu_()  # type: ignore[no-any-return]
    assert conv.bias is not None
    out = functional.conv_transpose2d(x, conv.weight, None, conv.stride)
    return add_bias(out, conv.bias, rectified=True)
