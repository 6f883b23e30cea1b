"""The paper's figure of scores by frequency, drawn as SVG without a browser."""

from __future__ import annotations

from html import escape

from lvdet.evaluation.score_levels import SHARES
from lvdet.experiments.paper_item import Experiment
from lvdet.experiments.result_files import ResultSet
from lvdet.reporting.figures.style import GROUP_COLOURS
from lvdet.tables.categories import FREQUENCY_NAMES

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 720, 340, 52, 36, 40


def score_figure(experiment: Experiment, results: ResultSet) -> str:
    """Boxes from the 25th to the 75th of a hundred detections, whiskers from the 5th to the 95th,
    a dot at the mean; in units of the mean score of frequent classes, of one seed."""
    shown: list[tuple[str, str, list[float]]] = []
    for row in experiment.rows:
        for group in FREQUENCY_NAMES:
            seed = next(iter(results.seeds(row.config, pilots=True)), -1)
            names = (*(f"{group}.{share:g}" for share in SHARES), f"{group}.mean")
            values = [results.value(row.config, seed, row.at, name) for name in names]
            known = [value for value in values if value is not None]
            if len(known) == len(values):
                shown.append((row.label, group, known))
    top = max((numbers[4] for *_, numbers in shown), default=1.0) or 1.0
    step = (WIDTH - LEFT - 12) / max(len(shown), 1)

    def y(value: float) -> float:
        return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top), 1)

    parts = [_axis(top, y(0), y(top))]
    for place, (label, group, numbers) in enumerate(shown):
        x, half = LEFT + step * (place + 0.5), step * 0.3
        low, first, middle, third, high, mean = map(y, numbers)
        ink = f'stroke="{GROUP_COLOURS[group]}"'
        parts += [
            f'<path d="M{x:.1f} {low}V{first}M{x:.1f} {third}V{high}" {ink}/>',
            f'<rect x="{x - half:.1f}" y="{third}" width="{2 * half:.1f}" '
            f'height="{round(first - third, 1)}" fill="none" {ink}/>',
            f'<path d="M{x - half:.1f} {middle}h{2 * half:.1f}" {ink} stroke-width="2"/>',
            f'<circle cx="{x:.1f}" cy="{mean}" r="3" fill="{GROUP_COLOURS[group]}"/>',
        ]
        if group == "c":
            parts.append(_text(x, HEIGHT - 14, label, "middle"))
    for place, (group, name) in enumerate(FREQUENCY_NAMES.items()):
        parts.append(_text(LEFT + 90 * place, 18, name, "start", GROUP_COLOURS[group]))
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="sans-serif" font-size="13">\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _axis(top: float, zero: float, end: float) -> str:
    line = f'<path d="M{LEFT} {end}V{zero}H{WIDTH - 12}" stroke="#7a8290" fill="none"/>'
    return "\n".join(
        [line, _text(LEFT - 6, zero, "0", "end"), _text(LEFT - 6, end + 5, f"{top:.2g}", "end")]
    )


def _text(x: float, y: float, text: str, anchor: str, colour: str = "#1b2028") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(text)}</text>"
    )
