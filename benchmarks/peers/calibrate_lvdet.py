"""lvdet: each method fitted and applied, class by class, on all CPUs."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from calibrate import Classes, main


def calibrate_all(fit: Any, classes: Classes) -> np.ndarray:
    """[C, N] new scores of every class."""
    from lvdet.calibrate.order import calibrated

    def one(row: int) -> np.ndarray:
        score = classes.score[row].astype(np.float64)
        return calibrated(fit(score, classes.right[row]), score)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return np.stack(list(pool.map(one, range(len(classes.score)))))


def run(classes: Classes) -> None:
    from lvdet.calibrate import bbq, beta, histogram, isotonic, platt

    fits = {
        "histogram": histogram.fit,
        "bbq": bbq.fit_aic,
        "beta": beta.fit,
        "isotonic": isotonic.fit,
        "platt": platt.fit,
    }
    for name, fit in fits.items():
        with classes.timed(name):
            new = calibrate_all(fit, classes)
        classes.chances[name] = new[:: classes.every]


if __name__ == "__main__":
    main("lvdet", run)
