"""`lvdet experiment` as a user runs it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from cli.run_lvdet import lvdet_call, python_program
from experiments.made_results import made, own
from lvdet.experiments.paper_item import names
from lvdet.experiments.request import Request
from lvdet.experiments.result_files import ResultSet, write_results
from lvdet.training.loop.stopping import StoppedError


def test_the_list_has_every_table_and_figure() -> None:
    lines = lvdet_call("experiment", "--list").good().out.splitlines()
    assert [line.split()[0] for line in lines] == names()
    assert lines[0].split()[:2] == ["teaser", "fig"]


def test_a_table_without_a_training(tmp_path: Path) -> None:
    done = lvdet_call("experiment", "balance_calib", "-o", tmp_path, "--work", tmp_path).good()
    assert "Ranking 2" in done.out
    assert json.loads((tmp_path / "tables.json").read_text())["inputs"]["scale"] == "synth"


def test_status_and_results_known_elsewhere(tmp_path: Path) -> None:
    found = lvdet_call("experiment", "ap_fixed_losses", "--status", "--seeds", "0", "-o", tmp_path)
    assert found.good().out.startswith("scale synth: 0 of 5 runs done; the time of some is unknown")
    assert found.out.count("missing") == 5
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_during_training(
    number: signal.Signals, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends as any command does, and names no option that experiment lacks."""

    def stopped(*arguments: object) -> None:
        raise StoppedError("stopped after 5 of 7 steps; --resume continues", number)

    monkeypatch.setattr(Request, "carry_out", stopped)
    done = lvdet_call("experiment", "ap_fixed_losses", "-o", tmp_path, "--work", tmp_path)
    assert done.code == code
    assert done.err == "stopped during training; the same command resumes it\n"


def test_the_page(tmp_path: Path) -> None:
    write_results(ResultSet([made("baseline", 0, own(old_AP=20))]), tmp_path / "runs.json")
    page = tmp_path / "index.md"
    done = lvdet_call("experiment", "--page", page, "--results", tmp_path).good()
    assert done.out == f"wrote {page}\n"
    assert page.read_text().startswith("# Results\n")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "NAME is missing"),
        (["ap_fixed"], "unknown experiment 'ap_fixed' (see --list)"),
        (["all", "--scale", "huge"], "--scale is 'huge', expected one of lvis, synth, tiny"),
        (["all", "--only", "2/1"], "--only is '2/1'"),
        (["all", "--jobs", "0"], "--jobs is 0"),
        (["all", "--deadline", "0"], "--deadline is 0"),
        (["all", "--seeds", "0,x"], "--seeds is '0,x'"),
        (["ap_fixed_losses", "--scale", "lvis"], "lvis_v1_train.json: not found"),
        (["--page", "page.md", "--results", "none"], "none: no results of scale synth"),
        (["balance_calib", "-o", "file"], "file: not a folder"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    lvdet_call("experiment", *arguments).refused(says)


def test_a_list_loads_no_torch() -> None:
    code = (
        "import sys; from lvdet.cli.app import run; run(['experiment', '--list']); "
        "print('torch' in sys.modules, file=sys.stderr)"
    )
    assert python_program(code).err == "False\n"
