"""What is drawn on a terminal: every number whole, whatever the width."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

import lvdet
from cli.run_lvdet import COMMAND
from lvdet.cli.terminal import colour, draw_tables, drawn_table, fits
from lvdet.rendering.table_text import Layout
from tabled import Tables, write_case


@pytest.fixture(scope="module")
def uncut() -> Tables:
    return lvdet.simulate(images=60, classes=400, dets_per_image=None, seed=1)


def drawn(title: str, layouts: list[Layout], width: int) -> str:
    page = io.StringIO()
    draw_tables(Console(file=page, width=width), title, layouts)
    return page.getvalue()


def require_whole(layouts: list[Layout], page: str) -> None:
    """Every line of every table is there: its cells one after another."""
    lines = [" ".join(line.split()) for line in page.splitlines()]
    for layout in layouts:
        for row in layout.lines:
            cells = [part for cell in row for part in (cell.value, cell.delta) if part]
            assert " ".join(" ".join(cells).split()) in lines


@pytest.mark.parametrize("width", [40, 80, 200])
def test_numbers_are_whole(truncated: Tables, uncut: Tables, width: int) -> None:
    swept = lvdet.sweep(
        *truncated,
        paper="all",
        dets_per_image=[100, 300, None],
        dets_per_class=[1_000, None],
        order="both",
        subsets=["r", "rcf"],
    )
    audits = lvdet.audit(*uncut), lvdet.audit(*truncated)
    for result in (swept, *audits, lvdet.rerank(*uncut), lvdet.diagnose(*uncut)):
        layouts = result.layouts()
        page = drawn(result.title(), layouts, width)
        assert "…" not in page
        require_whole(layouts, page)


def test_tables_that_fit_are_drawn(uncut: Tables) -> None:
    layouts = lvdet.sweep(*uncut, paper="image-limit").layouts()
    assert "───" in drawn("", layouts, 80)
    assert "───" not in drawn("", layouts, 30)


def test_the_table_of_protocols_fits_or_not(truncated: Tables) -> None:
    table = drawn_table(lvdet.evaluate(*truncated))
    assert fits(Console(file=io.StringIO(), width=80), table)
    assert not fits(Console(file=io.StringIO(), width=30), table)


@pytest.mark.parametrize(
    ("delta", "expected"),
    [("+1.20", "green"), ("-0.01", "red"), ("+0.00", ""), ("-0.0", ""), ("", "")],
)
def test_colours(delta: str, expected: str) -> None:
    assert colour(delta) == expected


def on_a_terminal(*arguments: str | Path, **environment: str) -> str:
    """What a successful command writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    with subprocess.Popen(
        [COMMAND, *arguments],
        stdout=theirs,
        stderr=theirs,
        env=variables | {"COLUMNS": "80", "TERM": "xterm-256color"} | environment,
    ) as process:
        os.close(theirs)
        page = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            page += part
    os.close(ours)
    assert process.returncode == 0, page.decode()
    return page.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", [["audit"], ["evaluate", "--errors"]])
def test_on_a_terminal_of_80_columns(command: list[str], uncut: Tables, tmp_path: Path) -> None:
    """The command itself, with somebody looking."""
    page = on_a_terminal(*command, *write_case(*uncut, tmp_path), NO_COLOR="")  # means unset
    assert "\x1b[" in page
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", page)
    asked = lvdet.audit if command == ["audit"] else lvdet.diagnose
    require_whole(asked(*uncut).layouts(), plain)


def test_no_color_leaves_no_escape_sequence(truncated: Tables, tmp_path: Path) -> None:
    """Not in tables, warnings or progress; the words stay."""
    gt, dt = write_case(*truncated, tmp_path)
    for arguments, environment in (
        (["--no-color", "evaluate", gt, dt, "--protocols", "fixed"], {}),
        (["evaluate", gt, dt, "--protocols", "fixed"], {"NO_COLOR": "1"}),
    ):
        page = on_a_terminal(*arguments, **environment)
        assert "\x1b" not in page
        assert "reading results" in page  # the progress is still drawn
        assert "warning: " in page
        assert "───" in page
