"""Printing, on a terminal or into a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from lvdet.cli.targets import require_target

if TYPE_CHECKING:
    from rich.console import Console, Group, RenderableType
    from rich.table import Table

    from lvdet.evaluation.evaluation_result import Evaluation
    from lvdet.files.progress import Update
    from lvdet.rendering.result import Result
    from lvdet.rendering.table_text import Layout


def plain() -> bool:
    """Whether NO_COLOR asks for text without escape sequences."""
    return bool(os.environ.get("NO_COLOR"))


def styled(stream: TextIO) -> bool:
    """Whether escape sequences may be written to a stream."""
    return stream.isatty() and not plain()


def warn(text: str) -> None:
    """Prints a warning to stderr, on one line."""
    mark = "\033[33mwarning:\033[0m" if styled(sys.stderr) else "warning:"
    print(f"{mark} {text}", file=sys.stderr)


def fail(text: str) -> None:
    """Prints a failed requirement to stderr, on one line."""
    print(f"failed: {text}", file=sys.stderr)


def note(text: str) -> None:
    """Prints a remark on how the command was called to stderr, on one line."""
    print(f"note: {text}", file=sys.stderr)


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, color_system=None if plain() else "auto")


@contextmanager
def progress_bar(title: str, /, *, unit: str = "bytes") -> Iterator[Update | None]:
    """A progress bar on stderr; yields None when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    if plain():
        with _plain_bar(title) as update:
            yield update
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    of_bytes = (DownloadColumn(), TransferSpeedColumn())
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *(of_bytes if unit == "bytes" else (MofNCompleteColumn(), TextColumn(unit))),
        TimeRemainingColumn(),
        console=_console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def _plain_bar(title: str) -> Iterator[Update]:
    """A percentage that is redrawn without escape sequences, and erased at the end."""
    shown = ""

    def show(text: str) -> None:
        nonlocal shown
        if text != shown:
            print(f"\r{text:<{len(shown)}}", end="", file=sys.stderr, flush=True)
            shown = text

    show(title)
    try:
        yield lambda done, total: show(f"{title} {done / total:.0%}" if total else title)
    finally:
        show("")
        print("\r", end="", file=sys.stderr, flush=True)


RESULT_ENDINGS = (".json", ".md", ".tex")


def require_outputs(paths: Sequence[Path] | None, endings: Sequence[str] = RESULT_ENDINGS) -> None:
    """Raises for output files that could not be written, before the work begins."""
    for path in paths or []:
        require_target(path, endings)


def finish(result: Result, outputs: Sequence[Path] | None = None) -> None:
    """Writes a result to files, and prints its tables, notes and warnings."""
    for path in outputs or []:
        result.save(path)
    print_tables(result.title(), result.layouts())
    for text in result.notes():
        print(f"\n{text}")
    for text in result.warnings:
        warn(text)


def print_evaluation(result: Evaluation) -> None:
    """Prints the table of protocols: drawn if the terminal is wide enough, otherwise as text."""
    if sys.stdout.isatty():
        console, table = _console(), drawn_table(result)
        if fits(console, table):
            console.print(table)
            if result.agnostic_recall:
                draw_tables(console, "", result.recall_layouts())
            for text in result.notes():
                print(text)
            return
    print(result)


def print_tables(title: str, layouts: Sequence[Layout]) -> None:
    """Prints tables under a title ("" for none), as plain text in a pipe."""
    if not sys.stdout.isatty():
        from lvdet.rendering.table_text import text

        print(f"{title}\n\n{text(layouts)}" if title else f"\n{text(layouts)}")
        return
    draw_tables(_console(), title, layouts)


def draw_tables(console: Console, title: str, layouts: Sequence[Layout]) -> None:
    """Draws tables under a title. A table wider than the console is printed as plain text, because
    rich would truncate its numbers."""
    from rich.text import Text

    from lvdet.rendering.table_text import text

    console.print(Text(f"{title}\n" if title else ""))
    for layout in layouts:
        table = drawn_layout(layout)
        if fits(console, table):
            console.print(table)
        else:
            console.print(Text(f"{text([layout])}\n"), soft_wrap=True)


def fits(console: Console, table: RenderableType) -> bool:
    """Whether the table fits the width of the console."""
    from rich.measure import Measurement

    unbounded = console.options.update(max_width=10_000)
    return Measurement.get(console, unbounded, table).maximum <= console.width


def drawn_layout(layout: Layout) -> Table:
    """The layout as a rich table, with coloured deltas beside the values."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        title=Text(layout.title),
        title_justify="left",
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for head in layout.head:
        table.add_column(Text(head.replace("/", "/\n", 1)), justify="right", no_wrap=True)
    for line in layout.lines:
        cells = []
        for cell in line:
            space = " " if cell.delta else ""
            cells.append(Text.assemble(cell.value, space, (cell.delta, colour(cell.delta))))
        table.add_row(*cells)
    return table


def colour(delta: str) -> str:
    """Green for a rise, red for a fall, none for 0."""
    if not delta.strip("+-0."):
        return ""
    return "red" if delta.startswith("-") else "green"


def drawn_table(result: Evaluation) -> Group:
    """The table of protocols as a rich table, under its title."""
    from rich import box
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    header, budgets, *rows = result.table()
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("")
    for name, budget in zip(header[1:], budgets[1:], strict=True):
        table.add_column(Text.assemble(name, "\n", (budget, "dim")), justify="right")
    for row in rows:
        style = "bold" if row[0] == "AP" else ""
        table.add_row(*map(escape, row), style=style, end_section=row[0] in ("AP75", "APl", "APf"))
    return Group(Text(result.title()), table)
