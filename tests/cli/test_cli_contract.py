"""What holds for every verb: help, exit codes, one line of error, what is imported."""

from __future__ import annotations

import platform
import re
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

import lvdet
from cli.run_lvdet import (
    COMMAND,
    lvdet_call,
    lvdet_command,
    lvdet_started,
    python_program,
    shell_command,
)
from cli.small_set import pair, save

VERBS = [
    "evaluate",
    "sweep",
    "audit",
    "rerank",
    "compare",
    "report",
    "check",
    "convert",
    "demo",
    "calibrate",
    "train",
    "predict",
    "synth",
    "experiment",
]
#: The commands of `lvdet calibrate`.
CALIBRATE = ["fit", "apply", "compare", "measure"]


def test_help() -> None:
    done = lvdet_command("--help").good()
    for verb in VERBS:
        assert f"  {verb} " in done.out
    assert done.err == ""
    assert "..." not in done.out.split("Commands:")[1]  # no summary is cut off
    assert lvdet_command("-h").good().out == done.out


def test_no_arguments_are_a_question() -> None:
    assert lvdet_command().good().out == lvdet_command("--help").out


def test_a_group_of_commands_lists_them() -> None:
    done = lvdet_call("calibrate", "--help").good()
    for command in CALIBRATE:
        assert f"  {command} " in done.out
        assert f"  lvdet calibrate {command} " in done.out.split("Examples:")[1]
    assert done.err == ""
    assert lvdet_call("calibrate").good() == done


@pytest.mark.parametrize("verb", [*VERBS, *(f"calibrate {command}" for command in CALIBRATE)])
def test_help_of_a_verb_has_examples(verb: str) -> None:
    done = lvdet_call(*verb.split(), "--help").good()
    examples = done.out.split("Examples:")[1].splitlines()
    shown = [line.strip() for line in examples if line.strip()]
    assert shown
    assert all(f"lvdet {verb}" in line for line in shown)
    assert "--output" in done.out or verb in ("demo", "calibrate", "synth")


def test_version() -> None:
    first, *details = lvdet_command("--version", LVDET_THREADS="7").good().out.splitlines()
    assert first == f"lvdet {lvdet.__version__}"
    found = {line.split()[0]: line.split(maxsplit=1)[1] for line in details}
    assert found["NumPy"] == np.__version__
    assert found["Python"].startswith(platform.python_version())
    assert found["CPU"].startswith(f"{platform.machine()}, compiled for ")
    assert found["threads"] == "7"
    assert re.match(r"(GCC|Clang|MSVC) \d+", found["compiler"])


def test_the_version_names_the_commit_of_lvdet_alone(tmp_path: Path) -> None:
    """A project's repository around an installed lvdet is not lvdet's."""
    stated = lvdet_command("--version", LVDET_COMMIT="abc123").good().out
    assert "\n  commit    abc123\n" in stated
    git = ["git", "-c", "user.name=a", "-c", "user.email=a", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "theirs"], check=True)
    code = """
import pathlib, sys
from lvdet.experiments import source_commit
source_commit.__file__ = str(pathlib.Path(sys.argv[1]) / "source_commit.py")
print(source_commit.source_commit())
"""
    assert python_program(code, tmp_path).good().out == "None\n"


def test_as_a_module() -> None:
    code = "import runpy; runpy.run_module('lvdet', run_name='__main__')"
    first = f"lvdet {lvdet.__version__}\n"
    assert python_program(code, "--version").good().out.startswith(first)


