"""How often intervals of several kinds have the true difference, on simulated detectors.

    python benchmarks/coverage.py                  300 images of 12, 40 and 700 classes, 1,000 of 40
    python benchmarks/coverage.py --sets 600 --resamples 500

Two detectors, a population of images, many sets of images drawn from it; the true difference is the
mean over sets of the same size. See docs/comparing.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from comparison.drawn_sets import drawn_detections, drawn_truth
from comparison.simulated_detectors import Population
from lvdet.comparison.bootstrap import Resampler, as_it_is, draw
from lvdet.evaluation.load_pair import load_pair
from lvdet.evaluation.summary import NAMES
from lvdet.limits.budgets import PerClass, PerImage

SETTINGS = ((300, 12), (300, 40), (1_000, 40), (300, 700))
Numbers = NDArray[np.float64]


def intervals(
    delta: Numbers, drawn: Numbers, confidence: float
) -> dict[str, tuple[Numbers, Numbers]]:
    """Low and high ends by several rules, of [3, 4] differences from [R, 3, 4] drawn ones."""
    tail = (1 - confidence) / 2
    low, high = np.nanquantile(drawn, [tail, 1 - tail], axis=0)
    reach = NormalDist().inv_cdf(1 - tail)
    spread = reach * np.nanstd(drawn, axis=0, ddof=1)
    around = reach * np.sqrt(np.nanmean((drawn - delta) ** 2, axis=0))
    return {
        "percentile": (low, high),
        "normal": (delta - spread, delta + spread),
        "basic": (2 * delta - high, 2 * delta - low),
        "around the difference": (delta - around, delta + around),
    }


def main() -> None:
    options = _options()
    for images, classes in SETTINGS:
        population = Population(12_000, classes)
        truth = population.true_differences(images, options.truth, seed=options.seed)
        covered: dict[str, Numbers] = {}
        lacking = np.zeros((3, 4))
        rng = np.random.default_rng([options.seed, 3])
        for number in range(options.sets):
            delta, drawn = one_set(population, rng, images, options.resamples, number)
            for name, (low, high) in intervals(delta, drawn, 0.95).items():
                inside = (low <= truth) & (truth <= high)
                covered[name] = covered.get(name, 0) + inside
                if name == "percentile":
                    lacking += (delta < low) | (delta > high)
        print(f"{images:,} images, {classes:,} classes, {options.sets:,} sets")
        for name, counts in covered.items():
            shares = (
                f"{metric} {' '.join(f'{value:.3f}' for value in counts[:, column] / options.sets)}"
                for column, metric in enumerate(NAMES)
            )
            print(f"  {name:<22}{'   '.join(shares)}")
        print(f"  outside the percentiles is the difference itself: {lacking[:, 0].tolist()}")


def one_set(
    population: Population, rng: np.random.Generator, images: int, resamples: int, seed: int
) -> tuple[Numbers, Numbers]:
    """The difference on a set of images, and those on sets drawn from it."""
    rows = rng.integers(0, len(population.gt.images), images)
    gt = drawn_truth(population.gt, rows)
    per_image, per_class = population.limits(images)
    weights = [as_it_is(images), draw(images, 0, resamples, seed=seed)]
    found = []
    for table in population.detectors:
        pair = load_pair(gt, drawn_detections(population.gt, table, rows), None)
        resampler = Resampler(pair, old=PerImage(per_image), fixed=PerClass(per_class))
        found.append([resampler.values(one).metrics(gt.categories) for one in weights])
    (base, base_drawn), (own, own_drawn) = found
    return (own - base)[0], (own_drawn - base_drawn)[:resamples]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=300)
    parser.add_argument("--truth", type=int, default=1_500, help="sets for the true difference")
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--seed", type=int, default=11)
    return parser.parse_args()


if __name__ == "__main__":
    main()
