"""An imported backbone gives what it gives in its own layout."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import conv2d
from torchvision.models.resnet import Bottleneck, ResNet
from torchvision.ops import FrozenBatchNorm2d

from lvdet.errors import InputError
from lvdet.training.configuration.config import Config, Model
from lvdet.training.loop.initial_weights import settled
from lvdet.training.model.backbones import build_backbone
from lvdet.training.weights.body_weights import DEVIATION, MEAN, body_weights
from lvdet.training.weights.weight_file import read_weight_file
from training.weights.original_layouts import (
    State,
    caffe2_names,
    regnet_state,
    resnet_state,
    run_regnet,
    run_resnet,
)


def images() -> Tensor:
    """Red, green and blue from 0 to 255."""
    return torch.rand(1, 3, 64, 96, generator=torch.Generator().manual_seed(0)) * 255


def our_colours(x: Tensor) -> Tensor:
    return (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(DEVIATION)[:, None, None]


def detectron2_colours(x: Tensor, deviation: tuple[float, float, float]) -> Tensor:
    blue_first = x.flip(1) - torch.tensor([103.530, 116.280, 123.675])[:, None, None]
    return blue_first / torch.tensor(deviation)[:, None, None]


def write_pickle(path: Path, state: State, author: str | None, protocol: int = 2) -> Path:
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    content = arrays if author is None else {"model": arrays, "__author__": author}
    path.write_bytes(pickle.dumps(content, protocol))
    return path


def close(found: list[Tensor], expected: list[Tensor]) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4 * float(theirs.std()))


@pytest.mark.parametrize("caffe2", [False, True])
@pytest.mark.parametrize(
    ("groups", "width"), [(1, 64), pytest.param(32, 256, marks=pytest.mark.long)]
)
def test_resnets(tmp_path: Path, caffe2: bool, groups: int, width: int) -> None:
    torch.manual_seed(groups)
    state = resnet_state(
        [1, 1, 1, 1], bottleneck=True, groups=groups, width=width, statistics=False
    )
    named = {**caffe2_names(state), "pred_w": torch.zeros(2, 2)} if caffe2 else state
    file = write_pickle(tmp_path / "R.pkl", named, None if caffe2 else "MSRA")
    found = body_weights(read_weight_file(file), None if groups == 1 else "caffe2")
    net = ResNet(
        Bottleneck, [1] * 4, groups=groups, width_per_group=width // groups,
        norm_layer=FrozenBatchNorm2d,
    )  # fmt: skip
    assert found.folded
    assert found.stride_in == ("1x1" if groups == 1 else "3x3")
    for stage in (net.layer2, net.layer3, net.layer4):
        if groups == 1:
            stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
    net.load_state_dict(dict(found.tensors), strict=False)
    with torch.no_grad():
        x = net.maxpool(net.bn1(net.conv1(our_colours(images()))).relu())
        ours = []
        for stage in (net.layer1, net.layer2, net.layer3, net.layer4):
            x = stage(x)
            ours.append(x)
        deviation = (1.0, 1.0, 1.0) if groups == 1 else (57.375, 57.120, 58.395)
        theirs = run_resnet(
            state, detectron2_colours(images(), deviation), stride_in_1x1=groups == 1, groups=groups
        )
    close(ours, theirs)


def test_msra_s_resnet_50_as_a_backbone(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = resnet_state([3, 4, 6, 3], bottleneck=True)
    file = write_pickle(tmp_path / "R-50.pkl", state, "MSRA", 4)
    found = body_weights(read_weight_file(file))
    assert (found.backbone, found.stride_in, found.folded) == ("resnet50", "1x1", False)
    pyramid = build_backbone("resnet50", "frozen", found, 32, found.stride_in)
    with torch.no_grad():
        ours = list(pyramid.body(our_colours(images())).values())
        theirs = run_resnet(
            state, detectron2_colours(images(), (1.0, 1.0, 1.0)), stride_in_1x1=True
        )
    close(ours, theirs)
    model = Model(weights=str(file))
    assert settled(Config(model=model)).model.stride_in == "1x1"
    asked = Config(model=replace(model, stride_in="3x3"))
    assert settled(asked) == asked
    with pytest.raises(InputError, match=r"R-50\.pkl: lacks layer3\.6\.conv1\.weight"):
        build_backbone("resnet101", "frozen", found, 32, "1x1")


def test_pycls_s_regnet(tmp_path: Path) -> None:
    torch.manual_seed(0)
    state = regnet_state()
    torch.save({"model_state": state, "epoch": 100}, tmp_path / "RegNetY.pyth")
    pyramid = build_backbone("regnet_y_4gf", "frozen", str(tmp_path / "RegNetY.pyth"), 32)
    with torch.no_grad():
        ours = list(pyramid.body(our_colours(images())).values())
        theirs = run_regnet(state, detectron2_colours(images(), (57.375, 57.120, 58.395)))
    close(ours, theirs)


def test_what_has_no_statistics_needs_frozen_norms(tmp_path: Path) -> None:
    state = resnet_state([2, 2, 2, 2], bottleneck=False, statistics=False)
    file = write_pickle(tmp_path / "R-18.pkl", state, "MSRA", 4)
    with pytest.raises(InputError, match=r"normalisations have no statistics, which model\.norm"):
        build_backbone("resnet18", "batch", str(file), 32)
    with pytest.raises(InputError, match=r'stride_in is "1x1", but resnet18 has no bottlenecks'):
        build_backbone("resnet18", "frozen", str(file), 32, "1x1")


@pytest.mark.parametrize("blue_first", [False, True])
@pytest.mark.parametrize("divided", [False, True])
def test_the_file_s_own_colours(tmp_path: Path, blue_first: bool, divided: bool) -> None:
    """Mean and deviations in the file take precedence over those that its layout usually has."""
    step = -1 if blue_first else 1
    deviation = DEVIATION[::step] if divided else (1.0, 1.0, 1.0)
    state = resnet_state([2, 2, 2, 2], bottleneck=False)
    own = {"pixel_mean": torch.tensor(MEAN[::step]), "pixel_std": torch.tensor(deviation)}
    found = body_weights(read_weight_file(write_pickle(tmp_path / "R.pkl", state | own, "x")))
    x = images()
    theirs = (x.flip(1) if blue_first else x) - own["pixel_mean"][:, None, None]
    theirs = theirs / own["pixel_std"][:, None, None]
    expected = conv2d(theirs, state["stem.conv1.weight"], stride=2, padding=3)
    ours = conv2d(our_colours(x), found.tensors["conv1.weight"], stride=2, padding=3)
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4 * float(expected.std()))


def test_what_is_no_backbone(tmp_path: Path) -> None:
    state = resnet_state([2, 2, 2, 2], bottleneck=False)
    good = read_weight_file(write_pickle(tmp_path / "good.pkl", state, "MSRA"))
    with pytest.raises(InputError, match="convention is 'other', expected one of msra, caffe2"):
        body_weights(good, "other")
    grey = {"stem.conv1.weight": torch.zeros(64, 1, 7, 7)}
    odd = {"pixel_mean": torch.tensor([1.0, 2, 3]), "pixel_std": torch.ones(3)}
    for content, says in (
        ({"weight": torch.zeros(3)}, "not the weights of a backbone"),
        (state | grey, r"the first filters have shape \[64, 1, 7, 7\]"),
        (state | odd, r"pixel_mean is \[1\.0, 2\.0, 3\.0\] .* expected ImageNet's"),
    ):
        file = read_weight_file(write_pickle(tmp_path / "bad.pkl", content, "MSRA"))
        with pytest.raises(InputError, match=says):
            body_weights(file)
    with pytest.raises(InputError, match="it has no named arrays"):
        read_weight_file(write_pickle(tmp_path / "empty.pkl", {}, "MSRA"))
