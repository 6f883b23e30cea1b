"""Checkpoints: whole or not there, as many as are kept, and what they say when they do not fit."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lvdet.errors import InputError, OutputError
from lvdet.training.records.checkpoint import (
    Described,
    checkpoints,
    describe,
    find_checkpoint,
    put_weights,
    save_checkpoint,
)
from lvdet.training.records.live_line import LiveLine, duration
from lvdet.training.records.log import Log, read_log
from lvdet.training.records.run_folder import FREE, config_hash, locked, require_new
from lvdet.training.records.tensor_file import read_tensors, write_tensors
from training.stand_in import StandIn, config, vocabulary


def save(run: Path, step: int, keep: int = 2) -> Path:
    described = Described(config(), vocabulary(), step, ("body.weight",))
    momenta = {"head.bias": torch.ones(2)}
    return save_checkpoint(run, StandIn(), momenta, described, {"config": "x"}, keep)


def test_what_is_in_a_checkpoint(tmp_path: Path) -> None:
    folder = save(tmp_path, 12)
    assert folder == tmp_path / "checkpoints" / "step-000000012"
    assert sorted(path.name for path in folder.iterdir()) == [
        "model.safetensors",
        "optimizer.safetensors",
        "state.json",
    ]
    tensors, texts = read_tensors(folder / "model.safetensors")
    assert tensors.keys() == StandIn().state_dict().keys()
    assert texts["step"] == "12"
    assert json.loads(texts["categories"])[1] == {"id": 4, "name": "dog", "frequency": None}
    assert json.loads(texts["frequencies"])["images"] == 6
    told = describe(folder / "model.safetensors")
    assert told.config == config()
    assert told.step == 12
    assert told.fixed == ("body.weight",)
    assert told.vocabulary.names == ["cat", "dog"]
    assert read_tensors(folder / "optimizer.safetensors")[0]["head.bias"].tolist() == [1, 1]


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (2, 10, 9, 1_000_000_000):
        save(tmp_path, step, keep=3)
    assert [path.name for path in checkpoints(tmp_path)] == [
        "step-000000009",
        "step-000000010",
        "step-1000000000",
    ]
    assert find_checkpoint(tmp_path).parent.name == "step-1000000000"


def test_what_is_not_complete_is_passed_over(tmp_path: Path) -> None:
    folder = save(tmp_path, 3)
    (folder / "state.json").unlink()
    assert checkpoints(tmp_path) == []
    part = tmp_path / "checkpoints" / ".step-000000007.part"
    part.mkdir()
    save(tmp_path, 5)
    assert [path.name for path in checkpoints(tmp_path)] == ["step-000000005"]
    assert not part.exists()


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkpoints before it stay."""
    save(tmp_path, 1)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OutputError, match="No space left"):
        save(tmp_path, 2)
    names = [path.name for path in (tmp_path / "checkpoints").iterdir()]
    assert names == ["step-000000001"]


def test_files_that_are_no_checkpoints(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    write_tensors(file, {"a": torch.zeros(1)})
    with pytest.raises(InputError, match="not an lvdet detector: its classes are missing"):
        describe(file)
    write_tensors(file, {}, vocabulary().to_texts())
    with pytest.raises(InputError, match="its config is missing"):
        describe(file)
    texts = {"step": "1", "config": '{"model": {"bone": 1}}', "fixed": "[]"}
    write_tensors(file, {}, vocabulary().to_texts() | texts)
    with pytest.raises(InputError, match=r"a\.safetensors \(config\): unknown key model\.bone"):
        describe(file)


def test_weights_that_do_not_fit() -> None:
    model = StandIn()
    state = model.state_dict()
    without = {name: tensor for name, tensor in state.items() if name != "head.bias"}
    with pytest.raises(InputError, match=r"^X: lacks head\.bias"):
        put_weights(model, without, "X")
    with pytest.raises(InputError, match=r"^X: has tail, which"):
        put_weights(model, {**state, "tail": torch.zeros(1)}, "X")
    with pytest.raises(InputError, match=r"^X: head\.bias has shape \[3\], .* \[2\]$"):
        put_weights(model, {**state, "head.bias": torch.zeros(3)}, "X")


def test_the_hash_is_of_what_matters() -> None:
    assert config_hash(config()) == config_hash(config(log_every=7, workers=3, keep=9))
    assert config_hash(config()) != config_hash(config(seed=1))
    faster = replace(config(), schedule=replace(config().schedule, rate=0.5))
    assert config_hash(config()) != config_hash(faster)
    assert "run.seed" not in FREE


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "run"),
        pytest.raises(InputError, match="another process is training here"),
        locked(tmp_path / "run"),
    ):
        pass
    with locked(tmp_path / "run"):
        require_new(tmp_path / "run")


# The log


def test_a_log_is_cut_where_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = Log(path, 0)
    for step in (2, 4, 6):
        log.write({"step": step, "loss": float("inf")})
    with open(path, "ab") as file:
        file.write(b'{"step": 8, "lo')
    assert [record["step"] for record in read_log(path)] == [2, 4, 6]
    log = Log(path, 4)
    log.write({"step": 5, "evaluation": {}})
    assert path.read_text() == (
        '{"step": 2, "loss": null}\n{"step": 4, "loss": null}\n{"step": 5, "evaluation": {}}\n'
    )
    assert log.evaluated(5)
    assert not log.evaluated(4)


# The live line


RECORD = {
    "step": 20,
    "losses": {"class": 1.25, "box": 0.5},
    "images_per_s": 12.34,
    "data_wait": 0.25,
    "seconds_left": 7500.0,
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    page = Terminal()
    line = LiveLine(page)
    line.record(RECORD, 100)
    text = page.getvalue()
    assert text.startswith("\rstep 20/100  loss 1.750  class 1.250  box 0.500  12.3 images/s")
    assert "waits for data 25%" in text
    assert "2 h 05 min left" in text
    assert "\n" not in text
    line.say("saved")
    assert page.getvalue().endswith("\nsaved\n")


def test_the_line_is_never_wider_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    page = Terminal()
    LiveLine(page).record(RECORD, 100)
    assert "\033" not in page.getvalue()
    assert len(page.getvalue().removeprefix("\r")) < 30


def test_lines_where_nobody_is_looking() -> None:
    page = io.StringIO()
    line = LiveLine(page, every=10)
    for step in range(1, 26):
        line.record({**RECORD, "step": step}, 25)
    shown = [int(text.split()[1].split("/")[0]) for text in page.getvalue().splitlines()]
    assert shown == [1, 10, 20, 25]
    assert "\r" not in page.getvalue()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (89, "89 s"), (150, "2 min"), (7500, "2 h 05 min"), (300_000, "3 d 11 h")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
