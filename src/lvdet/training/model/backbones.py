"""Feature pyramids over torchvision's backbones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torchvision import models
from torchvision.models.detection.backbone_utils import BackboneWithFPN
from torchvision.models.regnet import BlockParams, RegNet
from torchvision.models.resnet import BasicBlock, Bottleneck
from torchvision.ops import FrozenBatchNorm2d

from lvdet.errors import InputError
from lvdet.training.model.bias import BiasedConv2d, fuse_activations, fuse_biases
from lvdet.training.weights.body_weights import BodyWeights, body_weights
from lvdet.training.weights.weight_file import read_weight_file

#: RegNetY-4GF as published; torchvision's own rule makes the second stage 256 wide.
_REGNET_Y_4GF = BlockParams(
    depths=[2, 6, 12, 2],
    widths=[128, 192, 512, 1088],
    group_widths=[64] * 4,
    bottleneck_multipliers=[1.0] * 4,
    strides=[2] * 4,
    se_ratio=0.25,
)
_RESNETS = ("resnet18", "resnet50", "resnet101", "resnext101_32x8d")
BACKBONES = (*_RESNETS, "regnet_y_4gf", "tiny")
NORMS = ("frozen", "batch", "group")

NormLayer = Callable[[int], nn.Module]


def build_backbone(
    name: str, norm: str, weights: str | BodyWeights, channels: int, stride_in: str = ""
) -> BackboneWithFPN:
    """A pyramid of five levels, from 1/4 to 1/64 of the image's size, with `channels` channels.

    weights: "none", "imagenet", a file of the backbone's weights in any known layout, or weights
        read from one. With weights, the stem and the first stage are not trained, as in Detectron2.
    stride_in: the convolution of a bottleneck that has the stride, "1x1" or "3x3"; "" is "3x3"
    """
    layer: NormLayer = {
        "frozen": FrozenBatchNorm2d,
        "batch": nn.BatchNorm2d,
        "group": partial(_group_norm),
    }[norm]
    body, stages, widths = _body(name, layer)
    if stride_in == "1x1":
        _stride_in_1x1(body, name)
    if weights != "none":
        if norm == "group":
            raise InputError(
                'model.norm is "group", but the weights come from a network with batch norm; '
                'set it to "frozen" or "batch", or model.weights to "none"'
            )
        _load(body, name, weights, norm)
        for stage in ("conv1", "bn1", "stem", stages[0]):
            if hasattr(body, stage):
                _freeze(body, stage)
    fold_frozen_norms(body)
    names = {stage: str(level) for level, stage in enumerate(stages)}
    backbone = BackboneWithFPN(body, names, widths, channels)
    fuse_biases(backbone.fpn)
    return backbone


def _body(name: str, layer: NormLayer) -> tuple[nn.Module, list[str], list[int]]:
    """The network without a classifier, the names of its four stages, and their widths."""
    if name in _RESNETS:
        body = getattr(models, name)(weights=None, norm_layer=layer)
        widest = body.fc.in_features
        return body, [f"layer{k}" for k in range(1, 5)], [widest >> k for k in (3, 2, 1, 0)]
    if name == "regnet_y_4gf":
        net = RegNet(_REGNET_Y_4GF, norm_layer=layer)
        blocks = nn.Sequential()
        blocks.add_module("stem", net.stem)
        for stage, part in net.trunk_output.named_children():
            blocks.add_module(stage, part)
        return blocks, [f"block{k}" for k in range(1, 5)], list(_REGNET_Y_4GF.widths)
    return _tiny(layer), [f"layer{k}" for k in range(1, 5)], [32, 64, 96, 128]


def _tiny(layer: NormLayer) -> nn.Module:
    """Two convolutions per stage: for tests and first tries."""
    body = nn.Sequential()
    body.add_module("conv1", _convolution(3, 16, 2, layer))
    before = 16
    for number, width in enumerate((32, 64, 96, 128), start=1):
        body.add_module(
            f"layer{number}",
            nn.Sequential(
                _convolution(before, width, 2, layer), _convolution(width, width, 1, layer)
            ),
        )
        before = width
    return body


def _convolution(before: int, width: int, stride: int, layer: NormLayer) -> nn.Module:
    conv = nn.Conv2d(before, width, 3, stride, 1, bias=False)
    nn.init.kaiming_normal_(conv.weight, mode="fan_out", nonlinearity="relu")
    return nn.Sequential(conv, layer(width), nn.ReLU(inplace=True))


def _group_norm(width: int) -> nn.Module:
    return nn.GroupNorm(min(32, width // 4), width)


def _stride_in_1x1(body: nn.Module, name: str) -> None:
    """Moves the strides of bottlenecks from their second convolution to their first."""
    bottlenecks = [module for module in body.modules() if isinstance(module, Bottleneck)]
    if not bottlenecks:
        raise InputError(f'model.stride_in is "1x1", but {name} has no bottlenecks; leave it out')
    for block in bottlenecks:
        block.conv1.stride, block.conv2.stride = block.conv2.stride, block.conv1.stride


def _load(body: nn.Module, name: str, weights: str | BodyWeights, norm: str) -> None:
    """Loads ImageNet weights, or weights from a file."""
    if weights == "imagenet":
        where, state = weights, _imagenet(name)
    else:
        if isinstance(weights, str):
            weights = body_weights(read_weight_file(Path(weights)))
        where, state = str(weights.path), dict(weights.tensors)
        if weights.folded and norm != "frozen":
            raise InputError(
                f"{where}: its normalisations have no statistics, which model.norm = {norm!r} "
                'needs; set it to "frozen"'
            )
    expected = body.state_dict()
    needed = [key for key in expected if not key.startswith("fc.")]
    missing = [key for key in needed if key not in state]
    missing = [key for key in missing if not key.endswith("num_batches_tracked")]
    if missing:
        raise InputError(
            f"{where}: lacks {missing[0]} and {len(missing) - 1} others, expected the state "
            f"of {_described(name)}"
        )
    for key in needed:
        if key in state and expected[key].shape != state[key].shape:
            raise InputError(
                f"{where}: {key} has shape {tuple(state[key].shape)}, expected "
                f"{tuple(expected[key].shape)}"
            )
    more = [key for key in state if key not in expected and not key.startswith("fc.")]
    if more:
        raise InputError(f"{where}: has {more[0]}, which {_described(name)} lacks")
    body.load_state_dict({k: v for k, v in state.items() if not k.startswith("fc.")}, strict=False)


def _imagenet(name: str) -> dict[str, Any]:
    if name not in _RESNETS:
        raise InputError(
            f'no ImageNet weights for the backbone {name}; set model.weights to "none" '
            "or to a .pth file of its weights"
        )
    weights = models.get_model_weights(name)["IMAGENET1K_V1"]
    try:
        return dict(weights.get_state_dict(progress=False, check_hash=True))
    except Exception as error:  # a download can fail in any way
        file = weights.url.rsplit("/", 1)[-1]
        folder = Path(torch.hub.get_dir()) / "checkpoints"
        raise InputError(
            f"the ImageNet weights of {name} cannot be downloaded ({type(error).__name__}: "
            f'{error}); put {file} into {folder}, or set model.weights to its path or to "none"'
        ) from None


def _described(name: str) -> str:
    if name == "regnet_y_4gf":
        return "torchvision's RegNet with the blocks of RegNetY-4GF"
    return f"torchvision's {name}"


def _freeze(body: nn.Module, stage: str) -> None:
    """Freezes the weights and the statistics of a stage."""
    getattr(body, stage).requires_grad_(False)
    freeze_norms(body, stage)


def freeze_norms(module: nn.Module, only: str = "") -> None:
    """Replaces the batch norms of the module, or of one child, with frozen ones that keep their
    statistics."""
    for name, child in list(module.named_children()):
        if only not in ("", name):
            continue
        if isinstance(child, nn.BatchNorm2d):
            frozen = FrozenBatchNorm2d(child.num_features, child.eps).to(child.weight.device)
            frozen.load_state_dict(child.state_dict())
            setattr(module, name, frozen)
        else:
            freeze_norms(child)


class FoldedConv2d(BiasedConv2d):
    """A convolution and the frozen batch norm that follows, as one layer.

    scale, shift: [out] of the batch norm. The weights stay unscaled, so they train as if the batch
    norm were separate; folding only saves passes over the features.
    """

    scale: Tensor
    shift: Tensor

    def __init__(self, conv: nn.Conv2d, norm: FrozenBatchNorm2d) -> None:
        super().__init__(conv)
        scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
        self.register_buffer("scale", scale)
        self.register_buffer("shift", norm.bias - norm.running_mean * scale)

    def forward(self, x: Tensor, other: Tensor | None = None) -> Tensor:
        """The normalised features, plus another map if given."""
        weight = self.weight * self.scale[:, None, None, None]
        return self.convolved(x, weight, self.shift, other)


class _FoldedBasicBlock(BasicBlock):  # type: ignore[misc]
    """A block of folded convolutions, the last of which adds the shortcut."""

    def forward(self, x: Tensor) -> Tensor:
        around = x if self.downsample is None else self.downsample(x)
        features: Tensor = self.conv2(self.conv1(x), around)
        return features


class _FoldedBottleneck(Bottleneck):  # type: ignore[misc]
    """A block of folded convolutions, the last of which adds the shortcut."""

    def forward(self, x: Tensor) -> Tensor:
        around = x if self.downsample is None else self.downsample(x)
        features: Tensor = self.conv3(self.conv2(self.conv1(x)), around)
        return features


def fold_frozen_norms(module: nn.Module) -> None:
    """Folds every frozen batch norm, and the ReLU after it, into the convolution before it."""
    before: tuple[str, nn.Module] | None = None
    for name, child in list(module.named_children()):
        if isinstance(child, FrozenBatchNorm2d) and before and isinstance(before[1], nn.Conv2d):
            setattr(module, before[0], FoldedConv2d(before[1], child))
            setattr(module, name, nn.Identity())
        else:
            fold_frozen_norms(child)
        before = name, child
    if isinstance(module, nn.Sequential | models.ResNet):
        fuse_activations(module)
    if isinstance(module, BasicBlock | Bottleneck):
        own = [part for part in module.children() if isinstance(part, nn.Conv2d)]
        if all(isinstance(conv, FoldedConv2d) for conv in own):
            for conv in own:
                conv.rectified = True  # type: ignore[assignment]
            basic = isinstance(module, BasicBlock)
            module.__class__ = _FoldedBasicBlock if basic else _FoldedBottleneck
