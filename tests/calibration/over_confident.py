"""A simulated detector that is over-confident on its training images, calibrated on them.

Run as a program it prints the figures of docs/calibration.md.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass

import lvdet
from lvdet.calibration.calibrate import SHOWN
from lvdet.calibration.methods import PAPER
from lvdet.simulation.simulate import Settings, simulate_training


@dataclass(frozen=True)
class Detector:
    """The simulated biases and over-confidence, in logits."""

    bias: float = 1.0
    class_bias: float = 0.7
    overconfidence: float = 2.0
    images: int = 2000
    training_images: int = 5000
    classes: int = 600


@dataclass(frozen=True)
class Figures:
    """AP-Pool and AP-Pool of rare classes, in percent, without calibration and by method."""

    pool: dict[str, float]
    rare: dict[str, float]

    @property
    def best(self) -> float:
        """AP-Pool of the best of the paper's five."""
        return max(self.pool[method] for method in PAPER)

    @property
    def wins(self) -> bool:
        """Hierarchical calibration is at least as good as the best of the five."""
        return self.pool["hierarchical"] >= self.best

    @property
    def rare_unharmed(self) -> bool:
        """It leaves rare classes at least where they were."""
        return self.rare["hierarchical"] >= self.rare["uncalibrated"]


def figures(seed: int, detector: Detector = Detector()) -> Figures:
    """Fitted on the training images, evaluated on others."""
    settings = Settings(
        images=detector.images,
        classes=detector.classes,
        bias=detector.bias,
        class_bias=detector.class_bias,
        dets_per_image=None,
        candidates_per_image=1,
        seed=seed,
    )
    training = simulate_training(
        settings, detector.training_images, overconfidence=detector.overconfidence
    )
    table = lvdet.calibrate(
        *lvdet.simulate(**asdict(settings)), train=training, methods=SHOWN, oracle=False
    )
    (block,) = table.blocks
    rows = {"uncalibrated": table.uncalibrated, **block.rows}
    return Figures(
        {method: 100 * row.pool["AP"] for method, row in rows.items()},
        {method: 100 * row.pool["APr"] for method, row in rows.items()},
    )


def report(detector: Detector, seeds: range) -> str:
    """A line: how often hierarchical calibration wins, and by how much on average."""
    found = [figures(seed, detector) for seed in seeds]
    gain = sum(one.pool["hierarchical"] - one.best for one in found) / len(found)
    rare = sum(one.rare["hierarchical"] - one.rare["uncalibrated"] for one in found) / len(found)
    return (
        f"| {detector.bias:g} | {detector.class_bias:g} | {detector.overconfidence:g} "
        f"| {detector.training_images:,} | {sum(one.wins for one in found)} of {len(found)} "
        f"| {gain:+.2f} | {sum(one.rare_unharmed for one in found)} of {len(found)} | {rare:+.2f} |"
    )


VARIATIONS = (
    Detector(),
    Detector(overconfidence=0),
    Detector(overconfidence=4),
    Detector(class_bias=0),
    Detector(class_bias=1.5),
    Detector(bias=0, class_bias=0),
    Detector(bias=2),
    Detector(training_images=1000),
    Detector(training_images=20_000),
)


if __name__ == "__main__":
    for variation in VARIATIONS:
        print(report(variation, range(int(sys.argv[1]))), flush=True)
