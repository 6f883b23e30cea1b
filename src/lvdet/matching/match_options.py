"""How detections are compared with objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lvdet.errors import InputError

#: 0.50:0.05:0.95, as the reference tools make them.
IOU_THRESHOLDS = np.linspace(0.5, 0.95, int(np.round((0.95 - 0.5) / 0.05)) + 1, endpoint=True)

IOU_KINDS = ("bbox", "segm", "boundary")


@dataclass(frozen=True)
class MatchOptions:
    """The options of `match`.

    iou: "bbox", "segm" or "boundary"; None for segm if there are masks, otherwise bbox
    thresholds: IoU thresholds in (0, 1]; None for 0.50:0.05:0.95
    exact_lvis: repeat the quirks of the reference tools
    mask_area: among these quirks, where masks are compared, a detection's area is its mask's even
        where results carry boxes, as where evaluators drop `bbox` first
    partners_at: the threshold at which to tell what each detection is matched with, if any
    """

    iou: str | None = None
    thresholds: Sequence[float] | None = None
    exact_lvis: bool = False
    partners_at: float | None = None
    mask_area: bool = False

    def __post_init__(self) -> None:
        if self.iou is not None and self.iou not in IOU_KINDS:
            raise InputError(f"iou is {self.iou!r}, expected one of {', '.join(IOU_KINDS)}")

    def resolved(self, *, masks: bool) -> MatchOptions:
        """The same options with an iou: segm if both sides have masks, unless one was requested."""
        return self if self.iou is not None else replace(self, iou="segm" if masks else "bbox")

    @property
    def levels(self) -> NDArray[np.float64]:
        """[T] the IoU thresholds."""
        given = self.thresholds
        try:
            levels = IOU_THRESHOLDS if given is None else np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"IoU thresholds are {given!r}, expected a list of numbers") from None
        if levels.ndim != 1 or not len(levels) or not ((levels > 0) & (levels <= 1)).all():
            raise InputError(
                f"IoU thresholds are {levels.tolist()}, expected a list of numbers in (0, 1]"
            )
        return levels


#: The default options.
DEFAULT = MatchOptions()
