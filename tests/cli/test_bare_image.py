"""Nothing but PyTorch, NumPy and Pillow: what runs straight from the source tree, what does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.bare import BARE, bare
from training.tiny_set import write_config, write_set


def test_train(tmp_path: Path) -> None:
    write_set(tmp_path)
    config = write_config(tmp_path)
    done = bare(
        *("train", config, "--out", tmp_path / "run", "--device", "cpu"),
        *("--set", "schedule.steps=2", "--output", tmp_path / "out.json"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path}/run/checkpoints/step-000000002\n"
    assert (tmp_path / "out.json").exists()


def test_validation_data_are_looked_at(tmp_path: Path) -> None:
    write_set(tmp_path)
    write_set(tmp_path / "other", names=("square", "bar", "pole"))
    config = write_config(tmp_path)
    val = ("--set", f"data.val={tmp_path}/other/train.json", "--set", "data.val_images=other")
    images = f"data.val_images={tmp_path}/other/images"
    done = bare("train", config, "--out", tmp_path / "run", *val, "--set", images)
    assert done.returncode == 2
    assert "category 3 is 'pole' there, and 'post' in" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", ["train", "predict", "synth"])
def test_help(verb: str) -> None:
    done = bare(verb, "--help")
    assert done.returncode == 0, done.stderr
    assert "Examples:" in done.stdout


@pytest.mark.parametrize("arguments", [["--help"], [], ["evaluate", "gt.json", "dt.json"]])
def test_all_else_says_what_works(arguments: list[str]) -> None:
    done = bare(*arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("lvdet: error: typer is not installed: ")
    assert "only train, predict, synth work" in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_torch_it_says_so(tmp_path: Path) -> None:
    write_set(tmp_path)
    config = write_config(tmp_path)
    without = BARE.replace("for name in [", "for name in ['torch', ")
    done = subprocess.run(
        [sys.executable, "-c", without, "train", str(config)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("lvdet: error: torch is not installed")
    assert done.stderr.count("\n") == 1


def test_without_the_compiled_core_the_rest_says_so() -> None:
    """typer is there, and so is lvdet, but for its core."""
    code = "import sys; sys.modules['lvdet._native'] = None; from lvdet.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "evaluate", "gt.json", "dt.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("lvdet: error: lvdet's compiled core is not installed: ")
    assert done.stderr.count("\n") == 1
