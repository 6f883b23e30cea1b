"""Two processes, as torchrun starts them, train as one does."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from long_cases import first
from lvdet.errors import InputError
from lvdet.training.configuration.config_file import read_config
from lvdet.training.loop.processes import joined, mean_over_processes
from lvdet.training.records.checkpoint import checkpoints
from lvdet.training.records.log import read_log
from lvdet.training.records.tensor_file import read_tensors
from lvdet.training.train import train
from training.tiny_set import sets, wait_for_log, write_set

CHANGES = ["schedule.steps=2", "schedule.warmup_rate=0.01", "run.log_every=1"]

#: How far weights may be apart, as a part of how far they moved. Rounding alone turns an order of
#: proposals or the sign of an L1 loss now and then: one process whose weights are changed by 1e-7
#: has gradients that differ by up to 3e-3. Dividing by counts of one process, by 0.1 to 0.5.
APART = 1e-2


def started(folder: Path, out: Path, *options: str) -> list[subprocess.Popen[str]]:
    """Both, with the environment that torchrun would give them: it takes seconds itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    command = [sys.executable, "-m", "lvdet", "train", folder / "tiny.toml", "--output", out]
    return [
        subprocess.Popen(
            [*command, "--device", "cpu", *options],
            env=os.environ | place | {"RANK": rank, "LOCAL_RANK": rank, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in "01"
    ]


def torchrun(folder: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-addr", "127.0.0.1", "--master-port", str(port), "-m", "lvdet", "train"]
    return subprocess.Popen(
        [*command, folder / "tiny.toml", "--output", out, "--device", "cpu", *options],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("loss", first(1, ["federated", "balanced_groups", "softmax"]))
def test_two_processes_train_as_one(loss: str, tmp_path: Path) -> None:
    """With as many classes that the federated loss has to draw, and two images in each process."""
    torch.set_num_threads(1)
    write_set(tmp_path, names=tuple(f"class {number}" for number in range(9)))
    changes = [*CHANGES, "schedule.batch=4", f"classifier.loss={loss}"]
    changes += ["classifier.sampled_classes=5", "classifier.others_ratio=1"]
    both = started(tmp_path, tmp_path / "two", *sets(*changes))
    config = read_config(tmp_path / "tiny.toml", changes)
    train(config, tmp_path / "one", device="cpu")
    said = [process.communicate(timeout=200) for process in both]
    for process, (_, err) in zip(both, said, strict=True):
        assert process.returncode == 0, err
        assert "Warning" not in err
    assert said[0][0] == f"{tmp_path}/two/checkpoints/step-000000002\n"
    shown = [err.count("step 2/2") for _, err in said]
    assert shown == [1, 0], "one process shows how it goes"
    logs = [read_log(tmp_path / name / "log.jsonl") for name in ("two", "one")]
    assert [record["step"] for record in logs[0]] == [1, 2]
    for two, one in zip(*logs, strict=True):
        assert two["losses"] == pytest.approx(one["losses"], rel=1e-3)
    still = [*changes, "schedule.rate=1e-30", "schedule.warmup_rate=1e-30"]
    train(read_config(tmp_path / "tiny.toml", still), tmp_path / "begun", device="cpu")
    two, one, begun = (
        read_tensors(checkpoints(tmp_path / name)[-1] / "model.safetensors")[0]
        for name in ("two", "one", "begun")
    )
    for name, tensor in one.items():
        moved = (tensor - begun[name]).norm()
        assert moved > 0, name
        assert (two[name] - tensor).norm() <= APART * moved, name


@pytest.mark.long
def test_a_signal_stops_both(tmp_path: Path) -> None:
    write_set(tmp_path)
    changes = sets("schedule.steps=100000", "run.checkpoint_every=0", "run.log_every=1")
    with torchrun(tmp_path, tmp_path / "run", *changes) as process:
        wait_for_log(process, tmp_path / "run")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    saved = checkpoints(tmp_path / "run")
    assert len(saved) == 1, err
    assert f"--resume continues from {saved[0]}" in err
    assert read_log(tmp_path / "run" / "log.jsonl")[-1]["step"] == int(saved[0].name[5:])


def test_an_environment_that_makes_no_sense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "two")
    with pytest.raises(InputError, match="WORLD_SIZE is 'two'"), joined("cpu"):
        pass


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu() -> None:
    with pytest.raises(InputError, match="no GPU"), joined("cuda"):
        pass


def test_one_process_is_its_own_mean() -> None:
    count = torch.tensor(3.0)
    assert mean_over_processes(count) is count
