"""The names that projects give the layers of a backbone, as torchvision's.

| layout      | the first block's first convolution  | its normalisation                        |
|-------------|--------------------------------------|------------------------------------------|
| torchvision | layer1.0.conv1.weight                | layer1.0.bn1.weight, .running_mean, …    |
| Detectron2  | res2.0.conv1.weight                  | res2.0.conv1.norm.weight, …              |
| Caffe2      | res2_0_branch2a_w                    | res2_0_branch2a_bn_s, _bn_b, _bn_rm, …   |
| pycls       | s1.b1.f.a.weight                     | s1.b1.f.a_bn.weight, …                   |

Names may have a prefix, such as Detectron2's "backbone.bottom_up.".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

#: Layouts by the name of the convolution that every network of them has.
_MARKS = (
    ("caffe2", "res2_0_branch2a_w"),
    ("detectron2", "res2.0.conv1.weight"),
    ("pycls", "s1.b1.f.a.weight"),
    ("torchvision", "layer1.0.conv1.weight"),
    ("torchvision", "trunk_output.block1.block1-0.f.a.0.weight"),
    ("torchvision", "block1.block1-0.f.a.0.weight"),
    ("torchvision", "layer1.0.0.weight"),  # lvdet's tiny backbone
)
_C2_BRANCHES = {"1": "shortcut", "2a": "conv1", "2b": "conv2", "2c": "conv3"}
_C2_NORMS = {
    "s": "weight",
    "gamma": "weight",
    "b": "bias",
    "beta": "bias",
    "rm": "running_mean",
    "running_mean": "running_mean",
    "riv": "running_var",
    "running_var": "running_var",
}
_C2_NAME = re.compile(
    r"(?:(?P<stem>(?:res_)?conv1)|res(?P<stage>[2-5])_(?P<block>\d+)_branch(?P<branch>1|2[abc]))"
    r"_(?:(?P<weight>w)|bn_(?P<norm>s|b|gamma|beta|rm|riv|running_mean|running_var))"
)
_D2_NAME = re.compile(r"res([2-5])\.(\d+)\.(?:(shortcut)|conv([123]))\.(norm\.)?(\w+)")
_PYCLS_BLOCK = re.compile(r"s([1-4])\.b(\d+)\.(.+)")
_PYCLS_LAYERS = {
    "proj": "proj.0",
    "bn": "proj.1",
    "f.a": "f.a.0",
    "f.a_bn": "f.a.1",
    "f.b": "f.b.0",
    "f.b_bn": "f.b.1",
    "f.se.f_ex.0": "f.se.fc1",
    "f.se.f_ex.2": "f.se.fc2",
    "f.c": "f.c.0",
    "f.c_bn": "f.c.1",
    "stem.conv": "stem.0",
    "stem.bn": "stem.1",
}


def layout_of(tensors: Mapping[str, Tensor]) -> tuple[str, str] | None:
    """The layout of a backbone in named tensors, and the prefix of its names."""
    for layout, mark in _MARKS:
        for name in tensors:
            if name == mark or name.endswith(f".{mark}"):
                return layout, name[: -len(mark)]
    return None


def torchvision_names(tensors: Mapping[str, Tensor], layout: str, prefix: str) -> dict[str, Tensor]:
    """A backbone's tensors under torchvision's names; other tensors are left out."""
    renamed = {}
    for name, tensor in tensors.items():
        if name.startswith(prefix) and not name.endswith("num_batches_tracked"):
            new = _RENAMED[layout](name.removeprefix(prefix))
            if new is not None:
                renamed[new] = tensor
    return renamed


def _of_torchvision(name: str) -> str | None:
    name = name.removeprefix("trunk_output.")  # of a RegNet as torchvision builds it
    return name if re.match(r"(conv1|bn1|stem|layer\d|block\d)\.", name) else None


def _of_caffe2(name: str) -> str | None:
    match = _C2_NAME.fullmatch(name)
    if match is None:
        return None
    layer = "stem.conv1"
    if not match["stem"]:
        layer = f"res{match['stage']}.{match['block']}.{_C2_BRANCHES[match['branch']]}"
    kind = "weight" if match["weight"] else f"norm.{_C2_NORMS[match['norm']]}"
    return _of_detectron2(f"{layer}.{kind}")


def _of_detectron2(name: str) -> str | None:
    if name.startswith("stem.conv1."):
        layer = "bn1" if name.startswith("stem.conv1.norm.") else "conv1"
        return f"{layer}.{name.rpartition('.')[2]}"
    match = _D2_NAME.fullmatch(name)
    if match is None:
        return None
    stage, block, shortcut, number, norm, kind = match.groups()
    layer = f"{'bn' if norm else 'conv'}{number}"
    if shortcut:
        layer = f"downsample.{1 if norm else 0}"
    return f"layer{int(stage) - 1}.{block}.{layer}.{kind}"


def _of_pycls(name: str) -> str | None:
    layer, _, kind = name.rpartition(".")
    match = _PYCLS_BLOCK.fullmatch(layer)
    if match is None:
        return f"{_PYCLS_LAYERS[layer]}.{kind}" if layer in _PYCLS_LAYERS else None
    stage, number, part = match.groups()
    if part not in _PYCLS_LAYERS:
        return None
    return f"block{stage}.block{stage}-{int(number) - 1}.{_PYCLS_LAYERS[part]}.{kind}"


_RENAMED = {
    "torchvision": _of_torchvision,
    "caffe2": _of_caffe2,
    "detectron2": _of_detectron2,
    "pycls": _of_pycls,
}
