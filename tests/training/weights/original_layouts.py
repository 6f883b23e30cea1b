"""Backbones and state dicts as Detectron2 and pycls define them, written from their definitions."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

State = dict[str, Tensor]
EPSILON = 1e-5


def norm_state(name: str, width: int, statistics: bool) -> State:
    """A frozen normalisation; without statistics it is a scale and a shift."""
    state = {f"{name}.weight": 0.5 + torch.rand(width), f"{name}.bias": torch.randn(width) * 0.1}
    if statistics:
        state[f"{name}.running_mean"] = torch.randn(width) * 0.1
        state[f"{name}.running_var"] = 0.5 + torch.rand(width)
    return state


def filters(out: int, before: int, side: int) -> Tensor:
    return torch.randn(out, before, side, side) * (2.0 / (before * side**2)) ** 0.5


def resnet_state(
    blocks: list[int],
    *,
    bottleneck: bool,
    groups: int = 1,
    width: int = 64,
    statistics: bool = True,
) -> State:
    """Names and shapes of Detectron2's ResNet."""
    state = {
        "stem.conv1.weight": filters(64, 3, 7),
        **norm_state("stem.conv1.norm", 64, statistics),
    }
    before = 64
    for stage, count in enumerate(blocks):
        inner, out = width << stage, (256 if bottleneck else 64) << stage
        for block in range(count):
            at = f"res{stage + 2}.{block}"
            if bottleneck:
                shapes = [(inner, before, 1), (inner, inner // groups, 3), (out, inner, 1)]
            else:
                shapes = [(out, before, 3), (out, out, 3)]
            for number, shape in enumerate(shapes, 1):
                state[f"{at}.conv{number}.weight"] = filters(*shape)
                state |= norm_state(f"{at}.conv{number}.norm", shape[0], statistics)
            if before != out:
                state[f"{at}.shortcut.weight"] = filters(out, before, 1)
                state |= norm_state(f"{at}.shortcut.norm", out, statistics)
            before = out
    return state


def normalised(state: State, name: str, x: Tensor) -> Tensor:
    scale, shift = state[f"{name}.weight"], state[f"{name}.bias"]
    if f"{name}.running_var" in state:
        scale = scale / (state[f"{name}.running_var"] + EPSILON).sqrt()
        shift = shift - state[f"{name}.running_mean"] * scale
    return x * scale[:, None, None] + shift[:, None, None]


def run_resnet(state: State, x: Tensor, *, stride_in_1x1: bool, groups: int = 1) -> list[Tensor]:
    """res2 to res5 of normalised images."""

    def layer(name: str, x: Tensor, stride: int, padding: int, groups: int = 1) -> Tensor:
        weight = state[f"{name}.weight"]
        x = functional.conv2d(x, weight, None, stride, padding, 1, groups)
        return normalised(state, f"{name}.norm", x)

    x = layer("stem.conv1", x, 2, 3).relu()
    x = functional.max_pool2d(x, 3, 2, 1)
    outcomes = []
    for stage in range(2, 6):
        block = 0
        while f"res{stage}.{block}.conv1.weight" in state:
            at = f"res{stage}.{block}"
            stride = 2 if block == 0 and stage > 2 else 1
            if f"{at}.conv3.weight" in state:
                first, second = (stride, 1) if stride_in_1x1 else (1, stride)
                y = layer(f"{at}.conv1", x, first, 0).relu()
                y = layer(f"{at}.conv2", y, second, 1, groups).relu()
                y = layer(f"{at}.conv3", y, 1, 0)
            else:
                y = layer(f"{at}.conv1", x, stride, 1).relu()
                y = layer(f"{at}.conv2", y, 1, 1)
            short = layer(f"{at}.shortcut", x, stride, 0) if f"{at}.shortcut.weight" in state else x
            x = (y + short).relu()
            block += 1
        outcomes.append(x)
    return outcomes


def caffe2_names(state: State) -> dict[str, Tensor]:
    """As the files of Caffe2 name them; normalisations without statistics."""
    branches = {"shortcut": "1", "conv1": "2a", "conv2": "2b", "conv3": "2c"}
    renamed = {}
    for name, tensor in state.items():
        parts = name.split(".")
        kind = "w"
        if "norm" in parts:
            kind = {"weight": "bn_s", "bias": "bn_b"}[parts[-1]]
        if parts[0] == "stem":
            layer = "conv1" if kind == "w" else "res_conv1"
        else:
            layer = f"{parts[0]}_{parts[1]}_branch{branches[parts[2]]}"
        renamed[f"{layer}_{kind}"] = tensor
    return renamed


#: RegNetY-4GF: depths and widths of its stages, and how wide a group is.
DEPTHS, WIDTHS, GROUP = (2, 6, 12, 2), (128, 192, 512, 1088), 64


def regnet_state() -> State:
    """Names and shapes of pycls's RegNetY-4GF."""
    state = {"stem.conv.weight": filters(32, 3, 3), **norm_state("stem.bn", 32, True)}
    before = 32
    for stage, (depth, width) in enumerate(zip(DEPTHS, WIDTHS, strict=True), 1):
        for block in range(1, depth + 1):
            at, squeezed = f"s{stage}.b{block}", round(before / 4)
            if block == 1:
                state[f"{at}.proj.weight"] = filters(width, before, 1)
                state |= norm_state(f"{at}.bn", width, True)
            shapes = {"a": (width, before, 1), "b": (width, GROUP, 3), "c": (width, width, 1)}
            for letter, shape in shapes.items():
                state[f"{at}.f.{letter}.weight"] = filters(*shape)
                state |= norm_state(f"{at}.f.{letter}_bn", width, True)
            state[f"{at}.f.c_bn.weight"] *= 0.2  # so that rounding stays small through 22 blocks
            for number, (out, inner) in ((0, (squeezed, width)), (2, (width, squeezed))):
                state[f"{at}.f.se.f_ex.{number}.weight"] = filters(out, inner, 1)
                state[f"{at}.f.se.f_ex.{number}.bias"] = torch.randn(out) * 0.1
            before = width
    state["head.fc.weight"], state["head.fc.bias"] = torch.zeros(10, 1088), torch.zeros(10)
    return state


def run_regnet(state: State, x: Tensor) -> list[Tensor]:
    """The four stages of normalised images: x + f(x), f of 1x1, 3x3, squeeze and 1x1."""

    def layer(
        name: str, norm: str, x: Tensor, stride: int = 1, padding: int = 0, groups: int = 1
    ) -> Tensor:
        weight = state[f"{name}.weight"]
        x = functional.conv2d(x, weight, None, stride, padding, 1, groups)
        return normalised(state, norm, x)

    x = layer("stem.conv", "stem.bn", x, 2, 1).relu()
    outcomes = []
    for stage, (depth, width) in enumerate(zip(DEPTHS, WIDTHS, strict=True), 1):
        for block in range(1, depth + 1):
            at, stride = f"s{stage}.b{block}", 2 if block == 1 else 1
            short = layer(f"{at}.proj", f"{at}.bn", x, stride) if block == 1 else x
            y = layer(f"{at}.f.a", f"{at}.f.a_bn", x).relu()
            y = layer(f"{at}.f.b", f"{at}.f.b_bn", y, stride, 1, width // GROUP).relu()
            part = y.mean(dim=(2, 3), keepdim=True)
            for number, act in ((0, torch.relu), (2, torch.sigmoid)):
                name = f"{at}.f.se.f_ex.{number}"
                part = act(functional.conv2d(part, state[f"{name}.weight"], state[f"{name}.bias"]))
            x = (layer(f"{at}.f.c", f"{at}.f.c_bn", y * part) + short).relu()
        outcomes.append(x)
    return outcomes
