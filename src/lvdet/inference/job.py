"""What both passes of a prediction share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lvdet.inference.batches import BatchSplitter, Image
from lvdet.inference.device import Execution
from lvdet.inference.settings import Settings
from lvdet.training.configuration.config import Input


@dataclass(frozen=True)
class Job:
    """A detector, its images, and the settings.

    images:       ids and files, in the order in which ties are decided
    size:         how images are resized
    category_ids: of the detector's classes
    leave_out:    receives damaged images if the settings allow them, before they are finished
    look:         called with each batch; raises an error where another process has failed
    """

    detector: Any
    images: Sequence[Image]
    size: Input
    category_ids: Sequence[int]
    settings: Settings
    splitter: BatchSplitter
    execution: Execution
    leave_out: Callable[[Sequence[Image]], None]
    look: Callable[[], None]
