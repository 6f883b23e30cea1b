"""What two processes have to tell each other, beside one that has it all."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from lvdet.training.configuration.config_file import read_config
from lvdet.training.loop.processes import joined, mean_over_processes
from lvdet.training.losses.balanced_groups import BalancedGroups
from lvdet.training.losses.class_loss import ClassLoss
from lvdet.training.losses.federated import Federated
from lvdet.training.losses.softmax import Softmax
from lvdet.training.train import train
from training.tiny_set import write_set

ROWS, FEATURES, IMAGES = 24, 5, 8
PER_IMAGE = ROWS // IMAGES

#: Classes of two groups; the halves of the labels, of four images each, have different ones, and
#: not as many samples.
COUNTS = [5, 50, 5, 50, 5, 50, 5, 50]
LABELS = [0, 1, 1, 8, 8, 8] * 2 + [2, 3, 8, -1, -1, 5] * 2

CHILD = f"""
import json, os, sys, warnings
sys.path.insert(0, {str(Path(__file__).resolve().parents[1])!r})
warnings.simplefilter("error")
import torch
torch.set_num_threads(1)
from training import test_processes
print(json.dumps(test_processes.{{call}}(int(os.environ["RANK"]))))
"""


def on_two(call: str) -> list[subprocess.CompletedProcess[str]]:
    """Calls a function of this module in two processes; it gets its rank."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD.format(call=call)],
            env=os.environ | place | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    done = []
    for process in started:
        out, err = process.communicate(timeout=100)
        done.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
    return done


def gradient(loss: ClassLoss, rows: slice, samples: float) -> list[list[float]]:
    """Of a linear layer before the loss, with some of the rows."""
    random = np.random.default_rng(3)
    x = torch.tensor(random.normal(size=(ROWS, FEATURES)))[rows]
    weight = torch.tensor(random.normal(size=(FEATURES, loss.outputs)), requires_grad=True)
    seed = torch.arange(IMAGES)[slice(rows.start // PER_IMAGE, rows.stop // PER_IMAGE)]
    loss.loss(x @ weight, torch.tensor(LABELS)[rows], torch.tensor(samples), seed).backward()
    assert weight.grad is not None
    found: list[list[float]] = weight.grad.tolist()
    return found


def losses() -> list[ClassLoss]:
    """One β chooses every sample, the other some of them."""
    counts = torch.tensor(COUNTS)
    return [
        *(BalancedGroups(counts, ratio, 2) for ratio in (1000.0, 1.0)),
        Federated(counts, 5, 2),
        Softmax(len(COUNTS)),
    ]


def test_losses_have_the_gradient_of_one_process() -> None:
    """Each process has half of the images and divides by the mean count."""
    samples = sum(label >= 0 for label in LABELS)
    for loss in losses():
        whole = gradient(loss, slice(0, ROWS), samples)
        halves = [slice(0, ROWS // 2), slice(ROWS // 2, ROWS)]
        mean = np.mean([gradient(loss, half, samples / 2) for half in halves], axis=0)
        np.testing.assert_allclose(mean, whole, rtol=1e-9, err_msg=type(loss).__name__)


def mean_of_ranks(rank: int) -> float:
    with joined("cpu"):
        return mean_over_processes(torch.tensor(float(rank))).item()


@pytest.mark.long
def test_a_mean_is_over_both() -> None:
    for done in on_two("mean_of_ranks"):
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == 0.5


def go_on_in_folders_of_their_own(rank: int) -> None:
    folder = Path(os.environ["LVDET_TEST_FOLDER"])
    config = read_config(folder / "tiny.toml", ["schedule.steps=4"])
    train(config, folder / f"run{rank}", device="cpu", resume=True)


@pytest.mark.long
def test_processes_that_would_go_on_from_different_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second does not see the folder of the first."""
    write_set(tmp_path)
    train(read_config(tmp_path / "tiny.toml", ["schedule.steps=2"]), tmp_path / "run0")
    monkeypatch.setenv("LVDET_TEST_FOLDER", str(tmp_path))
    for rank, done in enumerate(on_two("go_on_in_folders_of_their_own")):
        assert done.returncode == 1
        (last,) = [line for line in done.stderr.splitlines() if "InputError: " in line] or [""]
        mine, other = (2, 0) if rank == 0 else (0, 2)
        assert f"process {rank} would resume from step {mine}, others from {other}" in last, (
            done.stderr
        )
    assert (tmp_path / "run0" / "checkpoints" / "step-000000002").exists()
