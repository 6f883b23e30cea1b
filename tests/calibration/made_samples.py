"""Samples made by hand: classes with given frequencies, scores and labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lvdet
from lvdet.calibration import bbq, beta, histogram, identity, isotonic, platt, temperature
from lvdet.calibration.labelled_scores import Labelling, Samples, load_samples
from lvdet.calibration.maps import Map

Rows = tuple[NDArray[np.float64], NDArray[np.bool_]]

#: From the rows of a class to its map, by method.
FITS: dict[str, Callable[..., Map]] = {
    "histogram": histogram.fit,
    "bbq-aic": bbq.fit_aic,
    "bbq-bic": bbq.fit_bic,
    "beta": beta.fit,
    "isotonic": isotonic.fit,
    "platt": platt.fit,
    "temperature": temperature.fit,
    "identity": identity.fit,
}


def joined(parts: Sequence[Rows]) -> Rows:
    """The rows of several classes by descending score, equal ones in the order of the classes."""
    score = np.concatenate([part[0] for part in parts])
    right = np.concatenate([part[1] for part in parts])
    order = np.argsort(-score, kind="stable")
    return score[order], right[order]


def samples_of_classes(parts: Sequence[Rows], frequency: str) -> Samples:
    """Classes of ids 10, 20, … with these rows and frequencies (a letter each, - for none)."""
    ranked = [joined([part]) for part in parts]
    return Samples(
        np.concatenate([part[0] for part in ranked]),
        np.concatenate([part[1] for part in ranked]),
        np.arange(sum(len(part[0]) for part in ranked), dtype=np.int32),
        np.cumsum([0, *(len(part[0]) for part in ranked)], dtype=np.int64),
        lvdet.Categories(
            np.arange(1, len(parts) + 1) * 10,
            tuple(f"class {number}" for number in range(len(parts))),
            np.array([letter.strip("-") for letter in frequency], dtype="U1"),
        ),
    )


def drawn_rows(seed: int, count: int, *, power: float = 1.0, none_right: bool = False) -> Rows:
    """Scores with some ties; one of score s is right with the chance s ** power."""
    rng = np.random.default_rng([seed, count])
    score = np.round(rng.beta(0.8, 1.5, count), rng.choice([2, 5]))
    return score, (rng.random(count) < score**power) & (not none_right)


def read_samples(*files: Any, **options: Any) -> Samples:
    """The samples of annotations and results."""
    _, samples = load_samples(*files, Labelling(**options))
    return samples
