"""Calibration by netcal, scikit-learn and betacal, and by the formulas where no package will do.

What each is good for:

- netcal's histograms and BBQ, exactly. Its fit puts a score on the edge of a bin into the bin
  above and its transform into the one below, so no score may stand on an edge: for those there
  are the plain ones here. For 8,000 rows its BBQ begins at 1 bin where the cube root says 2.
- netcal's logistic, beta and temperature fits stop early (numeric gradients, loose tolerance) and
  are good to about three digits. scikit-learn and betacal, driven to the optimum, are the exact
  ones, where there is one and its slopes are positive; elsewhere `lowest_loss` and `off_optimum`.
- scikit-learn's isotonic regression takes scores closer than 1e-15 as one.

netcal imports torch, which takes seconds: only the functions that need it do.
"""

from __future__ import annotations

import contextlib
import io
import math
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Chances = Callable[[Floats], Floats]

EPS = float(np.finfo(np.float64).eps)


# --- netcal ---


def netcal_chances(method: str, score: Floats, right: Bools) -> Chances:
    """What netcal's fit of the method gives for other scores."""
    with _quiet():
        from netcal import binning, scaling

        made: dict[str, Callable[[], Any]] = {
            "histogram": lambda: binning.HistogramBinning(20),
            "bbq-aic": lambda: binning.BBQ(score_function="AIC"),
            "bbq-bic": lambda: binning.BBQ(score_function="BIC"),
            "isotonic": binning.IsotonicRegression,
            "platt": scaling.LogisticCalibration,
            "beta": scaling.BetaCalibration,
            "temperature": scaling.TemperatureScaling,
        }
        model = made[method]()
        options = {"tensorboard": False} if method in ("platt", "beta", "temperature") else {}
        with _in_double() if method.startswith("bbq") else contextlib.nullcontext():
            model.fit(score, right.astype(np.int64), **options)

    def chances(at: Floats) -> Floats:
        with _quiet():
            return np.asarray(model.transform(at), dtype=np.float64).reshape(len(at))

    return chances


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings, progress bars and prints."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


def _in_double() -> Any:
    """netcal takes the likelihoods of BBQ in float32, which has too few digits to compare."""
    import torch

    return mock.patch.object(torch, "FloatTensor", torch.DoubleTensor)


# --- scikit-learn and betacal ---


def sklearn_isotonic(score: Floats, right: Bools) -> Chances:
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
    model.fit(score, right.astype(np.float64))
    return lambda at: np.asarray(model.predict(at), dtype=np.float64)


def sklearn_logistic(features: Floats, right: Bools, *, offset: bool) -> Floats:
    """[P] (and the offset last) most likely weights of features [P, N], of any sign."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _converged(fit_intercept=offset).fit(features.T, right)
    return np.append(model.coef_[0], model.intercept_) if offset else model.coef_[0]


def betacal_chances(score: Floats, right: Bools) -> tuple[Chances, Floats]:
    """Chances by betacal's form of three parameters, and its weights (a, b, c).

    A weight that came out below 0 is left out there and is 0; the other may then be below 0.
    """
    import betacal.beta_calibration
    from betacal import BetaCalibration

    # Its own regression stops at a gradient of 1e-4.
    tight = mock.patch.object(betacal.beta_calibration, "LogisticRegression", _converged)
    with tight, warnings.catch_warnings():  # it changes the filters of warnings
        model = BetaCalibration("abm").fit(score, right.astype(np.int64))
    a, b, _ = model.calibrator_.map_
    weights = np.array([a, b, model.calibrator_.lr_.intercept_[0]])
    return (lambda at: np.asarray(model.predict(at), dtype=np.float64)), weights


def _converged(*, fit_intercept: bool = True, **_: object) -> Any:
    """scikit-learn's regression without penalty, by Newton's method, to the last digits."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(
        C=np.inf,
        solver="newton-cholesky",
        tol=1e-12,
        max_iter=1000,
        fit_intercept=fit_intercept,
    )


# --- the formulas ---


def features_of(method: str, score: Floats) -> Floats:
    """[P, N] what the weights multiply; the constant, where there is one, last."""
    inside = np.clip(score, EPS, 1 - EPS)
    log, log_not, one = np.log(inside), -np.log(1 - inside), np.ones(len(score))
    rows = {
        "beta": [log, log_not, one],
        "platt": [log + log_not, one],
        "temperature": [log + log_not],
    }
    return np.array(rows[method])


def log_loss(features: Floats, right: Bools, weights: Floats) -> float:
    """The mean over rows."""
    odds = weights @ features
    return float(np.mean(np.logaddexp(0.0, np.where(right, -odds, odds))))


def log_loss_of(chance: Floats, right: Bools) -> float:
    """The mean over rows, from chances, held off 0 and 1 by the least that float64 has."""
    likely = np.clip(np.where(right, chance, 1 - chance), 1e-300, 1.0)
    return float(-np.mean(np.log(likely)))


def gradient(features: Floats, right: Bools, weights: Floats) -> Floats:
    """Of the mean log loss."""
    chance = np.exp(-np.logaddexp(0.0, -(weights @ features)))
    slope: Floats = features @ (chance - right) / len(right)
    return slope


