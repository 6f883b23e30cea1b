"""Figures and tables for papers, as files."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import plotly.graph_objects as go
import plotly.io

from lvdet.errors import LvdetError
from lvdet.extras import extra
from lvdet.files.progress import Progress, track
from lvdet.files.writing import make_folder, write_text, write_whole
from lvdet.rendering.csv_text import csv_text
from lvdet.rendering.table_text import Layout, latex, markdown
from lvdet.reporting.class_table import class_columns
from lvdet.reporting.figures.catalogue import all_figures
from lvdet.reporting.figures.style import theme
from lvdet.reporting.report_tables import (
    calibration_error_table,
    calibration_table,
    confusion_tables,
    detail_table,
    error_tables,
    protocol_table,
)

if TYPE_CHECKING:
    from lvdet.reporting.report import Report

#: Width and default height of a figure in pixels, the scale of PNG files, and how many figures are
#: drawn at a time.
WIDTH, HEIGHT, SCALE, AT_A_TIME = 640, 400, 3, 8
_HOW = "writing figures needs kaleido and Chrome or Chromium: pip install 'lvdet[figures]'"


def write_paper_files(report: Report, folder: Path, progress: Progress | None = None) -> list[Path]:
    """Writes figures as PDF and PNG, tables as .tex, .md and .csv; each whole or not at all."""
    make_folder(folder)
    written = _write_tables(report, folder)
    figures: dict[str, go.Figure] = {}
    for name, versions in all_figures(report.studies, report.comparison).items():
        for place, figure in enumerate(versions):
            if figure is not None:
                number = f"-{place + 1}" if len(versions) > 1 else ""
                figures[name + number] = _on_paper(figure)
    with track(progress, "drawing figures", "figures") as update:
        for begin in range(0, len(figures), AT_A_TIME):
            names = list(figures)[begin : begin + AT_A_TIME]
            written += _draw({name: figures[name] for name in names}, folder)
            if update is not None:
                update(begin + len(names), len(figures))
    return written


def require_drawing() -> None:
    """Raises, before the work begins, if figures cannot be drawn as files."""
    with extra("figures", "writing figures"):
        import kaleido  # noqa: F401


def _on_paper(figure: go.Figure) -> go.Figure:
    drawn = go.Figure(figure)
    return drawn.update_layout(template=theme(dark=False), paper_bgcolor="#ffffff")


def _draw(figures: dict[str, go.Figure], folder: Path) -> list[Path]:
    """Draws into a temporary folder first, so that no file is ever incomplete."""
    names = [f"{name}{ending}" for name in figures for ending in (".pdf", ".png")]
    with tempfile.TemporaryDirectory() as drawn:
        paths = [Path(drawn) / name for name in names]
        try:
            plotly.io.write_images(
                [figure for figure in figures.values() for _ in range(2)],
                paths,
                width=WIDTH,
                height=[
                    max(figure.layout.height, HEIGHT) for figure in figures.values() for _ in "12"
                ],
                scale=[1, SCALE] * len(figures),
            )
        except Exception as error:  # whatever a browser may say
            first = str(error).strip().splitlines() or [type(error).__name__]
            raise LvdetError(f"{_HOW} ({first[0]})") from None
        for name, path in zip(names, paths, strict=True):
            with write_whole(folder / name) as file:
                file.write(path.read_bytes())
    return [folder / name for name in names]


def _write_tables(report: Report, folder: Path) -> list[Path]:
    layouts = [protocol_table(report.studies), detail_table(report.studies)]
    calibrations = (calibration_table(report.studies), calibration_error_table(report.studies))
    layouts += [layout for layout in calibrations if layout is not None]
    layouts += [*error_tables(report.studies), *confusion_tables(report.studies)]
    layouts += [] if report.comparison is None else report.comparison.layouts(labelled=True)
    texts = {
        "tables.tex": latex(layouts),
        "tables.md": markdown(layouts),
        "tables.csv": _csv(layouts),
        "classes.csv": _classes(report),
    }
    for name, text in texts.items():
        write_text(text, folder / name)
    return [folder / name for name in texts]


def _csv(layouts: Sequence[Layout]) -> str:
    """All tables in sequence, each line with the name of its table."""
    rows = [
        [layout.title, line[0].value, head, cell.value, cell.delta]
        for layout in layouts
        for line in layout.lines
        for head, cell in zip(layout.head[1:], line[1:], strict=True)
    ]
    return csv_text([["table", "row", "column", "value", "delta"], *rows])


def _classes(report: Report) -> str:
    """A row for each class; empty cells are undefined."""
    columns = class_columns(report.studies)
    categories = report.studies[0].evaluation.categories
    heads = [f"{one.title} {one.of}".strip() for one in columns]
    values = [one.values for one in columns]
    rows = zip(categories.ids.tolist(), categories.names, *values, strict=True)
    return csv_text([["id", "name", *heads], *rows])
