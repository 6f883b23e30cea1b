"""`lvdet train`."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
import torch

from cli.run_lvdet import lvdet_call, python_program
from long_cases import first
from lvdet.cli import terminal
from lvdet.training.records.checkpoint import checkpoints
from training.tiny_set import started, wait_for_log, write_set


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return write_set(tmp_path_factory.mktemp("train")).parent


def test_a_run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder's name is the config's; results are in the file."""
    monkeypatch.chdir(tmp_path)
    arguments = ("train", folder / "tiny.toml", "--set", "schedule.steps=2", "--device", "cpu")
    done = lvdet_call(*arguments, "--summary", "out.json").good()
    assert done.out == "runs/tiny/checkpoints/step-000000002\n"
    assert "step 2/2  loss " in done.err
    out = json.loads((tmp_path / "out.json").read_text())
    assert out["checkpoint"] == "runs/tiny/checkpoints/step-000000002"
    assert out["log"]["step"] == 2
    assert out["evaluation"] is None
    lvdet_call(*arguments).refused("runs/tiny: not empty", "--resume", "--overwrite")
    lvdet_call(*arguments, "--resume").good()
    lvdet_call(*arguments, "--resume", "--set", "run.seed=3").refused("run.seed 0", "now 3")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "CONFIG.toml"),
        (["tiny.toml", "more.toml"], "more.toml"),
        (["tiny.toml", "--frobnicate"], "--frobnicate"),
        (["tiny.toml", "--set"], "--set"),
        (["tiny.toml", "--set", "schedule.rate"], "section.key=value"),
        (["tiny.toml", "--res"], "--res"),
    ],
)
def test_command_lines_that_make_no_sense(
    arguments: list[str], says: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    lvdet_call("train", *arguments).refused(says, "--help")


def test_options_that_make_no_sense(folder: Path, tmp_path: Path) -> None:
    call = ("train", folder / "tiny.toml", "-o", tmp_path / "run")
    lvdet_call(*call, "--resume", "--overwrite").refused("cannot be combined")
    lvdet_call(*call, "--device", "tpu").refused("device is 'tpu', expected cuda or cpu")
    assert not (tmp_path / "run").exists()


def test_files_that_are_not_there(folder: Path, tmp_path: Path) -> None:
    lvdet_call("train", tmp_path / "none.toml").refused("none.toml: No such file")
    arguments = ("train", folder / "tiny.toml", "--device", "cpu", "--output", tmp_path / "run")
    lvdet_call(*arguments, "--set", f"data.train={tmp_path}/none.json").refused("none.json")
    lvdet_call(*arguments, "--set", f"data.train_images={tmp_path}").refused("8 of 8")
    lvdet_call(*arguments, "--summary", tmp_path / "no" / "out.json").refused(
        "no such folder", code=1
    )
    assert not (tmp_path / "run").exists()


def test_validation_data_are_looked_at_before_the_first_step(folder: Path, tmp_path: Path) -> None:
    other = write_set(tmp_path / "other", names=("square", "bar", "pole"))
    none = tmp_path / "none.json"
    strange = json.loads(other.read_text())
    strange |= {"categories": [{"id": 77, "name": "square"}], "annotations": []}
    none.write_text(json.dumps(strange))
    missing = tmp_path / "missing.json"
    arguments = ("train", folder / "tiny.toml", "--device", "cpu", "--output", tmp_path / "run")
    for val, images, says in (
        (missing, folder / "images", "missing.json: No such file"),
        (folder / "tiny.toml", folder / "images", "tiny.toml"),
        (other, tmp_path, "8 of 8"),
        (other, folder / "images", "category 3 is 'pole', but 'post' in"),
        (none, folder / "images", "1 of 1 categories are not among"),
    ):
        data = ("--set", f"data.val={val}", "--set", f"data.val_images={images}")
        lvdet_call(*arguments, *data).refused(says)
    assert not (tmp_path / "run").exists()


def test_a_warm_up_beyond_the_end(folder: Path, tmp_path: Path) -> None:
    arguments = ("train", folder / "tiny.toml", "--device", "cpu", "--output", tmp_path / "run")
    lvdet_call(*arguments, "--set", "schedule.steps=1").refused(
        "warmup_steps is 2, more than schedule.steps, 1"
    )
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_interrupted_says_how_to_go_on(folder: Path, tmp_path: Path) -> None:
    """Ctrl-C goes to every process of the terminal, those that load images too."""
    run = tmp_path / "run"
    changes = ["schedule.steps=100000", "run.log_every=1", "run.workers=1"]
    with started(folder, run, *changes) as process:
        wait_for_log(process, run)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    saved = checkpoints(run)[-1]
    last = err.splitlines()[-1]
    assert last.startswith(f"stopped after {int(saved.name[5:]):,} of 100,000 steps; --resume cont")
    assert "Traceback" not in err


@pytest.mark.parametrize("package", first(1, ["torch", "torchvision", "safetensors", "PIL"]))
def test_without_the_packages_of_training(package: str, folder: Path, tmp_path: Path) -> None:
    code = f"import sys; sys.modules[{package!r}] = None; from lvdet.cli import main; main()"
    call = ("train", folder / "tiny.toml", "-o", tmp_path, "--device", "cpu")
    named = "Pillow" if package == "PIL" else package
    told = f"lvdet: error: training needs {named}: pip install 'lvdet[train]'\n"
    python_program(code, *call).refused(told)


def test_no_bar_where_nobody_is_looking() -> None:
    with terminal.progress_bar("reading") as update:
        assert update is None
