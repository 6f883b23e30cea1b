"""A run that is killed, and gone on with."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lvdet.errors import InputError
from lvdet.training.configuration.config import Config
from lvdet.training.configuration.config_file import read_config
from lvdet.training.records.checkpoint import checkpoints, load_model
from lvdet.training.records.log import read_log
from lvdet.training.records.tensor_file import read_tensors
from lvdet.training.train import train
from training.tiny_set import NAMES, started, wait_for_log, write_set

STEPS = 6


#: Batch normalisation, whose statistics are a state too.
CHANGES = ["model.norm=batch", "run.log_every=1", "classifier.loss=federated"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_set(tmp_path_factory.mktemp("resume")).parent


@pytest.fixture(scope="module")
def config(folder: Path) -> Config:
    return read_config(folder / "tiny.toml", CHANGES)


@pytest.fixture(scope="module")
def whole(folder: Path, config: Config) -> Path:
    """A run that nothing happened to."""
    train(config, folder / "whole", device="cpu")
    return folder / "whole"


def require_same_weights(a: Path, b: Path) -> None:
    for name in ("model.safetensors", "optimizer.safetensors"):
        found, expected = read_tensors(a / name)[0], read_tensors(b / name)[0]
        assert found.keys() == expected.keys()
        assert expected
        for key, tensor in expected.items():
            assert torch.equal(found[key], tensor), key


def test_killed_and_resumed_is_the_same_to_the_bit(
    folder: Path, config: Config, whole: Path
) -> None:
    """What loads its images ends, too: it has the same stderr, which is read to its end."""
    run = folder / "killed"
    with started(folder, run, *CHANGES, "run.workers=1") as process:
        wait_for_log(process, run, 3)
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL, errors
    left = checkpoints(run)
    assert left
    assert left[-1].name != f"step-{STEPS:09}", "it was not killed in time"
    (run / "checkpoints" / ".step-000000005.part").mkdir()
    (run / "checkpoints" / "step-000000099").mkdir()  # not complete: passed over
    last = train(config, run, device="cpu", resume=True)
    assert last == run / "checkpoints" / f"step-{STEPS:09}"
    require_same_weights(last, checkpoints(whole)[-1])
    assert [r["step"] for r in read_log(run / "log.jsonl")] == list(range(1, STEPS + 1))
    losses = [[r["losses"] for r in read_log(path / "log.jsonl")] for path in (run, whole)]
    assert losses[0] == losses[1]


def test_a_signal_to_all_processes_loses_nothing(folder: Path, config: Config, whole: Path) -> None:
    """As batch systems send it: to the run and to those that load its images."""
    run = folder / "told"
    changes = [*CHANGES, "run.workers=2", "run.checkpoint_every=0"]
    with started(folder, run, *changes) as process:
        wait_for_log(process, run, 2)
        os.killpg(process.pid, signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM, errors
    (left,) = checkpoints(run)
    assert left.name != f"step-{STEPS:09}", "it was not told in time"
    assert errors.splitlines()[-1].endswith(f"--resume continues from {left}")
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
    last = train(config, run, device="cpu", resume=True)
    require_same_weights(last, checkpoints(whole)[-1])


def test_a_finished_run_has_nothing_left_to_do(config: Config, whole: Path) -> None:
    before = (checkpoints(whole)[-1] / "model.safetensors").stat().st_mtime_ns
    assert train(config, whole, device="cpu", resume=True) == checkpoints(whole)[-1]
    assert (checkpoints(whole)[-1] / "model.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize("way", ["resume", "overwrite"])
@pytest.mark.parametrize("name", ["config.toml", "log.jsonl", "notes.txt"])
def test_a_folder_that_is_no_run_stays_as_it_is(
    way: str, name: str, tmp_path: Path, config: Config
) -> None:
    (tmp_path / name).write_text("mine")
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(InputError, match="has files, but no run"):
        train(config, tmp_path, device="cpu", **{way: True})
    assert (tmp_path / name).read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["checkpoints", name])


def test_a_run_without_a_checkpoint_yet_begins_anew(
    tmp_path: Path, config: Config, whole: Path
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    short = replace(config, schedule=replace(config.schedule, steps=2))
    train(short, tmp_path / "run", device="cpu", resume=True)
    assert [r["step"] for r in read_log(tmp_path / "run" / "log.jsonl")] == [1, 2]


def test_a_warm_up_that_would_change(tmp_path: Path, config: Config) -> None:
    """The default one depends on the steps, which may be changed only when it is over."""
    schedule = replace(config.schedule, steps=20, warmup_steps=-1)
    begun = replace(config, schedule=schedule)
    with_steps = {
        steps: replace(begun, schedule=replace(schedule, steps=steps)) for steps in (1, 2, 3, 20)
    }
    train(with_steps[1], tmp_path / "run", device="cpu")
    with pytest.raises(InputError, match=r"warm-up, which lasts 0 of 1 steps, .*2 of 20"):
        train(with_steps[20], tmp_path / "run", device="cpu", resume=True)
    train(with_steps[2], tmp_path / "run", device="cpu", resume=True)
    assert train(with_steps[3], tmp_path / "run", device="cpu", resume=True).name.endswith("3")


def test_a_folder_with_a_run_is_refused(config: Config, whole: Path) -> None:
    with pytest.raises(InputError, match=r"not empty; pass --resume .*--overwrite"):
        train(config, whole, device="cpu")


def test_another_config_is_refused(config: Config, whole: Path) -> None:
    other = replace(config, schedule=replace(config.schedule, rate=0.03))
    with pytest.raises(InputError, match=r"started with schedule\.rate 0\.01, .*now 0\.03"):
        train(other, whole, device="cpu", resume=True)
    other = replace(config, schedule=replace(config.schedule, steps=STEPS - 1))
    with pytest.raises(InputError, match=r"trained for 6 steps, but schedule\.steps is 5"):
        train(other, whole, device="cpu", resume=True)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ((*NAMES, "disc"), r"without class 'disc' \(id 4\).*has 3 classes, the data has 4"),
        (NAMES[:2], r"with class 'post' \(id 3\), which the data lacks"),
        (("square", "bar", "pole"), "class 3 is 'post' there, but 'pole' in the data"),
        (NAMES, "trained on 8 images with objects, but data.train has 7"),
    ],
)
def test_other_data_are_refused(
    names: tuple[str, ...], says: str, tmp_path: Path, config: Config, whole: Path
) -> None:
    images = 7 if names == NAMES else 8
    data = replace(
        config.data,
        train=str(write_set(tmp_path / "other", images, names)),
        train_images=str(tmp_path / "other" / "images"),
    )
    with pytest.raises(InputError, match=says):
        train(replace(config, data=data), whole, device="cpu", resume=True)


def test_data_may_be_moved_and_the_run_be_longer(
    tmp_path: Path, folder: Path, config: Config, whole: Path
) -> None:
    shutil.copytree(whole, tmp_path / "run")
    shutil.copytree(folder / "images", tmp_path / "moved")
    data = replace(config.data, train_images=str(tmp_path / "moved"))
    longer = replace(config, data=data, schedule=replace(config.schedule, steps=STEPS + 1))
    last = train(longer, tmp_path / "run", device="cpu", resume=True)
    assert last.name == f"step-{STEPS + 1:09}"


def test_weights_to_begin_with(tmp_path: Path, config: Config, whole: Path) -> None:
    """All of a detector's, if it is the same network."""
    schedule = replace(
        config.schedule, steps=1, warmup_steps=0, rate=1e-30, momentum=0.0, weight_decay=0.0
    )
    model = replace(config.model, weights=str(whole))
    begun = replace(config, model=model, schedule=schedule)
    last = train(begun, tmp_path / "run", device="cpu")
    found = read_tensors(last / "model.safetensors")[0]
    expected = read_tensors(checkpoints(whole)[-1] / "model.safetensors")[0]
    for name, tensor in expected.items():
        if "running" not in name and "tracked" not in name:
            assert torch.equal(found[name], tensor), name
    other = replace(begun, model=replace(model, norm="group"))
    with pytest.raises(
        InputError, match=r"model\.norm is 'batch' there, but 'group' in the config"
    ):
        train(other, tmp_path / "other", device="cpu")
    other = replace(begun, classifier=replace(config.classifier, loss="softmax"))
    with pytest.raises(
        InputError, match=r"classifier\.layer\.weight has shape \[3, 128\].*\[4, 128"
    ):
        train(other, tmp_path / "other", device="cpu")


