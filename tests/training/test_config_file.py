"""Config files: what is read, what is refused and how it is said, and that it reads back."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lvdet.errors import InputError
from lvdet.training.configuration.config import Config, Data, Schedule
from lvdet.training.configuration.config_file import config_text, flat_values, read_config

DATA = '[data]\ntrain = "train.json"\ntrain_images = "images"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(DATA + text)
    return path


def test_the_defaults_are_those_of_the_dataclasses(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, ""))
    data = Data(str(tmp_path / "train.json"), str(tmp_path / "images"))
    assert config == Config(data=data)


def test_values_of_all_types(tmp_path: Path) -> None:
    text = """
[input]
sizes = [400, 1000]
between = true
[classifier]
loss = "federated"
[schedule]
rate = 1
steps = 1_000
"""
    config = read_config(written(tmp_path, text))
    assert config.input.sizes == (400, 1000)
    assert config.input.between is True
    assert config.classifier.loss == "federated"
    assert config.schedule.rate == 1.0
    assert isinstance(config.schedule.rate, float)
    assert config.schedule.steps == 1000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[shedule]\nsteps = 3", ["unknown", "shedule", "[schedule]"]),
        ("[schedule]\nstep = 3", ["schedule.step", "did you mean schedule.steps?"]),
        ("[run]\nrate = 3", ["run.rate", "did you mean schedule.rate?"]),
        ("[schedule]\nqqq = 3", ["schedule.qqq", "expected one of steps, batch"]),
        ("[model]\nmasks = 1", ["model.masks", "1", "expected true or false"]),
        ("[schedule]\nsteps = 1e3", ["schedule.steps", "1000.0", "an integer"]),
        ("[schedule]\nsteps = true", ["schedule.steps", "True", "an integer"]),
        ('[schedule]\nrate = "fast"', ["schedule.rate", "'fast'", "a number"]),
        ("[schedule]\nrate = nan", ["schedule.rate", "nan"]),
        ("[schedule]\nmilestones = 5", ["schedule.milestones", "5", "a list of integers"]),
        ("[schedule]\nmilestones = [5, 5]", ["schedule.milestones", "[5, 5]", "increasing"]),
        (
            "[schedule]\nwarmup_rate = 0.1\nwarmup_factor = 0.1",
            ["schedule.warmup_rate", "schedule.warmup_factor", "expected one"],
        ),
        ("[schedule]\nbatch = 0", ["schedule.batch", "0", "at least 1"]),
        ("[input]\nsizes = []", ["input.sizes", "one or more increasing sizes"]),
        ("[input]\nbetween = true", ["input.sizes", "6 sizes", "expected 2"]),
        ('[model]\nbackbone = "vgg"', ["model.backbone", "'vgg'", "resnet50"]),
        ("[model]\nanchors = [8, 16]", ["model.anchors", "5 increasing sizes"]),
        ('[sampler]\nname = ""', ["sampler.name", "repeat_factor"]),
        ("[schedule]\nrate = \n", ["not TOML", "line 5"]),
    ],
)
def test_what_is_refused(text: str, says: list[str], tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_config(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    for words in says:
        assert words in message


def test_sections_are_sections(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("schedule = 3\n")
    with pytest.raises(InputError, match=r"schedule is 3, expected \[schedule\]"):
        read_config(path)
    path.write_text("rate = 3\n")
    with pytest.raises(InputError, match=r"key rate, did you mean schedule\.rate\?"):
        read_config(path)


def test_data_must_be_given(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[data]\ntrain = "x.json"\n')
    with pytest.raises(InputError, match=r"data\.train_images is missing"):
        read_config(path)
    with pytest.raises(InputError, match=r"data\.val_images is missing"):
        read_config(written(tmp_path, ""), ["data.val=v.json"])


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read_config(tmp_path / "none.toml")
    (tmp_path / "odd.toml").write_bytes(b"[data]\ntrain = '\xff'\n")
    with pytest.raises(InputError, match=r"odd\.toml: not UTF-8 text \(byte 16\)"):
        read_config(tmp_path / "odd.toml")


def test_changes_of_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "[schedule]\nrate = 0.5")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    changes = [
        "schedule.rate=0.01",
        "schedule.milestones=[1, 2]",
        "classifier.loss=sigmoid",
        'sampler.name = "uniform"',
        "model.masks=false",
        "data.val=val.json",
        "data.val_images=../images",
        "model.weights=a=b.pth",
    ]
    config = read_config(path, changes)
    assert config.schedule.rate == 0.01
    assert config.schedule.milestones == (1, 2)
    assert config.classifier.loss == "sigmoid"
    assert config.sampler.name == "uniform"
    assert config.model.masks is False
    assert config.data.val == str(tmp_path / "here" / "val.json")
    assert config.data.val_images == str(tmp_path / "images")
    assert config.data.train == str(tmp_path / "train.json")
    assert config.model.weights == str(tmp_path / "here" / "a=b.pth")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("schedule.rate", "expected section.key=value"),
        ("schedule.speed=3", "unknown key schedule.speed"),
        ("rate=3", "did you mean schedule.rate?"),
        ("schedule.rate=fast", "schedule.rate is 'fast', expected a number"),
        ("schedule.batch=-1", "schedule.batch is -1"),
    ],
)
def test_changes_that_make_no_sense(change: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_config(written(tmp_path, ""), [change])
    assert says in str(caught.value)


TEXTS = st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: f"/{text}")


@given(
    st.builds(Data, train=TEXTS, train_images=TEXTS),
    st.builds(
        Schedule,
        rate=st.floats(1e-300, 1e300),
        milestones=st.sets(st.integers(1, 10**9)).map(lambda steps: tuple(sorted(steps))),
    ),
)
def test_what_is_written_reads_back(
    tmp_path_factory: pytest.TempPathFactory, data: Data, schedule: Schedule
) -> None:
    path = tmp_path_factory.getbasetemp() / "written.toml"
    config = dataclasses.replace(Config(), data=data, schedule=schedule)
    path.write_bytes(config_text(config).encode())
    found = flat_values(read_config(path))
    for key, value in flat_values(config).items():
        if not key.startswith("data."):  # absolute paths may be written in more than one way
            assert found[key] == value


def test_a_resolved_config_is_its_own(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, "[schedule]\nrate = 3e-5"))
    again = tmp_path / "elsewhere"
    again.mkdir()
    (again / "config.toml").write_text(config_text(config))
    assert read_config(again / "config.toml") == config