def lowest_loss(features: Floats, right: Bools, rising: int) -> float:
    """The least mean log loss with the first `rising` weights of 0 or more, by L-BFGS-B."""
    bounds = [(0.0, None)] * rising + [(None, None)] * (len(features) - rising)
    weights, best = np.array([1.0] * rising + [0.0] * (len(features) - rising)), math.inf
    for _ in range(50):  # begun again from where it stopped, which forgets its curvature
        found = minimize(
            lambda w: (log_loss(features, right, w), gradient(features, right, w)),
            weights,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"ftol": 0.0, "gtol": 1e-13, "maxiter": 5000, "maxfun": 50_000},
        )
        if found.fun >= best - 1e-14:
            break
        weights, best = found.x, float(found.fun)
    return best


def off_optimum(features: Floats, right: Bools, weights: Floats, rising: int) -> float:
    """By how much the conditions of the constrained optimum are missed (Karush, Kuhn, Tucker).

    The gradient is 0 along weights that may move, and not below 0 along those held at 0.
    """
    slope = gradient(features, right, weights)
    held = (np.arange(len(weights)) < rising) & (weights == 0)
    return float(np.max(np.where(held, np.maximum(-slope, 0.0), np.abs(slope))))


def has_optimum(features: Floats, right: Bools) -> bool:
    """Whether the most likely weights, of any sign, are finite: no weights tell the labels apart
    without a mistake (Albert and Anderson 1984), by linear programming (Konis 2007)."""
    scaled = features / np.abs(features).max(axis=1, keepdims=True)
    side = np.where(right, 1.0, -1.0) * scaled
    if len(side) == 1:
        return bool(side.min() < 0 < side.max())
    found = linprog(
        -side.sum(axis=1),
        A_ub=np.concatenate([side.T, -side.T]),
        b_ub=np.concatenate([np.ones(len(right)), np.zeros(len(right))]),
        bounds=(None, None),
    )
    return bool(found.status == 0 and -found.fun < 0.5)


def plain_histogram(score: Sequence[float], right: Sequence[bool], bins: int) -> list[float]:
    """The share of right ones in each bin, its middle where it is empty. A score on an edge is in
    the bin above, 1 in the last."""
    edges = [number / bins for number in range(bins + 1)]
    rows: list[list[bool]] = [[] for _ in range(bins)]
    for value, hit in zip(score, right, strict=True):
        rows[_bin(value, edges)].append(hit)
    return [
        sum(hits) / len(hits) if hits else (low + high) / 2
        for hits, low, high in zip(rows, edges[:-1], edges[1:], strict=True)
    ]


def plain_histogram_at(value: float, shares: Sequence[float]) -> float:
    return shares[_bin(value, [number / len(shares) for number in range(len(shares) + 1)])]


def plain_bbq(score: Sequence[float], right: Sequence[bool], criterion: str) -> Chances:
    """Naeini et al. (2015) with bins of equal width, scores by AIC or BIC, and netcal's elbow."""
    count = len(score)
    most = min(math.ceil(count / 5), next(k for k in range(10 * count + 1) if k**3 >= 1000 * count))
    least = max(1, max(k for k in range(count + 1) if (10 * k) ** 3 <= count))
    histograms = [plain_histogram(score, right, bins) for bins in range(least, most + 1)]
    costs = []
    for shares in histograms:
        chances = [plain_histogram_at(value, shares) for value in score]
        likely = [p if hit else 1 - p for p, hit in zip(chances, right, strict=True)]
        each = {"AIC": 2.0, "BIC": math.log(count)}[criterion]
        costs.append(each * len(shares) - 2 * math.fsum(math.log(p) for p in likely))
    likelihoods = [math.exp((min(costs) - cost) / 2) for cost in costs]
    order = sorted(range(len(costs)), key=lambda index: costs[index])
    drops = [likelihoods[a] - likelihoods[b] for a, b in pairwise(order)]
    variance = float(np.var(likelihoods))
    kept = 0
    while kept < len(drops) and drops[kept] == 0:
        kept += 1
    while kept < len(drops) and drops[kept] > 0.001 * variance:
        kept += 1
    chosen = order[: kept + 1]
    total = math.fsum(likelihoods[index] for index in chosen)

    def chances_at(at: Floats) -> Floats:
        return np.array(
            [
                math.fsum(
                    likelihoods[index] * plain_histogram_at(value, histograms[index])
                    for index in chosen
                )
                / total
                for value in at.tolist()
            ]
        )

    return chances_at


def plain_isotonic(score: Sequence[float], right: Sequence[bool]) -> dict[float, Fraction]:
    """The exact fit at each score: neighbours that fall are pooled until none does."""
    pools: list[tuple[Fraction, int, list[float]]] = []  # mean, rows, scores
    for value in sorted(set(score)):
        hits = [hit for other, hit in zip(score, right, strict=True) if other == value]
        pools.append((Fraction(sum(hits), len(hits)), len(hits), [value]))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (mean, rows, values), (after, more, others) = pools[-2:]
            pooled = (mean * rows + after * more) / (rows + more)
            pools[-2:] = [(pooled, rows + more, values + others)]
    return {value: mean for mean, _, values in pools for value in values}


def _bin(value: float, edges: Sequence[float]) -> int:
    return min(bisect_right(edges, value) - 1, len(edges) - 2)
