"""Where a detector computes, in what, and how its pixels lie."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from inference.brute_force import records_of
from inference.random_detector import RandomDetector, random_model, write_images
from lvdet.errors import InputError
from lvdet.inference.device import Execution, device_of, predicting_processes
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
from lvdet.training.data import loader_workers as workers
from lvdet.training.data.batch import Batch
from lvdet.training.model.candidates import Candidates

torch.set_num_threads(1)
CPU = torch.device("cpu")


def test_a_gpu_with_a_number_becomes_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton starts its kernels there, whatever device its tensors are on."""
    chosen: list[object] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    assert device_of("cuda:1") == torch.device("cuda:1")
    assert chosen == [torch.device("cuda:1")]
    assert device_of(None).type == device_of("cuda").type == "cuda"
    assert device_of("cpu") == CPU
    assert len(chosen) == 1
    with pytest.raises(InputError, match="there are 2 GPUs"):
        device_of("cuda:2")


def test_a_gpu_has_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert device_of(None) == CPU
    with pytest.raises(InputError, match="--device is 'cuda:1', but PyTorch finds no GPU"):
        device_of("cuda:1")
    with pytest.raises(InputError, match="--device is 'gpu', expected a name such as cuda"):
        device_of("gpu")


def test_each_of_several_processes_has_its_own_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    with (
        pytest.raises(InputError, match="--device is 'cuda:1', but each of several processes"),
        predicting_processes("cuda:1"),
    ):
        pass


def test_channels_last() -> None:
    """As in training: the detector sees pixels that lie so, with the same values."""
    pixels = torch.arange(2 * 3 * 4 * 5, dtype=torch.uint8).view(2, 3, 4, 5)
    batch = Batch(pixels, torch.tensor([[4, 5]] * 2), torch.zeros(2, dtype=torch.int64))
    moved = Execution(CPU, channels_last=True).moved(batch).pixels
    assert moved.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(moved, pixels)
    assert Execution(CPU).moved(batch).pixels.is_contiguous()


def test_channels_last_on_a_gpu_alone() -> None:
    layer = torch.nn.Conv2d(3, 4, 3)
    assert not Execution.of(layer, True, "fp32").channels_last
    assert layer.weight.is_contiguous()


class Watched(RandomDetector):
    """Keeps how pixels lay, and in what each part was asked to compute."""

    def __init__(self) -> None:
        super().__init__(2)
        self.layouts: list[bool] = []
        self.types: list[torch.dtype | None] = []

    def _look(self) -> None:
        on = torch.is_autocast_enabled("cpu")
        self.types.append(torch.get_autocast_dtype("cpu") if on else None)

    def features(self, batch: Batch) -> list[torch.Tensor]:
        self._look()
        self.layouts.append(batch.pixels.mT.is_contiguous())
        return super().features(batch)

    def candidates(self, features: list[torch.Tensor], batch: Batch) -> Candidates:
        self._look()
        return super().candidates(features, batch)

    def masks(self, *arguments: Any) -> torch.Tensor:
        self._look()
        return super().masks(*arguments)


class Moving(Execution):
    """Lays pixels out as no loader does: of the colours, one after another, all columns."""

    def moved(self, batch: Batch) -> Batch:
        batch = super().moved(batch)
        return replace(batch, pixels=batch.pixels.mT.contiguous().mT)


def test_both_passes_compute_as_they_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if on a GPU: a CPU may not have bf16."""
    images = write_images(tmp_path, 3)
    outcomes = []
    for precision, dtype in (("bf16", torch.bfloat16), ("fp32", None)):
        detector = Watched()
        execution = Moving(CPU, False, precision)
        with monkeypatch.context() as patch:
            patch.setattr(Execution, "of", lambda *_, chosen=execution: chosen)
            out = tmp_path / f"{precision}.json"
            predict(random_model(detector), images, out, Settings(workers=0, precision=precision))
        assert detector.layouts == [True, True]  # a batch of boxes, and one of masks
        assert detector.types == [dtype] * 4
        outcomes.append(records_of(out))
    assert outcomes[0] == outcomes[1]


def test_bf16_without_a_gpu(tmp_path: Path) -> None:
    """Refused before anything is begun: with some CPUs it would end in a crash."""
    images = write_images(tmp_path, 1)
    chosen = Settings(workers=0, precision="bf16")
    with pytest.raises(InputError, match="precision bf16 needs a GPU"):
        predict(random_model(RandomDetector(2)), images, tmp_path / "out.json", chosen)
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(InputError, match="precision is 'fp8', expected fp32 or bf16"):
        Settings(precision="fp8")


def test_workers_are_as_many_as_cores_that_may_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as the machine has: a container or a job often has few of them."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    planned: list[int] = []
    plan = workers.plan

    def counting(number: int, size: int) -> tuple[int, int]:
        planned.append(plan(number, size)[0])
        return 0, 1

    monkeypatch.setattr(workers, "plan", counting)
    images = write_images(tmp_path, 2)
    chosen = replace(Settings(), masks=False)
    predict(random_model(RandomDetector(2)), images, tmp_path / "out.json", chosen)
    assert planned == [1]
