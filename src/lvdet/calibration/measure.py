"""How calibrated a detector is."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import isnan
from typing import Any

from lvdet.calibration.labelled_scores import Labelling, Samples, load_samples
from lvdet.calibration.reliability import (
    BINS,
    CalibrationErrors,
    Reliability,
    ReliabilityCurve,
    reliability,
    reliability_curve,
)
from lvdet.evaluation.input_warnings import reading_warnings
from lvdet.evaluation.load_pair import Annotations, ResultSource
from lvdet.evaluation.pair import headline
from lvdet.evaluation.summary import defined
from lvdet.files.progress import Progress
from lvdet.rendering.result import Result
from lvdet.rendering.table_text import Cell, Layout, percent
from lvdet.tables.categories import FREQUENCY_NAMES

_HEAD = ("", "detections", "ECE", "MCE", "adaptive", "Brier", "log loss")


@dataclass(frozen=True, eq=False, repr=False)
class Measurement(Result):
    """Calibration errors over all detections, by frequency and by class, and what they are of.

    samples: scores and labels, for curves of one's own (`curve`)
    """

    errors: Reliability
    samples: Samples
    inputs: dict[str, Any]
    warnings: list[str]

    def curve(self, *, bins: int = BINS, equal: str = "width") -> ReliabilityCurve:
        """Mean score and share of correct detections in bins of equal "width" or equal "count"."""
        return reliability_curve(self.samples.score, self.samples.right, bins=bins, equal=equal)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        categories = self.samples.categories
        return {
            "all": defined(asdict(self.errors.overall)),
            "by_frequency": {
                name: defined(asdict(errors)) for name, errors in self.errors.by_frequency.items()
            },
            "by_class": [
                {"id": number, "name": name, **defined(asdict(errors))}
                for number, name, errors in zip(
                    categories.ids.tolist(), categories.names, self.errors.by_class, strict=True
                )
            ],
            "inputs": self.inputs,
            "warnings": self.warnings,
        }

    def title(self) -> str:
        """What was measured, in a line."""
        return (
            f"{headline(self.inputs)}; {len(self.samples):,} detections counted, correct at IoU "
            f"{self.inputs['iou_threshold']:g}"
        )

    def layouts(self) -> list[Layout]:
        """The table: all, and each frequency."""
        lines = {"all": self.errors.overall} | {
            FREQUENCY_NAMES[name]: errors for name, errors in self.errors.by_frequency.items()
        }
        return [
            Layout(
                "",
                "Calibration errors (ECE, MCE and adaptive in percent)",
                list(_HEAD),
                [_line(*it) for it in lines.items()],
            )
        ]


def measure(
    gt: Annotations,
    detections: ResultSource,
    labelling: Labelling,
    progress: Progress | None = None,
) -> Measurement:
    """How far scores are from the share of detections that are right: expected, maximum and
    adaptive calibration error, Brier score and log loss, overall, by frequency and by class."""
    pair, samples = load_samples(gt, detections, labelling, progress)
    return Measurement(
        reliability(samples),
        samples,
        pair.facts() | asdict(replace(labelling, iou=pair.iou)),
        reading_warnings(pair),
    )


def _line(name: str, errors: CalibrationErrors) -> list[Cell]:
    gaps = (errors.expected, errors.maximum, errors.adaptive)
    losses = (errors.brier, errors.log_loss)
    return [
        Cell(name),
        Cell(f"{errors.count:,}"),
        *(Cell(percent(value)) for value in gaps),
        *(Cell("–" if isnan(value) else f"{value:.4f}") for value in losses),
    ]
