"""Tables as text: plain, Markdown, LaTeX and HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "∞": r"$\infty$",
        "–": "--",
    }
)


@dataclass(frozen=True)
class Cell:
    """A value, and its difference from the value it is compared with ("" for none)."""

    value: str
    delta: str = ""


@dataclass(frozen=True)
class Layout:
    """A table for readers: its name ("" for none), its title, its head and its lines."""

    name: str
    title: str
    head: list[str]
    lines: list[list[Cell]]


def plain(name: str) -> str:
    """The name without characters that move the cursor, break the line or change text direction."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def percent(value: float | None, digits: int = 2) -> str:
    """A fraction in percent, "–" where undefined."""
    return "–" if value is None or math.isnan(value) else f"{100 * value:.{digits}f}"


def signed(delta: float | None, digits: int = 2) -> str:
    """A difference of fractions with its sign, "" where undefined; differences that round to 0 are
    +0."""
    if delta is None or math.isnan(delta):
        return ""
    return f"{round(100 * delta, digits) + 0.0:+.{digits}f}"


def compared(title: str, lines: Mapping[str, Mapping[str, float]]) -> Layout:
    """A table of metrics, one line per set of them, with deltas from the first. Metrics that are
    undefined everywhere are left out, except the first."""
    base, *others = lines.values()
    first, *rest = base
    shown = [
        first,
        *(key for key in rest if not all(math.isnan(one[key]) for one in (base, *others))),
    ]
    rows = [[Cell(label)] for label in lines]
    for row, values in zip(rows, lines.values(), strict=True):
        for key in shown:
            delta = None if values is base else values[key] - base[key]
            row.append(Cell(percent(values[key]), signed(delta)))
    return Layout("", title, ["", *shown], rows)


def text(layouts: Sequence[Layout]) -> str:
    """Columns aligned with spaces, deltas beside the values."""
    return "\n\n".join(_text(layout) for layout in layouts)


def markdown(layouts: Sequence[Layout]) -> str:
    """Markdown tables, under headings."""
    parts = []
    for layout in layouts:
        rule = ["---:" if right else "---" for right in _right_aligned(layout)]
        lines = [layout.head, rule]
        lines += [[_together(cell) for cell in line] for line in layout.lines]
        body = "\n".join(f"| {' | '.join(map(_unbarred, line))} |" for line in lines)
        parts.append(f"### {layout.title}\n\n{body}\n")
    return "\n".join(parts)


def latex(layouts: Sequence[Layout]) -> str:
    """One `table` environment each, for the package booktabs."""
    parts = []
    for layout in layouts:
        head = " & ".join(map(_escaped, layout.head))
        lines = [" & ".join(map(_latex_cell, line)) for line in layout.lines]
        columns = "".join("r" if right else "l" for right in _right_aligned(layout))
        parts.append(
            "\n".join(
                [
                    r"\begin{table}",
                    r"    \centering",
                    rf"    \begin{{tabular}}{{{columns}}}",
                    r"        \toprule",
                    rf"        {head} \\",
                    r"        \midrule",
                    *(rf"        {line} \\" for line in lines),
                    r"        \bottomrule",
                    r"    \end{tabular}",
                    rf"    \caption{{{_escaped(layout.title)}.}}",
                    rf"    \label{{tab:{layout.name}}}",
                    r"\end{table}",
                    "",
                ]
            )
        )
    return "\n".join(parts)


def html(title: str, layouts: Sequence[Layout], notes: Sequence[str] = ()) -> str:
    """Tables for a notebook, under a title; all text is escaped."""
    from html import escape

    parts = [f"<p>{escape(title)}</p>"]
    for layout in layouts:
        head = "".join(f"<th>{escape(cell)}</th>" for cell in layout.head)
        lines = "".join(
            f"<tr>{''.join(f'<td>{escape(_together(cell))}</td>' for cell in line)}</tr>"
            for line in layout.lines
        )
        parts.append(
            f"<table><caption>{escape(layout.title)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"
        )
    return "".join([*parts, *(f"<p>{escape(note)}</p>" for note in notes)])


def _text(layout: Layout) -> str:
    columns = [[line[place] for line in layout.lines] for place in range(len(layout.head))]
    set_columns = [_set(head, cells) for head, cells in zip(layout.head, columns, strict=True)]
    lines = ["  ".join(line).rstrip() for line in zip(*set_columns, strict=True)]
    name = f" ({layout.name})" if layout.name else ""
    return "\n".join([layout.title + name, *lines])


def _set(head: str, cells: Sequence[Cell]) -> list[str]:
    """The lines of a column, padded to one width: the head above the values, deltas behind them."""
    left = max(len(head), *(len(cell.value) for cell in cells))
    right = max(len(cell.delta) for cell in cells)
    space = " " if right else ""
    return [
        f"{first:>{left}}{space}{second:>{right}}"
        for first, second in [(head, ""), *((cell.value, cell.delta) for cell in cells)]
    ]


def _right_aligned(layout: Layout) -> list[bool]:
    """For each column, whether all its values are numbers or missing."""
    return [
        all(_begins_a_number(line[place].value) for line in layout.lines)
        for place in range(len(layout.head))
    ]


def _begins_a_number(value: str) -> bool:
    return value in ("", "–") or value.lstrip("+-")[:1] in {*"0123456789∞"}


def _together(cell: Cell) -> str:
    return f"{cell.value} ({cell.delta})" if cell.delta else cell.value


def _unbarred(value: str) -> str:
    harmless = value.replace("\\", "\\\\").replace("|", r"\|").replace("<", "&lt;")
    return " ".join(harmless.split())


def _escaped(value: str) -> str:
    return " ".join(value.split()).translate(_LATEX)


def _latex_cell(cell: Cell) -> str:
    if not cell.delta:
        return _escaped(cell.value)
    sign, number = cell.delta[0], cell.delta[1:]
    return rf"{_escaped(cell.value)} {{\scriptsize ${sign}{number}$}}"
