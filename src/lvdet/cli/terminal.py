"""What the verbs print, on a terminal or into a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Group

    from lvdet.metrics.result import Evaluation
    from lvdet.metrics.table_text import Layout
    from lvdet.read.files import Progress


def warn(text: str) -> None:
    """A warning on stderr, in one line."""
    mark = "\033[33mwarning:\033[0m" if sys.stderr.isatty() else "warning:"
    print(f"{mark} {text}", file=sys.stderr)


@contextmanager
def progress_bar(title: str) -> Iterator[Progress | None]:
    """A bar on stderr with rate and time left; None where nobody is looking."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_evaluation(result: Evaluation) -> None:
    """The table of protocols: drawn on a terminal, plain text in a pipe."""
    if not sys.stdout.isatty():
        print(result)
        return
    from rich.console import Console

    Console().print(drawn_table(result))


def print_tables(title: str, layouts: Sequence[Layout]) -> None:
    """Tables of limits under a line that says what was evaluated; plain text in a pipe."""
    if not sys.stdout.isatty():
        from lvdet.metrics.table_text import text

        print(title, text(layouts), sep="\n\n")
        return
    from rich.console import Console

    Console().print(drawn_layouts(title, layouts))


def drawn_layouts(title: str, layouts: Sequence[Layout]) -> Group:
    """Tables of limits for rich to draw, deltas in colour beside their values."""
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Text | Table] = [Text(title)]
    for layout in layouts:
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
                colour = "red" if cell.delta.startswith("-") else "green"
                space = " " if cell.delta else ""
                cells.append(Text.assemble(cell.value, space, (cell.delta, colour)))
            table.add_row(*cells)
        parts.append(table)
    return Group(*parts)


def drawn_table(result: Evaluation) -> Group:
    """The table of protocols for rich to draw, under a line that says what was evaluated."""
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