COMPLETE = """
eval "$({command} --show-completion)"
COMP_WORDS=({words}); COMP_CWORD={place}
_lvdet_completion {command}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["lvdet", "e"], {"evaluate", "experiment"}),
        (["lvdet", "evaluate", "--dets"], {"--dets-per-image", "--dets-per-class"}),
    ],
)
def test_bash_completes_verbs_and_flags(words: list[str], expected: set[str]) -> None:
    script = COMPLETE.format(command=COMMAND, words=" ".join(words), place=len(words) - 1)
    assert set(shell_command(script).good().out.split()) == expected


def test_completion_is_installed_for_the_current_shell(tmp_path: Path) -> None:
    done = shell_command(f"export HOME={tmp_path}; {COMMAND} --install-completion; true").good()
    assert "bash completion installed" in done.out
    assert "_lvdet_completion" in (tmp_path / ".bash_completions" / "lvdet.sh").read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["frobnicate"], "frobnicate"),
        (["--frobnicate"], "--frobnicate"),
        (["evaluate"], "GT"),
        (["evaluate", "gt.json"], "DT"),
        (["evaluate", "gt.json", "dt.json", "more.json"], "more.json"),
        (["evaluate", "gt.json", "dt.json", "--frobnicate"], "--frobnicate"),
        (["evaluate", "gt.json", "dt.json", "--output"], "--output"),
        (["evaluate", "gt.json", "dt.json", "--dets-per-image", "many"], "--dets-per-image"),
        (["evaluate", "gt.json", "dt.json", "--dets-per-class", "1.5"], "--dets-per-class"),
        (["evaluate", "gt.json", "dt.json", "--threads", "two"], "--threads"),
        (["sweep"], "GT"),
        (["sweep", "gt.json"], "DT"),
        (["sweep", "gt.json", "dt.json", "--rerank", "few"], "--rerank"),
        (["compare"], "GT"),
        (["compare", "gt.json"], "Missing argument 'DT'"),
        (["compare", "gt.json", "dt.json", "dt.json", "--resamples", "many"], "--resamples"),
        (["check"], "GT"),
        (["check", "gt.json", "dt.json", "more.json"], "more.json"),
        (["convert", "dt.json"], "--output"),
        (["convert", "-o", "out.json"], "DT"),
        (["convert", "dt.json", "more.json", "-o", "out.json"], "more.json"),
        (["convert", "dt.json", "-o", "out.json", "--dets-per-class", "x"], "--dets-per-class"),
        (["demo", "--images", "x"], "--images"),
        (["train"], "CONFIG.toml"),
        (["train", "config.toml", "--frobnicate"], "--frobnicate"),
        (["predict", "run", "images", "--frobnicate"], "--frobnicate"),
        (["synth", "folder", "--frobnicate"], "--frobnicate"),
        (["calibrate", "frobnicate"], "frobnicate"),
        (["calibrate", "fit"], "GT"),
        (["calibrate", "fit", "gt.json"], "DT"),
        (["calibrate", "fit", "gt.json", "dt.json"], "--output"),
        (["calibrate", "fit", "gt.json", "dt.json", "-o", "c.json", "--folds", "2"], "--folds"),
        (["calibrate", "fit", "gt.json", "dt.json", "-o", "c.json", "x.json"], "x.json"),
        (["calibrate", "apply", "cal.json", "dt.json"], "--output"),
        (["calibrate", "apply", "-o", "out.json"], "CAL.json"),
        (["calibrate", "apply", "cal.json", "-o", "out.json"], "DT"),
        (["calibrate", "compare", "gt.json"], "DT"),
        (["calibrate", "compare", "gt.json", "dt.json", "--train", "gt.json"], "--train"),
        (["calibrate", "compare", "gt.json", "dt.json", "--folds", "few"], "--folds"),
        (["calibrate", "measure", "gt.json"], "DT"),
        (["calibrate", "measure", "gt.json", "dt.json", "--iou-threshold", "x"], "--iou-threshold"),
    ],
)
def test_command_lines_that_make_no_sense(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair(tmp_path)
    monkeypatch.chdir(tmp_path)
    run = lvdet_command if arguments[0] == "--frobnicate" else lvdet_call
    run(*arguments).refused(says, "--help")


# What is imported

HEAVY = ["scipy", "pyarrow", "plotly", "torch", "torchvision", "jinja2", "ray"]
IMPORTED = """
import atexit, sys
atexit.register(lambda: print(*sorted(sys.modules), file=sys.stderr))
from lvdet.cli import main
main()
"""


def imported(*arguments: str | Path) -> set[str]:
    """The packages that a run of the command line has loaded."""
    done = python_program(IMPORTED, *arguments)
    assert done.code == 0, done
    return {name.split(".")[0] for name in done.err.splitlines()[-1].split()}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["evaluate", "--help"],
        ["sweep", "--help"],
        ["calibrate"],
        ["calibrate", "compare", "--help"],
        ["train", "--help"],
        ["predict", "--help"],
    ],
)
def test_help_is_light(arguments: list[str]) -> None:
    loaded = imported(*arguments)
    assert "lvdet" in loaded
    assert loaded.isdisjoint([*HEAVY, "numpy"])


def test_evaluating_json_is_light(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    output = tmp_path / "scores.json"
    loaded = imported("evaluate", gt, dt, "--output", output, "--class-table", tmp_path / "c.csv")
    assert output.exists()
    assert "numpy" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_sweeping_and_checking_json_is_light(tmp_path: Path) -> None:
    files = pair(tmp_path)
    assert imported("sweep", *files, "--output", tmp_path / "tables.tex").isdisjoint(HEAVY)
    assert imported("check", *files).isdisjoint(HEAVY)


# Output that cannot be written


def test_a_full_disk(tmp_path: Path) -> None:
    """A real limit on the size of files: the old result stays, nothing is left beside it."""
    gt, dt = pair(tmp_path)
    out = tmp_path / "out"
    out.mkdir()
    save(out / "scores.json", "as it was")
    command = f'ulimit -f 0; exec "{COMMAND}" evaluate "{gt}" "{dt}" --output "{out}/scores.json"'
    shell_command(command).refused(f"lvdet: error: {out}/scores.json: cannot write: ", code=1)
    assert [path.name for path in out.iterdir()] == ["scores.json"]
    assert (out / "scores.json").read_text() == "as it was"


@pytest.mark.parametrize(("option", "ending"), [("--output", ".json"), ("--class-table", ".csv")])
@pytest.mark.parametrize("name", ["nowhere/out", "folder", "gt.json/out"])
def test_a_target_that_cannot_be(option: str, ending: str, name: str, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    target = f"{name}{ending}"
    (tmp_path / f"folder{ending}").mkdir()
    done = lvdet_call("evaluate", gt, dt, option, tmp_path / target)
    done.refused(f"{tmp_path / target}: cannot write", code=1)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"gt.json", "dt.json", f"folder{ending}"}


@pytest.mark.parametrize("verb", ["evaluate", "check"])
def test_standard_output_that_is_full(verb: str, tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [COMMAND, verb, gt, dt], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert done.stderr.decode().count("\n") == 1
    assert b"No space left" in done.stderr


def test_a_reader_that_goes_away(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    command = f'"{COMMAND}" evaluate "{gt}" "{dt}" | true; exit ${{PIPESTATUS[0]}}'
    done = shell_command(command)
    assert done.code in (0, 1, 141), done
    assert done.err.count("\n") <= 1, done


def test_an_interrupted_command(tmp_path: Path) -> None:
    """Stopped while it reads: it has taken more than a pipe holds, and waits for the rest."""
    gt, _ = pair(tmp_path)
    with lvdet_started("evaluate", gt, "-", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b" " * (1 << 20))
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        process.wait(60)
        process.stdin.close()
        err = process.stderr.read().decode()
    assert process.returncode == 130, err
    assert err in ("", "lvdet: error: interrupted\n")


def test_a_terminal_that_knows_only_ascii(tmp_path: Path) -> None:
    """Undefined numbers are shown by a dash that ASCII does not have."""
    done = lvdet_command("evaluate", *pair(tmp_path), PYTHONIOENCODING="ascii")
    assert done.code == 0, done
    assert "AP-Fixed" in done.out


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    gt, dt = pair(tmp_path)
    odd = dt.rename(tmp_path / "r\udcff.json")
    done = lvdet_command("evaluate", gt, odd, "--output", tmp_path / "scores.json")
    assert done.code == 0, done
    assert (tmp_path / "scores.json").exists()
