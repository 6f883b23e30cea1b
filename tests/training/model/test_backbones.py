"""Backbones: sizes, folded norms, where weights come from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torchvision import models
from torchvision.models.regnet import RegNet
from torchvision.ops import FrozenBatchNorm2d

from lvdet.errors import InputError
from lvdet.training.model import backbones
from lvdet.training.model.backbones import BACKBONES, FoldedConv2d, build_backbone


def test_regnet_y_4gf_has_the_published_size() -> None:
    net = RegNet(backbones._REGNET_Y_4GF)
    assert sum(p.numel() for p in net.parameters()) == 20_646_656
    body = build_backbone("regnet_y_4gf", "batch", "none", 256).body
    trained = sum(p.numel() for p in body.parameters())
    assert trained == 20_646_656 - sum(p.numel() for p in net.fc.parameters())


@pytest.mark.parametrize("name", [name for name in BACKBONES if "101" not in name])
def test_five_levels(name: str) -> None:
    levels = list(build_backbone(name, "batch", "none", 64)(torch.zeros(1, 3, 64, 96)).values())
    assert [tuple(level.shape) for level in levels] == [
        (1, 64, -(-64 // stride), -(-96 // stride)) for stride in (4, 8, 16, 32, 64)
    ]


@pytest.mark.parametrize("name", ["resnet18", "resnet50", "regnet_y_4gf", "tiny"])
def test_folded_norms_change_nothing(name: str) -> None:
    torch.manual_seed(0)
    plain = backbones._body(name, FrozenBatchNorm2d)[0]
    for module in plain.modules():
        if isinstance(module, FrozenBatchNorm2d):
            for value, low in (
                (module.weight, 0.5),
                (module.running_var, 0.5),
                (module.bias, -0.1),
            ):
                value.uniform_(low, low + 1)
            module.running_mean.normal_(std=0.1)
    folded = backbones._body(name, FrozenBatchNorm2d)[0].double()
    plain.double()
    folded.load_state_dict(plain.state_dict())
    backbones.fold_frozen_norms(folded)
    assert not any(isinstance(module, FrozenBatchNorm2d) for module in folded.modules())
    assert any(isinstance(module, FoldedConv2d) for module in folded.modules())
    last = {"resnet18": "layer2", "resnet50": "layer2", "regnet_y_4gf": "block2", "tiny": "layer4"}

    def run(body: nn.Module) -> torch.Tensor:
        keeper = models._utils.IntermediateLayerGetter(body, {last[name]: "out"})
        return keeper(torch.linspace(-1, 1, 3 * 32 * 32).view(1, 3, 32, 32).double())["out"]

    one, other = run(plain), run(folded)
    torch.testing.assert_close(one, other)
    weights = [next(body.parameters()) for body in (plain, folded)]
    gradients = [
        torch.autograd.grad((value**2).sum(), weight)[0]
        for value, weight in zip((one, other), weights, strict=True)
    ]
    torch.testing.assert_close(*gradients)


def test_weights_of_a_file(tmp_path: Path) -> None:
    source = models.resnet18(weights=None)
    torch.save(source.state_dict(), tmp_path / "resnet18.pth")
    pyramid = build_backbone("resnet18", "frozen", str(tmp_path / "resnet18.pth"), 64)
    assert torch.equal(pyramid.body["layer2"][0].conv1.weight, source.layer2[0].conv1.weight)
    trained = {name for name, p in pyramid.body.named_parameters() if p.requires_grad}
    assert not any(name.startswith(("conv1", "layer1")) for name in trained)
    assert any(name.startswith("layer2") for name in trained)


def test_frozen_stages_of_a_network_with_batch_norm(tmp_path: Path) -> None:
    torch.save(models.resnet18(weights=None).state_dict(), tmp_path / "resnet18.pth")
    pyramid = build_backbone("resnet18", "batch", str(tmp_path / "resnet18.pth"), 64).train()
    before = {name: value.clone() for name, value in pyramid.state_dict().items()}
    pyramid(torch.randn(2, 3, 64, 64))
    moved = {n for n, value in pyramid.state_dict().items() if not torch.equal(value, before[n])}
    assert not any(name.startswith(("body.conv1", "body.bn1", "body.layer1")) for name in moved)
    assert "body.layer2.0.bn1.running_mean" in moved


def test_group_norm_takes_no_weights() -> None:
    with pytest.raises(InputError, match=r'model\.norm is "group"'):
        build_backbone("resnet18", "group", "imagenet", 64)


def test_weights_of_a_regnet(tmp_path: Path) -> None:
    source = RegNet(backbones._REGNET_Y_4GF)
    torch.save(source.state_dict(), tmp_path / "regnet.pth")
    pyramid = build_backbone("regnet_y_4gf", "batch", str(tmp_path / "regnet.pth"), 64)
    block = source.trunk_output.block3[0].proj[0].weight
    assert torch.equal(pyramid.body["block3"][0].proj[0].weight, block)


def test_weights_of_another_network(tmp_path: Path) -> None:
    path = tmp_path / "other.pth"
    torch.save(models.resnet18(weights=None).state_dict(), path)
    with pytest.raises(InputError, match=r"other\.pth: lacks layer1\.0\.conv3\.weight and "):
        build_backbone("resnet50", "frozen", str(path), 64)
    torch.save(torch.zeros(3), path)
    with pytest.raises(InputError, match=r"other\.pth: not the weights of a network: Tensor"):
        build_backbone("resnet18", "frozen", str(path), 64)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"other\.pth: not the weights of a network: "):
        build_backbone("resnet18", "frozen", str(path), 64)
    with pytest.raises(InputError, match="not the weights of a network"):
        build_backbone("resnet18", "frozen", str(tmp_path / "nowhere.pth"), 64)


def test_weights_that_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))

    def no_network(*_: object, **__: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(torch.hub, "download_url_to_file", no_network)
    with pytest.raises(
        InputError, match=r"ImageNet weights of resnet18 cannot be downloaded .*no ro"
    ):
        build_backbone("resnet18", "frozen", "imagenet", 64)
    with pytest.raises(InputError, match="no ImageNet weights for the backbone regnet_y_4gf"):
        build_backbone("regnet_y_4gf", "frozen", "imagenet", 64)
