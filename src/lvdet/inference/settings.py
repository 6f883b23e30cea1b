"""The settings and the summary of a prediction."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lvdet.errors import InputError
from lvdet.writers.arguments import budgets


@dataclass(frozen=True)
class Settings:
    """How a set of images is predicted. A detection is kept if either limit keeps it.

    dets_per_class: detections to keep per class over the whole set; 0: none
    dets_per_image: detections to keep per image over all classes; 0: none
    score:     minimum score, exclusive
    nms:       IoU above which the higher-scored of two boxes of a class suppresses the other;
               several thresholds write a file each
    masks:     whether to predict masks, if the model can
    batch:     images at a time; reduced if a GPU's memory is too small
    workers:   processes that load images; -1: one per core, up to 8
    precision: "fp32", or "bf16": faster on a GPU, with scores of about three digits
    overwrite: replace existing files once the new ones are complete
    skip_damaged: skip files that cannot be read as images; they then have no detections
    """

    dets_per_class: int = 10_000
    dets_per_image: int = 300
    score: float = 1e-7
    nms: tuple[float, ...] = (0.5,)
    masks: bool = True
    batch: int = 8
    workers: int = -1
    precision: str = "fp32"
    overwrite: bool = False
    skip_damaged: bool = False

    def __post_init__(self) -> None:
        budgets(self.dets_per_class, self.dets_per_image)
        if not math.isfinite(self.score):
            raise InputError(f"score is {self.score}, expected a finite number")
        if self.batch < 1:
            raise InputError(f"batch is {self.batch}, expected 1 or more")
        if self.workers < -1:
            raise InputError(f"workers is {self.workers}, expected 0 or more, or -1")
        if self.precision not in ("fp32", "bf16"):
            raise InputError(f"precision is {self.precision!r}, expected fp32 or bf16")
        if not self.nms or not all(0 <= threshold <= 1 for threshold in self.nms):
            raise InputError(f"nms is {_listed(self.nms)}, expected thresholds from 0 to 1")
        if len(set(self.nms)) != len(self.nms):
            raise InputError(f"nms is {_listed(self.nms)}, expected different thresholds")

    def targets(self, out: Path) -> list[Path]:
        """The file of each threshold: `out`, or out.nms0.3.json and so on if there are several."""
        if len(self.nms) == 1:
            return [out]
        return [out.with_name(f"{out.stem}.nms{nms:g}{out.suffix}") for nms in self.nms]


@dataclass(frozen=True)
class Written:
    """A written file of detections.

    classes, full_classes: classes with any detections, and with `dets_per_class` or more
    """

    path: Path
    nms: float
    detections: int
    classes: int
    full_classes: int


@dataclass(frozen=True)
class Summary:
    """The summary of a prediction.

    batch:   images at a time, after any reduction
    seconds: in all; `starting` is the part until each pass had its first batch, which includes
             starting the processes that load images and, on a GPU, compiling kernels
    damaged: names of the skipped images, by id
    """

    images: int
    masks: bool
    batch: int
    seconds: float
    starting: float
    files: list[Written]
    notes: list[str] = field(default_factory=list)
    damaged: dict[int, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON values."""
        content = asdict(self)
        for written in content["files"]:
            written["path"] = str(written["path"])
        content["damaged"] = [{"id": i, "file_name": name} for i, name in self.damaged.items()]
        return content


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values) or "empty"
