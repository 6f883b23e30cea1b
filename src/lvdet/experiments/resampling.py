"""Metrics of bootstrap samples of the images, recorded for each run instead of its detections.

The samples are the same for all runs of a scale. What two runs differ by on them has the errors
that `lvdet compare` gives.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lvdet.comparison.bootstrap import Resampler, draw
from lvdet.evaluation.pair import Pair
from lvdet.evaluation.summary import NAMES, PROTOCOLS
from lvdet.experiments.claims import all_claims
from lvdet.experiments.conditions import OWN
from lvdet.limits.budgets import PerClass, PerImage
from lvdet.studies.budget_tables import Limits

RESAMPLES, SEED = 200, 0
#: The metrics of samples, in their order.
METRICS = tuple(f"{protocol}.{name}" for protocol in PROTOCOLS for name in NAMES)


@cache
def claimed(condition: str) -> frozenset[str]:
    """The metrics that claims use under a condition; for a run's own, all."""
    terms = [term for claim in all_claims() for term in claim.terms]
    named = {metric for at, metric, _ in terms if at == condition}
    return frozenset(METRICS if condition == OWN else named)


def resampled(
    pair: Pair, old: PerImage, fixed: PerClass, metrics: Collection[str] = METRICS
) -> dict[str, list[float | None]]:
    """Some metrics of all samples."""
    values = dict(zip(METRICS, _samples(pair, old, fixed).T, strict=True))
    return {name: _listed(values[name]) for name in METRICS if name in metrics}


def resampled_limits(
    pair: Pair, limits: Limits, fixed: PerClass, metrics: Collection[str]
) -> dict[str, list[float | None]]:
    """AP, APr, APc and APf of all samples under a limit per image, and one per class of the whole
    set before it; nothing of other limits."""
    if limits.dets_per_image is None or limits.classes is not None or not {*NAMES} & {*metrics}:
        return {}
    if limits.dets_per_class is not None:
        keep = pair.kept([PerClass(limits.dets_per_class)])
        pair = pair if keep is None else pair.where(keep)
    drawn = _samples(pair, PerImage(limits.dets_per_image), fixed)
    values = dict(zip(NAMES, drawn.T, strict=False))  # of AP-Old, which come first
    return {name: _listed(values[name]) for name in NAMES if name in metrics}


def _samples(pair: Pair, old: PerImage, fixed: PerClass) -> NDArray[np.float64]:
    """[samples, metrics] numbers, NaN where undefined."""
    weights = draw(len(pair.gt.images), 0, RESAMPLES, seed=SEED)
    drawn = Resampler(pair, old=old, fixed=fixed).values(weights)
    return drawn.metrics(pair.gt.categories).reshape(-1, len(METRICS))[:RESAMPLES]


def _listed(values: NDArray[np.float64]) -> list[float | None]:
    return [None if np.isnan(value) else round(float(value), 5) for value in values]
