"""The page: a report in, HTML out."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from lvdet import __version__
from lvdet.reporting.class_table import class_columns, class_data
from lvdet.reporting.figures.catalogue import all_figures
from lvdet.reporting.figures.style import MODEL_COLOURS, theme
from lvdet.reporting.report_tables import (
    budget_words,
    calibration_error_table,
    calibration_table,
    error_tables,
    headlines,
    metric_table,
)
from lvdet.reporting.scenes import marks, text_size
from lvdet.reporting.wording import (
    calibration_words,
    error_words,
    facts,
    footer,
    lead,
    limit_words,
    picture_words,
    score_words,
)

if TYPE_CHECKING:
    from lvdet.reporting.report import Report

_SIGNS = {"correct": "✓", "incorrect": "✗", "not counted": "–"}


def render(report: Report) -> str:
    """The page, self-contained."""
    studies, comparison = report.studies, report.comparison
    evaluation = studies[0].evaluation
    figures = all_figures(studies, comparison)
    columns = class_columns(studies)
    js, plotly = _own("report.js"), Markup(f"\n{get_plotlyjs()}\n")
    data = {
        "figures": {name: [_plain(one) for one in each] for name, each in figures.items()},
        "themes": {"light": theme(dark=False), "dark": theme(dark=True)},
        "colours": MODEL_COLOURS,
        "classes": class_data(studies, columns),
    }
    return (
        _environment()
        .get_template("report.html")
        .render(
            version=__version__,
            names=[study.name for study in studies],
            facts=facts(report),
            lead=lead(report),
            footer=footer(report),
            sections=_sections(report),
            warnings=report.warnings,
            findings=report.notes(),
            protocols=headlines(studies),
            metric_table=metric_table(studies),
            comparison_tables=[] if comparison is None else comparison.layouts(),
            comparison_says="" if comparison is None else comparison.title(),
            confidence="" if comparison is None else f"{100 * comparison.confidence:g}%",
            has_groups=bool(evaluation.categories.groups()),
            fixed_budget=budget_words(evaluation["fixed"].budget),
            class_columns=columns,
            calibration_says=[calibration_words(study) for study in studies],
            calibration_table=calibration_table(studies),
            calibration_error_table=calibration_error_table(studies),
            errors_say=error_words(report),
            error_tables=error_tables(studies),
            pictures=[study.pictures for study in studies] if studies[0].pictures else [],
            scores_say=score_words(report),
            limits_say=limit_words(report),
            pictures_say=picture_words(report),
            thumbnails=_thumbnails(report),
            marks=marks,
            text_size=text_size,
            signs=_SIGNS,
            may_lack={name for name, each in figures.items() if None in each},
            data=data,
            css=_own("report.css"),
            js=js,
            plotly=plotly,
            policy=_policy([js, plotly]),
        )
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("lvdet.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


def _policy(scripts: Sequence[str]) -> str:
    """The Content-Security-Policy: these scripts, styles and pictures of the page's own, and no
    network. Plotly sets styles of its own while it draws, so styles have no hashes."""
    hashes = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts)
    sources = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return (
        f"default-src 'none'; script-src {sources}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _own(name: str) -> Markup:
    """A template file that goes into the page as it is."""
    return Markup(files("lvdet.reporting").joinpath("templates", name).read_text(encoding="utf-8"))


def _plain(figure: go.Figure | None) -> dict[str, Any] | None:
    """A figure without its template: the page has its own."""
    if figure is None:
        return None
    content: dict[str, Any] = figure.to_plotly_json()
    content["layout"].pop("template", None)
    return content


def _sections(report: Report) -> dict[str, str]:
    """Ids and titles of the sections."""
    sections = {"numbers": "Three numbers"}
    if report.comparison is not None:
        sections["comparison"] = "Comparison"
    sections |= {
        "limits": "Effect of limits",
        "precision": "Precision and recall",
        "classes": "Classes",
        "scores": "Scores",
        "calibration": "Calibration",
        "errors": "Errors",
    }
    if report.studies[0].pictures:
        sections["images"] = "Images"
    return sections


def _thumbnails(report: Report) -> list[dict[str, Any]]:
    """Each image once, even if several detectors show it."""
    found = {}
    for study in report.studies:
        for picture in study.pictures:
            found[picture.image_id] = {
                "image_id": picture.image_id,
                "width": picture.width,
                "height": picture.height,
                "data": base64.b64encode(picture.thumbnail).decode(),
            }
    return list(found.values())