def test_what_is_fixed_stays_fixed(tmp_path: Path, config: Config, whole: Path) -> None:
    """A backbone's weights are needed in the beginning only, and with them its first stages are
    not trained, before and after resuming."""
    weights = read_tensors(checkpoints(whole)[-1] / "model.safetensors")[0]
    prefix = "backbone.body."
    body = {n.removeprefix(prefix): t for n, t in weights.items() if n.startswith(prefix)}
    file = tmp_path / "body.pth"
    torch.save(body, file)
    begun = replace(config, model=replace(config.model, weights=str(file), norm="frozen"))
    last = train(begun, tmp_path / "whole", device="cpu")
    short = replace(begun, schedule=replace(begun.schedule, steps=3))
    train(short, tmp_path / "parts", device="cpu")
    file.unlink()
    shutil.copytree(tmp_path / "parts", tmp_path / "without")
    require_same_weights(train(begun, tmp_path / "parts", device="cpu", resume=True), last)
    without = replace(begun, model=replace(begun.model, weights="none"))
    found = train(without, tmp_path / "without", device="cpu", resume=True)
    require_same_weights(found, last)
    assert load_model(found, torch.device("cpu")).config == begun
    after = read_tensors(last / "model.safetensors")[0]
    moved = {
        n for n in body if n.endswith("0.weight") and not torch.equal(after[prefix + n], body[n])
    }
    assert moved
    assert not any(name.startswith(("conv1", "layer1")) for name in moved)


def test_loading_a_model(config: Config, whole: Path) -> None:
    for path in (whole, checkpoints(whole)[-1], checkpoints(whole)[-1] / "model.safetensors"):
        loaded = load_model(path, torch.device("cpu"))
        assert loaded.config == config
        assert loaded.step == STEPS
        assert loaded.category_ids.tolist() == [1, 2, 3]
        assert loaded.category_names == list(NAMES)
        assert not loaded.detector.training
    with pytest.raises(InputError, match="no such checkpoint"):
        load_model(whole / "nowhere", torch.device("cpu"))
    with pytest.raises(InputError, match="no checkpoint found"):
        load_model(whole / "checkpoints", torch.device("cpu"))


def test_overwriting(tmp_path: Path, config: Config, whole: Path) -> None:
    """The run is removed, and nothing else in the folder."""
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("mine")
    (tmp_path / "run" / "predictions").mkdir()
    (tmp_path / "run" / "predictions" / "step-000000006.json").write_text("[]")
    short = replace(config, schedule=replace(config.schedule, steps=1, warmup_steps=1))
    train(short, tmp_path / "run", device="cpu", overwrite=True)
    assert [path.name for path in checkpoints(tmp_path / "run")] == ["step-000000001"]
    assert [r["step"] for r in read_log(tmp_path / "run" / "log.jsonl")] == [1]
    assert (tmp_path / "run" / "notes.txt").exists()
    assert not (tmp_path / "run" / "predictions").exists()
    assert read_config(tmp_path / "run" / "config.toml") == short
