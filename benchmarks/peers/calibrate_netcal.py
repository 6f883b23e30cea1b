"""netcal: its estimators as its documentation has them, one class after the other."""

from __future__ import annotations

import numpy as np

from calibrate import Classes, main


def run(classes: Classes) -> None:
    import torch
    from netcal.binning import BBQ, HistogramBinning, IsotonicRegression
    from netcal.scaling import BetaCalibration, LogisticCalibration

    if classes.threads:
        torch.set_num_threads(classes.threads)
    models = {
        "histogram": (lambda: HistogramBinning(20), {}),
        "bbq": (lambda: BBQ(score_function="AIC"), {}),
        # They would write a log for TensorBoard into the working folder.
        "beta": (BetaCalibration, {"tensorboard": False}),
        "isotonic": (IsotonicRegression, {}),
        "platt": (LogisticCalibration, {"tensorboard": False}),
    }
    scores = classes.score[:: classes.every].astype(np.float64)
    labels = classes.right[:: classes.every].astype(np.int64)
    for name, (make, options) in models.items():
        found = []
        with classes.timed(name):
            for score, right in zip(scores, labels, strict=True):
                model = make()
                model.fit(score, right, **options)
                found.append(model.transform(score))
        classes.chances[name] = np.stack(found).reshape(scores.shape)


if __name__ == "__main__":
    main("netcal", run)
