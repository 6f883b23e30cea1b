"""The configs that ship with lvdet."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cli.run_lvdet import lvdet_call
from long_cases import first
from lvdet.errors import InputError
from lvdet.training.configuration.config_file import config_name, read_config
from lvdet.training.configuration.shipped import FOLDER, shipped_configs, shipped_names
from lvdet.training.loop.schedule import require_full_rate, resolved_schedule
from lvdet.training.records.checkpoint import checkpoints
from lvdet.training.train import train
from training.tiny_set import write_set

ONE_OF_EACH_KIND = ["federated-obj-norm", "strong-balanced-groups", "retrain-cas-rfs"]

#: What makes any of them tiny; the rest is the config's own.
TINY = [
    "input.sizes=[64,72]",
    "input.test_size=0",
    "model.backbone=tiny",
    "model.weights=none",
    "model.norm=group",
    "model.anchors=[8,16,24,32,48]",
    "schedule.steps=1",
    "schedule.batch=2",
    "schedule.milestones=[1]",
    "data.val=",
    "run.workers=0",
]


def tiny(folder: Path) -> list[str]:
    return [*TINY, f"data.train={folder}/train.json", f"data.train_images={folder}/images"]


@pytest.mark.parametrize("name", shipped_names())
def test_each_can_be_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name; paths are relative to the current folder."""
    monkeypatch.chdir(tmp_path)
    config = read_config(Path(name))
    assert config == read_config(Path(f"{name}.toml"))
    assert Path(config.data.train).parent == tmp_path
    require_full_rate(resolved_schedule(config))
    assert config_name(Path(name)) == config_name(Path(f"{name}.toml")) == name
    if name.startswith("retrain"):
        first_phase = Path(config.retrain.checkpoint)
        assert first_phase.parent == tmp_path / "runs"
        assert first_phase.name in shipped_names()


def test_there_is_one_for_each_row() -> None:
    """Losses 5, components 7 more, samplers 2 more, pairs 9, backbones 2 more, of the strong model
    8, of the search 13; COCO."""
    labels = [config.label for config in shipped_configs()]
    assert {label: labels.count(label) for label in labels} == {
        "tab:ap_fixed_pool_losses": 5,
        "tab:ap_fixed_pool_components": 7,
        "tab:ap_fixed_pool_samplers": 2,
        "tab:supp_ap_fixed_pool_crt_all": 9,
        "tab:ap_fixed_pool_larger_models": 2,
        "tab:supp_ap_fixed_pool_losses": 5,
        "tab:supp_ap_fixed_pool_components": 3,
        "tab:supp_loss_tuning": 13,
        "tab:higher_dets_per_im": 1,
    }
    resolved = [repr(read_config(FOLDER / f"{name}.toml")) for name in shipped_names()]
    assert len(set(resolved)) == len(resolved), "no two are the same"


def test_the_paper_s_variants() -> None:
    strong = read_config(Path("strong-federated"))
    assert (strong.model.kind, strong.schedule.steps) == ("cascade_rcnn", 270_000)
    assert (strong.input.by, strong.input.test_by, strong.input.test_size) == (
        "longest",
        "shortest",
        800,
    )
    assert strong.classifier.loss == "federated"
    pair = read_config(Path("retrain-uniform-cas"))
    assert pair.sampler.name == "class_aware"
    assert pair.schedule.milestones == (60_000, 80_000)
    tuned = read_config(Path("tune-equalization-1.76e-3"))
    assert (tuned.classifier.rarer_than, tuned.sampler.name) == (1.76e-3, "uniform")


def test_the_list(tmp_path: Path) -> None:
    lines = lvdet_call("train", "--list").good().out.splitlines()
    assert len(lines) == len(shipped_names())
    assert lines[0].split()[:3] == ["baseline", "180,000", "tab:ap_fixed_pool_losses"]
    lvdet_call("train").refused("CONFIG.toml is missing", "--list")
    lvdet_call("train", "federatd").refused("federatd: no such file, nor a config", "--list")


@pytest.mark.parametrize(
    "name",
    first(3, [*ONE_OF_EACH_KIND, *(n for n in shipped_names() if n not in ONE_OF_EACH_KIND)]),
)
def test_each_takes_a_step(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    write_set(tmp_path)
    config = read_config(Path(name), tiny(tmp_path))
    if config.retrain.checkpoint:
        before = read_config(Path("baseline"), tiny(tmp_path))
        train(before, Path(config.retrain.checkpoint), device="cpu")
    train(config, tmp_path / "run", device="cpu")
    assert len(checkpoints(tmp_path / "run")) == 1
    assert read_config(tmp_path / "run" / "config.toml") == config


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the later file has wins; each file's paths are its own."""
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub/mine.toml", 'base = "federated"\n[data]\ntrain = "a.json"\n')
    other = write(
        tmp_path / "other.toml", 'base = "sub/mine.toml"\n[classifier]\nsampled_classes = 7\n'
    )
    monkeypatch.chdir(tmp_path / "sub")
    config = read_config(other, ["data.val=b.json"])
    assert (config.classifier.loss, config.classifier.sampled_classes) == ("federated", 7)
    assert config.data.train == str(tmp_path / "sub/a.json")
    assert config.data.val == str(tmp_path / "sub/b.json")
    assert config.data.train_images == str(tmp_path / "sub/coco")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('base = "b.toml"', r"a\.toml: base is circular, it leads back to .*a\.toml"),
        ('base = "none.toml"', "base is 'none.toml', which is neither a file beside it nor"),
        ("base = 3", "base is 3, expected a file or a name"),
        ("[base]\nx = 1", "base is {'x': 1}, expected a file or a name"),
        ('base = "c.toml"', r"c\.toml: unknown key run\.sed"),
    ],
)
def test_a_base_that_cannot_be(text: str, says: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.toml", text)
    write(tmp_path / "b.toml", 'base = "a.toml"')
    write(tmp_path / "c.toml", "[run]\nsed = 1")
    with pytest.raises(InputError, match=says) as error:
        read_config(path)
    assert "\n" not in str(error.value)
