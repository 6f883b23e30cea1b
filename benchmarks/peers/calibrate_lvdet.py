"""lvdet: each method fitted to all classes and applied to them, on all CPUs."""

from __future__ import annotations

import numpy as np

from calibrate import Classes, main


def run(classes: Classes) -> None:
    from lvdet.calibration.fitting import Recipe, fit_classes
    from lvdet.calibration.labelled_scores import Samples
    from lvdet.tables.categories import Categories

    count, detections = classes.score.shape
    samples = Samples(
        classes.score.astype(np.float64).reshape(-1),
        classes.right.reshape(-1),
        np.arange(count * detections, dtype=np.int32),
        np.arange(count + 1, dtype=np.int64) * detections,
        Categories(np.arange(count), ("",) * count, np.full(count, "", dtype="U1")),
    )
    for name in ("histogram", "bbq", "beta", "isotonic", "platt"):
        with classes.timed(name):
            fitted = fit_classes(samples, Recipe.of(name))
            new = fitted.new_scores(samples.category, samples.score)
        classes.chances[name] = new.reshape(count, detections)[:: classes.every]


if __name__ == "__main__":
    main("lvdet", run)
