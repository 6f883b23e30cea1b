"""The loop on a stand-in: when it logs, saves, evaluates, stops, and what it does about NaN."""

from __future__ import annotations

import io
import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from lvdet.errors import InputError, LvdetError
from lvdet.training.loop.optimizer import build_optimizer, load_momenta, momenta
from lvdet.training.loop.processes import Process
from lvdet.training.loop.schedule import rate_at, resolved_schedule
from lvdet.training.loop.step import precision_on, step_seed
from lvdet.training.loop.stopping import StoppedError, stopping
from lvdet.training.records.checkpoint import checkpoints
from lvdet.training.records.live_line import LiveLine
from lvdet.training.records.log import read_log
from lvdet.training.records.tensor_file import read_tensors
from training.stand_in import StandIn, batches, config, training


def names(folder: Path) -> list[str]:
    return [path.name for path in checkpoints(folder)]


def test_a_whole_run(tmp_path: Path) -> None:
    run = training(tmp_path, config())
    run.run_steps(batches(0, 12))
    assert names(tmp_path) == ["step-000000008", "step-000000012"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoints", "log.jsonl"]
    log = read_log(tmp_path / "log.jsonl")
    assert [record["step"] for record in log] == [3, 6, 9, 12]
    assert [record["images"] for record in log] == [12, 24, 36, 48]
    for record in log:
        assert record["rate"] == rate_at(run.schedule, record["step"] - 1)
        assert set(record["losses"]) == {"first", "second"}
        assert record["images_per_s"] > 0
        assert 0 <= record["data_wait"] <= 1


def test_the_step_is_plain_sgd(tmp_path: Path) -> None:
    """The same steps, written by hand."""
    what = config()
    run = training(tmp_path, what)
    run.run_steps(batches(0, 12))
    torch.manual_seed(1)
    model = StandIn().train()
    schedule = resolved_schedule(what)
    buffers: dict[str, torch.Tensor] = {}
    means = []
    for step, batch in enumerate(batches(0, 12)):
        torch.manual_seed(step_seed(what.run.seed, step))
        losses = model(batch)
        gradients = torch.autograd.grad(sum(losses.values()), list(model.parameters()))  # type: ignore[arg-type]
        means.append(losses["first"].item())
        with torch.no_grad():
            for (name, weight), gradient in zip(model.named_parameters(), gradients, strict=True):
                decay = 0.0 if name.startswith("norm") else 1e-4
                step_by = gradient + decay * weight
                buffers[name] = 0.9 * buffers[name] + step_by if name in buffers else step_by
                weight -= rate_at(schedule, step) * buffers[name]
    for name, weight in model.named_parameters():
        torch.testing.assert_close(run.detector.get_parameter(name), weight, rtol=1e-5, atol=1e-7)
    logged = read_log(tmp_path / "log.jsonl")[0]["losses"]["first"]
    assert logged == pytest.approx(sum(means[:3]) / 3, rel=1e-5)


def test_clipping(tmp_path: Path) -> None:
    what = config()
    what = replace(what, schedule=replace(what.schedule, clip=1e-3, momentum=0.0, weight_decay=0.0))
    what = replace(what, schedule=replace(what.schedule, warmup_rate=0.001))
    run = training(tmp_path, what)
    before = [weight.detach().clone() for weight in run.detector.parameters()]
    run.train_step(next(batches(0, 1)))
    moved = [a - b for a, b in zip(before, run.detector.parameters(), strict=True)]
    norm = nn.utils.get_total_norm(moved).item()
    assert norm == pytest.approx(1e-3 * rate_at(run.schedule, 0), rel=1e-3)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number(value: float, tmp_path: Path) -> None:
    """Noticed before the next checkpoint; the step and the loss are named."""
    model = StandIn()
    model.fail = lambda call: value if call == 6 else None
    run = training(tmp_path, config(log_every=50), model=model)
    with pytest.raises(LvdetError) as caught:
        run.run_steps(batches(0, 12))
    message = str(caught.value)
    for words in ("loss first", "step 6", "step-000000004", "schedule.rate", "warmup", "clip"):
        assert words in message
    assert names(tmp_path) == ["step-000000004"]
    assert "\n" not in message


def test_a_weight_that_is_no_number(tmp_path: Path) -> None:
    """In the last step of a checkpoint: no loss has seen it."""
    model = StandIn()

    def fail(call: int) -> None:
        if call == 4:
            model.head.weight.register_hook(lambda gradient: gradient * float("inf"))

    model.fail = fail
    with pytest.raises(
        LvdetError, match=r"weights head\.weight are not finite.*no checkpoint was written yet"
    ):
        training(tmp_path, config(), model=model).run_steps(batches(0, 12))
    assert names(tmp_path) == []


def test_memory_that_is_full(tmp_path: Path) -> None:
    """What was finished is kept."""
    model = StandIn()

    def fail(call: int) -> None:
        if call == 7:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate …\n\n")

    model.fail = fail
    with pytest.raises(LvdetError) as caught:
        training(tmp_path, config(), model=model).run_steps(batches(0, 12))
    for words in ("step 7", "4 images", "up to 800", "schedule.accumulate", "step-000000006"):
        assert words in str(caught.value)
    assert names(tmp_path) == ["step-000000004", "step-000000006"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_step_end(number: int, tmp_path: Path) -> None:
    model = StandIn()
    model.fail = lambda call: os.kill(os.getpid(), number) if call == 5 else None
    with stopping() as stop:
        run = training(tmp_path, config(), model=model, stop=stop)
        with pytest.raises(StoppedError, match=r"after 5 of 12 steps; --resume.*step-000000005"):
            run.run_steps(batches(0, 12))
    assert names(tmp_path) == ["step-000000004", "step-000000005"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    model = StandIn()

    def fail(call: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    model.fail = fail
    with stopping() as stop, pytest.raises(KeyboardInterrupt):
        training(tmp_path, config(), model=model, stop=stop).run_steps(batches(0, 12))


def test_workers_that_a_signal_has_ended(tmp_path: Path) -> None:
    def ended() -> Any:
        yield from batches(0, 5)
        os.kill(os.getpid(), signal.SIGINT)
        raise InputError("one of 2 processes that load images was ended from outside")

    with stopping() as stop, pytest.raises(StoppedError, match="after 5 of 12"):
        training(tmp_path, config(), stop=stop).run_steps(ended())
    assert names(tmp_path)[-1] == "step-000000005"


def test_a_signal_before_the_first_step(tmp_path: Path) -> None:
    with stopping() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(StoppedError, match="before the first step"):
            training(tmp_path, config(), stop=stop).run_steps(batches(0, 12))
    assert names(tmp_path) == []


def test_sigterm_twice_at_once_is_one(tmp_path: Path) -> None:
    """A batch system and torchrun both send it."""
    with stopping() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.signal == signal.SIGTERM


def test_a_signal_is_not_kept_waiting_by_an_evaluation(tmp_path: Path) -> None:
    """The run that is resumed evaluates."""
    model, calls = StandIn(), []

    def evaluate(detector: Any, what: Any, folder: Path, step: int, _: Any) -> dict[str, Any]:
        calls.append(step)
        return {}

    model.fail = lambda call: os.kill(os.getpid(), signal.SIGTERM) if call == 5 else None
    what = config(evaluate_every=5)
    with stopping() as stop, pytest.raises(StoppedError, match="after 5 of 12"):
        training(tmp_path, what, model=model, stop=stop, evaluate=evaluate).run_steps(
            batches(0, 12)
        )
    assert calls == []
    assert names(tmp_path) == ["step-000000004", "step-000000005"]
    training(tmp_path, what, step=5, evaluate=evaluate).run_steps(batches(5, 12))
    assert calls == [5, 10, 12]


@pytest.mark.parametrize(
    ("error", "kind", "says"),
    [
        (InputError("7.png: the image cannot be read"), InputError, "7.png: the image cannot be"),
        (OSError("Too many\nopen files"), LvdetError, "Too many open files"),
        (MemoryError(), LvdetError, "not enough memory"),
    ],
)
def test_a_batch_that_cannot_be_loaded(
    error: Exception, kind: type[LvdetError], says: str, tmp_path: Path
) -> None:
    """What was finished is kept."""

    def damaged() -> Any:
        yield from batches(0, 7)
        raise error

    with pytest.raises(LvdetError) as caught:
        training(tmp_path, config()).run_steps(damaged())
    assert type(caught.value) is kind
    assert str(caught.value).startswith(says)
    assert str(caught.value).endswith(f"checkpoint is {tmp_path}/checkpoints/step-000000007")
    assert names(tmp_path) == ["step-000000004", "step-000000007"]


@dataclass
class OneOfTwo(Process):
    """The second process, whose first one says `told` after three steps."""

    told: int = 0
    calls: int = 0
    waited: int = 0

    def largest(self, number: int) -> int:
        self.calls += 1
        return max(number, self.told if self.calls > 3 else 0)

    def wait_for_all(self) -> None:
        self.waited += 1


@pytest.mark.parametrize(
    ("told", "says"), [(15, "stopped after 3 of 12.*step-000000003"), (1, "another process could")]
)
def test_the_second_process_waits_until_the_first_has_written(
    told: int, says: str, tmp_path: Path
) -> None:
    """On a machine that does not see the run's folder."""
    process = OneOfTwo(1, 2, torch.device("cpu"), told=told)
    run = replace(training(tmp_path, config()), process=process, log=None)
    with pytest.raises(LvdetError, match=says):
        run.run_steps(batches(0, 12))
    assert process.waited == 1
    assert names(tmp_path) == []


def weights_after(folder: Path) -> dict[str, torch.Tensor]:
    return read_tensors(checkpoints(folder)[-1] / "model.safetensors")[0]


def test_going_on_is_the_same_to_the_bit(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    training(whole, config()).run_steps(batches(0, 12))
    what = config()
    short = replace(what, schedule=replace(what.schedule, steps=4))
    training(parts, short).run_steps(batches(0, 4))
    run = training(parts, what, step=4)
    last = checkpoints(parts)[-1]
    run.detector.load_state_dict(read_tensors(last / "model.safetensors")[0])
    load_momenta(run.detector, run.optimizer, read_tensors(last / "optimizer.safetensors")[0], last)
    run.run_steps(batches(4, 12))
    found, expected = weights_after(parts), weights_after(whole)
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


def test_evaluating(tmp_path: Path) -> None:
    """In eval mode, and the training continues as if it had not happened."""
    calls = []

    def evaluate(detector: Any, what: Any, folder: Path, step: int, _: Any) -> dict[str, Any]:
        calls.append(step)
        assert not detector.training
        assert names(folder)[-1] == f"step-{step:09}"
        torch.rand(7)
        return {"fixed": {"AP": float("nan"), "APr": 1.5}}

    (tmp_path / "with").mkdir()
    (tmp_path / "without").mkdir()
    shown = io.StringIO()
    line = LiveLine(shown)
    run = training(tmp_path / "with", config(evaluate_every=5), evaluate=evaluate, line=line)
    run.run_steps(batches(0, 12))
    assert calls == [5, 10, 12]
    assert run.detector.training
    found = [r for r in read_log(tmp_path / "with" / "log.jsonl") if "evaluation" in r]
    assert [record["step"] for record in found] == [5, 10, 12]
    assert found[0]["evaluation"] == {"fixed": {"AP": None, "APr": 1.5}}
    assert "step 5: AP-Fixed" in shown.getvalue()
    training(tmp_path / "without", config()).run_steps(batches(0, 12))
    for name, tensor in weights_after(tmp_path / "without").items():
        assert torch.equal(weights_after(tmp_path / "with")[name], tensor)


def test_an_evaluation_that_was_killed_is_made_up_for(tmp_path: Path) -> None:
    calls = []

    def killed(detector: Any, what: Any, folder: Path, step: int, _: Any) -> dict[str, Any]:
        raise KeyboardInterrupt

    def evaluate(detector: Any, what: Any, folder: Path, step: int, _: Any) -> dict[str, Any]:
        calls.append(step)
        return {}

    with pytest.raises(KeyboardInterrupt):
        training(tmp_path, config(), evaluate=killed).run_steps(batches(0, 12))
    training(tmp_path, config(), evaluate=evaluate, step=12).run_steps(batches(12, 12))
    assert calls == [12]
    training(tmp_path, config(), evaluate=evaluate, step=12).run_steps(batches(12, 12))
    assert calls == [12]


def test_what_decays() -> None:
    """As in Detectron2: weights and biases, but not those of normalisation."""
    model = StandIn()
    model.body.weight.requires_grad_(False)
    optimizer = build_optimizer(model, config().schedule)
    decays = {id(p): g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    found = {name: decays.get(id(p)) for name, p in model.named_parameters()}
    assert found == {
        "body.weight": None,
        "body.bias": 1e-4,
        "norm.weight": 0.0,
        "norm.bias": 0.0,
        "head.weight": 1e-4,
        "head.bias": 1e-4,
    }
    assert momenta(model, optimizer) == {}


def test_no_log(tmp_path: Path) -> None:
    training(tmp_path, config(log_every=0)).run_steps(batches(0, 12))
    assert read_log(tmp_path / "log.jsonl") == []


def test_random_numbers_of_a_step_depend_on_seed_and_step() -> None:
    seeds = {step_seed(seed, step) for seed in range(13) for step in range(-1, 130)}
    assert len(seeds) == 13 * 131


def test_predictions_are_kept_as_checkpoints_are(tmp_path: Path) -> None:
    """With what is beside them; what is not a prediction stays."""
    (tmp_path / "predictions").mkdir()
    (tmp_path / "predictions" / "notes.txt").write_text("mine")

    def evaluate(detector: Any, what: Any, folder: Path, step: int, _: Any) -> dict[str, Any]:
        out = folder / "predictions" / f"step-{step:09}.json"
        out.write_text("[]")
        out.with_name(f"{out.name}.work").mkdir()
        return {}

    training(tmp_path, config(evaluate_every=2), evaluate=evaluate).run_steps(batches(0, 12))
    kept = [f"step-0000000{step}.json{end}" for step in (10, 12) for end in ("", ".work")]
    found = sorted(path.name for path in (tmp_path / "predictions").iterdir())
    assert found == ["notes.txt", *kept]


@pytest.mark.parametrize("native", [True, False])
def test_precision(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """bf16 is what older GPUs can do, but slowly."""

    def is_bf16_supported(including_emulation: bool = True) -> bool:
        return native or including_emulation

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", is_bf16_supported)
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    assert precision_on(gpu, "") == ("bf16" if native else "fp32")
    assert [precision_on(gpu, asked) for asked in ("bf16", "fp32")] == ["bf16", "fp32"]
    assert [precision_on(cpu, asked) for asked in ("", "fp32")] == ["fp32", "fp32"]
    with pytest.raises(InputError, match="needs a GPU"):
        precision_on(cpu, "bf16")
