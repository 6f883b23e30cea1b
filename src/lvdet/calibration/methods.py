"""The methods that fit one class (or group) at a time, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration import bbq, beta, histogram, identity, isotonic, platt, temperature
from lvdet.calibration.labelled_scores import Samples
from lvdet.calibration.maps import KEEP, Floats, Map
from lvdet.files.progress import Update


class FitAll(Protocol):
    """Takes the descending scores of classes, concatenated, and whether each is correct; returns a
    map for each class."""

    def __call__(
        self,
        score: Floats,
        right: NDArray[np.bool_],
        offsets: NDArray[np.int64],
        *,
        update: Update | None = None,
    ) -> Sequence[Map]: ...


def _each(fit: Callable[[Floats, NDArray[np.bool_]], Map]) -> FitAll:
    """Fits one class after the other, on one thread: a single fit is too short to share. Classes
    without detections are skipped."""

    def fit_all(
        score: Floats,
        right: NDArray[np.bool_],
        offsets: NDArray[np.int64],
        *,
        update: Update | None = None,
    ) -> Sequence[Map]:
        maps: list[Map] = []
        for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            maps.append(fit(score[begin:end], right[begin:end]) if end > begin else KEEP)
            if update is not None:
                update(len(maps), len(offsets) - 1)
        return maps

    return fit_all


FITS: Mapping[str, FitAll] = MappingProxyType(
    {
        "identity": _each(identity.fit),
        "histogram": _each(histogram.fit),
        "bbq": _each(bbq.fit_aic),
        "bbq-bic": _each(bbq.fit_bic),
        "beta": beta.fit_all,
        "isotonic": _each(isotonic.fit),
        "platt": platt.fit_all,
        "temperature": temperature.fit_all,
    }
)
#: The paper's five, in the order of its table.
PAPER = ("histogram", "bbq", "beta", "isotonic", "platt")


def fit_groups(
    samples: Samples,
    method: str,
    *,
    update: Update | None = None,
) -> list[Map | None]:
    """The map of each class (or group); None if none of its detections is correct."""
    usable = samples.right_counts() > 0
    if not usable.all():
        samples = samples.where(np.repeat(usable, samples.counts()))
    found = FITS[method](samples.score, samples.right, samples.offsets, update=update)
    return [one if known else None for one, known in zip(found, usable.tolist(), strict=True)]
