"""Tables of a report, for the page and for files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan

from lvdet.calibration.detection_errors import CONDITIONS
from lvdet.calibration.reliability import ReliabilityCurve
from lvdet.evaluation.summary import NAMES
from lvdet.rendering.table_text import Cell, Layout, percent, signed
from lvdet.reporting.calibration_study import CalibrationStudy
from lvdet.reporting.detector_study import Study

_COMPETE = " Classes compete for the limit."
_SAYS = {
    "old": "Mean over classes, as most papers report it.",
    "fixed": "Mean over classes. Classes do not compete.",
    "pool": "One ranking of all classes. Scores must be comparable across classes.",
}
_DETAILS = ("AP50", "AP75", "APs", "APm", "APl", "AR")


@dataclass(frozen=True)
class Headline:
    """The number of a protocol for each detector, with its budget and what it means."""

    title: str
    budget: str
    numbers: list[Cell]
    says: str


def headlines(studies: Sequence[Study]) -> list[Headline]:
    """The three numbers."""
    first = studies[0].evaluation
    return [
        Headline(
            _title(name),
            budget_words(result.budget),
            _cells(studies, name, "AP"),
            _SAYS[name] + (_COMPETE if name == "old" and first.inputs["format"] == "lvis" else ""),
        )
        for name, result in first.items()
    ]


def protocol_table(studies: Sequence[Study]) -> Layout:
    """Protocols by frequency group, one column per detector; deltas are from the first."""
    return _metric_table("protocols", "The three protocols, in percent", studies, NAMES)


def detail_table(studies: Sequence[Study]) -> Layout:
    """AP by IoU and by object size, and recall."""
    title = "AP by IoU and object size, and recall, in percent"
    return _metric_table("details", title, studies, _DETAILS)


def metric_table(studies: Sequence[Study]) -> Layout:
    """All of these metrics as a wide table: one line per protocol and detector."""
    protocols = studies[0].evaluation
    table = {
        metric: [cell for name in protocols for cell in _cells(studies, name, metric)]
        for metric in (*NAMES, *_DETAILS)
    }
    undefined = percent(None)
    metrics = [
        metric
        for metric, cells in table.items()
        if metric == "AP" or any(cell.value != undefined for cell in cells)
    ]
    names = [f"{study.name}, " if len(studies) > 1 else "" for study in studies]
    labels = [f"{name}{_title(protocol)}" for protocol in protocols for name in names]
    lines = [
        [Cell(label), *(table[metric][place] for metric in metrics)]
        for place, label in enumerate(labels)
    ]
    return Layout("metrics", "AP and recall, in percent", ["", *metrics], lines)


def budget_words(budget: str) -> str:
    """A budget as a reader says it: "300 detections per image"."""
    parts = []
    for part in budget.split(","):
        limit, *per = part.split("/")
        number = f"{int(limit):,}" if limit.isdecimal() else limit
        parts.append(f"{number} detections per {' and '.join(per)}")
    return ", then ".join(parts)


def calibration_table(studies: Sequence[Study]) -> Layout | None:
    """AP-Pool and calibration error before and after; None if nothing could be calibrated."""
    lines = []
    for name, found in _calibrated(studies):
        before, after = found.pool_before, found.pool_after
        lines.append([Cell(f"{name}before"), *_pool(before), _error(found.before)])
        lines.append([Cell(f"{name}after"), *_pool(after, before), _error(found.after)])
    if not lines:
        return None
    head = ["AP-Pool, in percent", *NAMES, "ECE"]
    return Layout("calibration", "AP-Pool and calibration error, in percent", head, lines)


def calibration_error_table(studies: Sequence[Study]) -> Layout | None:
    """ECE, LaECE, LaACE and D-ECE before and after, each with its conditions; None if
    nothing could be calibrated."""
    lines = []
    for name, found in _calibrated(studies):
        for before, after in zip(found.errors_before, found.errors_after, strict=True):
            change = after.value - before.value
            lines.append(
                [
                    Cell(f"{name}{before.name}"),
                    Cell(percent(before.value)),
                    Cell(percent(after.value), "" if isnan(change) else signed(change)),
                    *before.conditions(),
                    Cell(f"{before.detections:,}"),
                    Cell(f"{after.detections:,}"),
                ]
            )
    if not lines:
        return None
    head = ["", "before", "after", *CONDITIONS, "detections before", "detections after"]
    title = "Calibration errors as other projects define them, in percent"
    return Layout("calibration-errors", title, head, lines)


def _calibrated(studies: Sequence[Study]) -> Iterator[tuple[str, CalibrationStudy]]:
    """The calibrations there are, each with its detector's name in front if there are several
    detectors."""
    for study in studies:
        if study.calibration is not None:
            yield f"{study.name}, " if len(studies) > 1 else "", study.calibration


def error_tables(studies: Sequence[Study]) -> list[Layout]:
    """Kinds of errors, one table per detector."""
    tables = [study.diagnosis.layouts()[0] for study in studies]
    return [_named(*it, studies, "errors") for it in enumerate(tables)]


def confusion_tables(studies: Sequence[Study]) -> list[Layout]:
    """Confused classes, one table per detector that confuses any."""
    tables = [study.diagnosis.layouts()[1:] for study in studies]
    return [
        _named(place, layout, studies, "confusions")
        for place, found in enumerate(tables)
        for layout in found
    ]


def _named(place: int, layout: Layout, studies: Sequence[Study], label: str) -> Layout:
    """The table of one detector, with a label to refer to it by, and with the detector's name if
    there are several."""
    if len(studies) == 1:
        return replace(layout, name=label)
    title = f"{studies[place].name}: {layout.title}"
    return replace(layout, name=f"{label}-{place + 1}", title=title)


def _metric_table(
    name: str, title: str, studies: Sequence[Study], metrics: Sequence[str]
) -> Layout:
    """Metrics of each protocol that has them."""
    lines = []
    for protocol, result in studies[0].evaluation.items():
        for metric in metrics:
            cells = _cells(studies, protocol, metric)
            if metric == "AP" or any(cell.value != percent(None) for cell in cells):
                shown = f"({result.budget})" if metric == "AP" else metric
                lines.append([Cell(f"{_title(protocol)} {shown}"), *cells])
    return Layout(name, title, ["", *(study.name for study in studies)], lines)


def _title(protocol: str) -> str:
    return f"AP-{protocol.capitalize()}"


def _cells(studies: Sequence[Study], protocol: str, metric: str) -> list[Cell]:
    values = [study.evaluation[protocol].metrics.get(metric) for study in studies]
    base, *others = values
    cells = [Cell(percent(base))]
    for value in others:
        delta = None if value is None or base is None else value - base
        cells.append(Cell(percent(value), signed(delta)))
    return cells


def _pool(pool: Mapping[str, float], base: Mapping[str, float] | None = None) -> list[Cell]:
    return [
        Cell(percent(pool[name]), signed(pool[name] - base[name]) if base else "") for name in NAMES
    ]


def _error(curves: Mapping[str, ReliabilityCurve]) -> Cell:
    return Cell(percent(curves["all"].mean_gap))
