"""The methods that look at one class (or group) at a time, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lvdet.calibrate import bbq, beta, histogram, identity, isotonic, platt, temperature
from lvdet.calibrate.maps import Floats, Map
from lvdet.calibrate.samples import Samples
from lvdet.read.files import Progress
from lvdet.threads import thread_count

#: From falling scores and which of them are right to a map.
Fit: TypeAlias = Callable[[Floats, NDArray[np.bool_]], Map]

FITS: Mapping[str, Fit] = MappingProxyType(
    {
        "identity": identity.fit,
        "histogram": histogram.fit,
        "bbq": bbq.fit_aic,
        "bbq-bic": bbq.fit_bic,
        "beta": beta.fit,
        "isotonic": isotonic.fit,
        "platt": platt.fit,
        "temperature": temperature.fit,
    }
)
#: The paper's five, in the order of its table.
PAPER = ("histogram", "bbq", "beta", "isotonic", "platt")


def fit_each(
    samples: Samples,
    fit: Fit,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Map | None]:
    """The map of each class (or group); None where none of its detections is right."""

    def one(group: int) -> Map | None:
        rows = samples.rows(group)
        return fit(samples.score[rows], samples.right[rows])

    usable = np.flatnonzero(samples.right_counts() > 0).tolist()
    maps: list[Map | None] = [None] * (len(samples.offsets) - 1)
    with ThreadPoolExecutor(thread_count(threads)) as pool:
        for done, (group, found) in enumerate(
            zip(usable, pool.map(one, usable), strict=True), start=1
        ):
            maps[group] = found
            if progress is not None:
                progress(done, len(usable))
    return maps
