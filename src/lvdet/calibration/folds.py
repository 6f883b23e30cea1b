"""Cross-validation over images: an honest estimate without a second data set."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lvdet.calibration.fitting import Recipe, fit_classes
from lvdet.calibration.labelled_scores import Samples
from lvdet.calibration.maps import Floats
from lvdet.errors import InputError
from lvdet.files.progress import Update

#: Parts of the images, if there is no training set to fit on.
FOLDS = 5


def require_folds(folds: object, images: int) -> None:
    """Raises for a number of folds that cannot be formed from the images."""
    if isinstance(folds, bool) or not isinstance(folds, int) or not 2 <= folds <= images:
        raise InputError(
            f"folds is {folds!r}, expected an integer from 2 to the number of images ({images:,})"
        )


def cross_scores(
    samples: Samples,
    recipe: Recipe,
    sample_folds: NDArray[np.int32],
    folds: NDArray[np.int32],
    category: NDArray[np.int32],
    score: Floats,
    *,
    update: Update | None = None,
) -> Floats:
    """[N] calibrated scores of detections ([N] class and score), each from a fit on the samples of
    the other folds. `folds` ([N]) is the fold of each detection's image, `sample_folds` that of
    each sample."""
    new = np.empty(len(score))
    parts = int(folds.max(initial=-1)) + 1
    for part in range(parts):
        others = samples.where(sample_folds != part)
        fitted = fit_classes(others, recipe)
        here = np.flatnonzero(folds == part)
        new[here] = fitted.new_scores(category[here], score[here])
        if update is not None:
            update(part + 1, parts)
    return new


def divided(images: int, folds: int) -> NDArray[np.int32]:
    """[I] the fold of each image; folds differ in size by one at most, and the draw is fixed."""
    require_folds(folds, images)
    parts = np.arange(images, dtype=np.int32) % np.int32(folds)
    return np.random.default_rng(0).permutation(parts)
