"""Converts a backbone's weights to lvdet's: torchvision's names, and the same colour order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from lvdet.errors import InputError
from lvdet.training.weights.layouts import layout_of, torchvision_names
from lvdet.training.weights.weight_file import WeightFile

#: Means and deviations of ImageNet's colours, of values from 0 to 255.
MEAN, DEVIATION = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
#: What frozen normalisations add to variances.
_EPSILON = 1e-5
#: torchvision's detectors that were trained with normalisations that add nothing: how the SHA-256
#: of their files begins, which is a part of their names too.
_WITHOUT_EPSILON = ("258fb6c6", "bf2d0c1e")


class Convention(NamedTuple):
    """What a network takes and how it halves, which no tensor says.

    blue_first: channels are blue, green, red
    deviations: colours are divided by their deviations, after the mean is subtracted
    stride_in:  the convolution of a bottleneck with the stride, "1x1" or "3x3"
    """

    blue_first: bool
    deviations: bool
    stride_in: str


#: By name, as `--convention` takes them.
CONVENTIONS = {
    "msra": Convention(True, False, "1x1"),
    "caffe2": Convention(True, True, "3x3"),
    "torchvision": Convention(False, True, "3x3"),
}


@dataclass(frozen=True)
class BodyWeights:
    """A backbone's tensors under torchvision's names, for images as lvdet normalises them.

    backbone:  which of lvdet's it is, "" for none of them
    stride_in: the convolution of a bottleneck with the stride; "" if there is no such choice
    folded:    normalisations are scales and shifts, without statistics
    """

    path: Path
    tensors: Mapping[str, Tensor]
    backbone: str
    stride_in: str
    folded: bool


def body_weights(file: WeightFile, convention: str | None = None) -> BodyWeights:
    """The backbone in a file of any layout, alone or as part of a detector.

    convention: a name of `CONVENTIONS`, where the one that the layout usually has is wrong
    """
    if convention is not None and convention not in CONVENTIONS:
        raise InputError(f"convention is {convention!r}, expected one of {', '.join(CONVENTIONS)}")
    found = layout_of(file.tensors)
    if found is None:
        raise InputError(
            f"{file.path}: not the weights of a backbone: its tensors are not named as by "
            "torchvision, Detectron2, Caffe2 or pycls"
        )
    layout, prefix = found
    tensors = torchvision_names(file.tensors, layout, prefix)
    tensors, folded = _with_statistics(tensors)
    if prefix == "backbone.body." and file.begins_digest(*_WITHOUT_EPSILON):
        tensors = {
            name: t - _EPSILON if name.endswith("running_var") else t for name, t in tensors.items()
        }
    backbone = _recognised(tensors)
    meant = CONVENTIONS[convention] if convention else _usual(layout, backbone, file)
    stem = "conv1.weight" if "conv1.weight" in tensors else "stem.0.weight"
    if stem in tensors:
        tensors[stem] = _for_our_colours(tensors[stem], meant, file.path)
    bottlenecks = "layer1.0.conv3.weight" in tensors
    return BodyWeights(file.path, tensors, backbone, meant.stride_in if bottlenecks else "", folded)


def _usual(layout: str, backbone: str, file: WeightFile) -> Convention:
    """The convention of a file: its own mean and deviations take precedence over the usual ones of
    its layout."""
    grouped = backbone.startswith(("resnext", "regnet"))
    if layout == "torchvision" or file.author == "torchvision":
        usual = CONVENTIONS["torchvision"]
    elif layout == "pycls" or grouped:
        usual = CONVENTIONS["caffe2"]
    else:
        usual = CONVENTIONS["msra"]
    if "pixel_mean" in file.tensors and "pixel_std" in file.tensors:
        mean = file.tensors["pixel_mean"].flatten().tolist()
        deviation = file.tensors["pixel_std"].flatten().tolist()
        for blue_first in (True, False):
            step = -1 if blue_first else 1
            for deviations, expected in ((False, (1.0, 1.0, 1.0)), (True, DEVIATION[::step])):
                if _near(mean, MEAN[::step]) and _near(deviation, expected):
                    return usual._replace(blue_first=blue_first, deviations=deviations)
        raise InputError(
            f"{file.path}: pixel_mean is {mean} and pixel_std {deviation}, expected ImageNet's"
        )
    return usual


def _near(some: list[float], other: tuple[float, ...]) -> bool:
    return len(some) == 3 and all(abs(a - b) < 0.01 for a, b in zip(some, other, strict=True))


def _for_our_colours(stem: Tensor, meant: Convention, path: Path) -> Tensor:
    """The filters of the first convolution for red, green and blue over their deviations.

    Padding is 0 after the mean is subtracted in both, so borders are the same too.
    """
    if stem.dim() != 4 or stem.shape[1] != 3:
        raise InputError(f"{path}: the first filters have shape {list(stem.shape)}")
    if meant.blue_first:
        stem = stem.flip(1)
    if not meant.deviations:
        stem = stem * torch.tensor(DEVIATION, dtype=stem.dtype)[:, None, None]
    return stem.contiguous()


def _with_statistics(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], bool]:
    """Means and variances that leave scales and shifts as they are, if there are none."""
    added: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        layer, _, kind = name.rpartition(".")
        # The linear layers of a RegNet have biases, but of a normalisation the weight is a vector.
        if kind == "weight" and tensor.dim() == 1 and f"{layer}.running_var" not in tensors:
            added[f"{layer}.running_mean"] = torch.zeros_like(tensor)
            added[f"{layer}.running_var"] = torch.full_like(tensor, 1 - _EPSILON)
    return {**tensors, **added}, bool(added)


def _recognised(tensors: Mapping[str, Tensor]) -> str:
    """The lvdet backbone that has these tensors, judged by its blocks."""
    if "block1.block1-0.f.a.0.weight" in tensors:
        return "regnet_y_4gf" if _blocks(tensors, "block") == [2, 6, 12, 2] else ""
    blocks = _blocks(tensors, "layer")
    if "layer1.0.conv3.weight" not in tensors:
        return "resnet18" if blocks == [2, 2, 2, 2] else ""
    second = tensors.get("layer1.0.conv2.weight")
    shape = () if second is None else tuple(second.shape[:2])
    known: dict[tuple[str, tuple[int, ...]], str] = {
        ("[3, 4, 6, 3]", (64, 64)): "resnet50",
        ("[3, 4, 23, 3]", (64, 64)): "resnet101",
        ("[3, 4, 23, 3]", (256, 8)): "resnext101_32x8d",
    }
    return known.get((str(blocks), shape), "")


def _blocks(tensors: Mapping[str, Tensor], stage: str) -> list[int]:
    """The number of blocks in each stage."""
    names = re.compile(rf"{stage}([1-4])\.(?:{stage}[1-4]-)?(\d+)\.")
    found = {match.groups() for match in map(names.match, tensors) if match}
    return [sum(number == str(k) for number, _ in found) for k in range(1, 5)]
