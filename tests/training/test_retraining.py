"""Classifier retraining: nothing moves but the classifier, which begins anew."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lvdet.errors import InputError
from lvdet.training.configuration.config import Config, Retrain
from lvdet.training.configuration.config_file import read_config
from lvdet.training.records.checkpoint import describe
from lvdet.training.records.tensor_file import read_tensors
from lvdet.training.train import train
from training.tiny_set import write_set

CHANGES = ["schedule.steps=2", "schedule.warmup_steps=1", "model.norm=batch"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_set(tmp_path_factory.mktemp("retraining")).parent


@pytest.fixture(scope="module")
def first(folder: Path) -> Path:
    return train(read_config(folder / "tiny.toml", CHANGES), folder / "first", device="cpu")


def second(folder: Path, *changes: str) -> Config:
    retrain = f"retrain.checkpoint={folder / 'first'}"
    return read_config(folder / "tiny.toml", [*CHANGES, retrain, *changes])


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    return read_tensors(checkpoint / "model.safetensors")[0]


def is_classifiers(name: str) -> bool:
    return ".classifier." in name


@pytest.mark.parametrize(
    "changes",
    [[], ["classifier.loss=sigmoid", "classifier.objectness=true", "sampler.name=class_aware"]],
    ids=["the same", "another classifier"],
)
def test_only_the_classifier_is_trained(
    changes: list[str], folder: Path, first: Path, tmp_path: Path
) -> None:
    last = train(second(folder, *changes), tmp_path / "second", device="cpu")
    before, after = weights(first), weights(last)
    others = [name for name in before if not is_classifiers(name)]
    assert any("running_mean" in name for name in others)
    for name in others:
        assert torch.equal(after[name], before[name]), name
    mine = [name for name in after if is_classifiers(name) and name.endswith("weight")]
    assert mine
    for name in mine:
        assert after[name].std() < 0.02, "drawn anew, with a deviation of 0.01"
        if before[name].shape == after[name].shape:
            assert not torch.allclose(after[name], before[name], atol=1e-3)
    fixed = describe(last / "model.safetensors").fixed
    assert set(fixed).isdisjoint(mine)
    assert set(fixed) >= {"backbone.body.conv1.0.weight"} & set(before)
    trained = read_tensors(last / "optimizer.safetensors")[0]
    assert {name.rpartition(".")[0] for name in trained} == {
        name.rpartition(".")[0] for name in after if is_classifiers(name)
    }


def test_the_classifier_has_nothing_of_the_first_one(
    folder: Path, first: Path, tmp_path: Path
) -> None:
    """Neither what it learned nor what it was drawn as: a step that moves nothing shows it."""
    config = second(folder, "schedule.steps=1", "schedule.rate=1e-30", "schedule.warmup_rate=1e-30")
    before, after = weights(first), weights(train(config, tmp_path / "second", device="cpu"))
    names = [name for name in after if is_classifiers(name) and name.endswith("weight")]
    assert names
    for name in names:
        pair = torch.stack([before[name].flatten(), after[name].flatten()])
        assert abs(torch.corrcoef(pair)[0, 1]) < 0.3, name
        assert after[name].std() == pytest.approx(0.01, rel=0.15)
    biases = [name for name in after if is_classifiers(name) and name.endswith("bias")]
    assert all(after[name].abs().max() < 1e-6 for name in biases)


def test_it_learns_and_can_be_resumed(folder: Path, first: Path, tmp_path: Path) -> None:
    config = second(folder)
    whole = train(config, tmp_path / "whole", device="cpu")
    short = replace(config, schedule=replace(config.schedule, steps=1))
    train(short, tmp_path / "parts", device="cpu")
    shutil.copytree(tmp_path / "parts", tmp_path / "without")
    parts = train(config, tmp_path / "parts", device="cpu", resume=True)
    without = replace(config, retrain=Retrain())  # what it began with is in its checkpoint
    found = train(without, tmp_path / "without", device="cpu", resume=True)
    for name, tensor in weights(whole).items():
        assert torch.equal(weights(parts)[name], tensor), name
        assert torch.equal(weights(found)[name], tensor), name
    assert describe(found / "model.safetensors").config == config


def test_a_cascade_has_three(folder: Path, tmp_path: Path) -> None:
    changes = [*CHANGES, "model.kind=cascade_rcnn", "schedule.steps=1"]
    first = train(read_config(folder / "tiny.toml", changes), tmp_path / "first", device="cpu")
    config = read_config(folder / "tiny.toml", [*changes, f"retrain.checkpoint={first}"])
    last = train(config, tmp_path / "second", device="cpu")
    before, after = weights(first), weights(last)
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert len({name.partition(".classifier.")[0] for name in moved}) == 3
    assert all(map(is_classifiers, moved))


def test_another_network_is_refused(folder: Path, first: Path, tmp_path: Path) -> None:
    config = second(folder, "model.masks=false")
    with pytest.raises(InputError, match=r"model\.masks is True there, but False in the config"):
        train(config, tmp_path / "second", device="cpu")


def test_other_classes_are_refused(folder: Path, first: Path, tmp_path: Path) -> None:
    write_set(tmp_path / "set", names=("square", "bar", "disc"))
    config = second(folder, f"data.train={tmp_path}/set/train.json")
    config = replace(config, data=replace(config.data, train_images=str(tmp_path / "set/images")))
    with pytest.raises(InputError, match="class 3 is 'post' there, but 'disc' in the data"):
        train(config, tmp_path / "second", device="cpu")
