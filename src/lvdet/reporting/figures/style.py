"""What all figures share: colours, names of groups, and text that is safe for Plotly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from lvdet.tables.categories import FREQUENCY_NAMES

#: Detectors, in order. All contrast with a white and with a dark background.
MODEL_COLOURS = ("#3b7dd8", "#d1701f", "#1a98a6", "#9b5de5", "#c2478f", "#7a8290")
GROUP_COLOURS = {"all": "#7a8290", "r": "#d64545", "c": "#b3830f", "f": "#2e9e5b"}
GROUP_DASHES = {"all": "solid", "r": "dot", "c": "dash", "f": "longdash"}
GROUP_NAMES = {"all": "all", **FREQUENCY_NAMES}
_LONGEST = 40


def plain(text: str) -> str:
    """Text that Plotly shows literally, shortened in the middle if it is long. Plotly interprets
    tags, entities and formulas in everything it draws."""
    short = shortened(text, _LONGEST)
    for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("$", "&#36;")):
        short = short.replace(sign, entity)
    return " ".join(short.split())


def shortened(text: str, longest: int) -> str:
    """The text, or both its ends if it is longer than that."""
    if len(text) <= longest:
        return text
    half = (longest - 1) // 2
    return f"{text[: longest - 1 - half]}…{text[-half:]}"


def model_colour(place: int) -> str:
    """The colour of a detector."""
    return MODEL_COLOURS[place % len(MODEL_COLOURS)]


def limit_text(limit: int | None) -> str:
    """A limit on an axis."""
    return "no limit" if limit is None else f"{limit:,}"


def percents(values: Sequence[float]) -> list[float | None]:
    """Fractions in percent, to three digits after the point; None where undefined."""
    return [None if value != value else round(100 * value, 3) for value in values]


def figure(x: str, y: str, **layout: Any) -> go.Figure:
    """An empty figure with the names of its axes."""
    return go.Figure(
        layout={
            "xaxis": {"title": {"text": x}},
            "yaxis": {"title": {"text": y}},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
            "margin": {"l": 56, "r": 16, "t": 48, "b": 52},
            "height": 380,
            "hovermode": "x unified",
            "template": "none",
        }
        | layout
    )


def theme(dark: bool) -> dict[str, Any]:
    """The template of a figure on a light or a dark page."""
    ink, faint = ("#e6e9ee", "#343b46") if dark else ("#1b2028", "#dfe3e9")
    axis = {
        "gridcolor": faint,
        "linecolor": faint,
        "zerolinecolor": faint,
        "automargin": True,
        "title": {"standoff": 8},
    }
    return {
        "layout": {
            "font": {"color": ink, "family": "system-ui, sans-serif", "size": 13},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "hoverlabel": {
                "bgcolor": "#20262f" if dark else "#ffffff",
                "bordercolor": faint,
                "font": {"color": ink},
            },
            "xaxis": axis,
            "yaxis": axis,
        }
    }
