"""The paper's toy example (its section 3), computed by the code that computes everything else.

One image. A detector is certain of two boxes of class A (A1 and A2, score 1.0, always correct) and
fairly confident of one of class B (B1, score 0.8, correct in 80 of 100 worlds): it is perfectly
calibrated. The limit is two detections.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lvdet.evaluation.average_precision import class_curves
from lvdet.limits.budgets import Budget, PerClass, PerImage, apply, describe
from lvdet.matching.match import match
from lvdet.rendering.table_text import Cell, Layout, text
from lvdet.tables.categories import Categories
from lvdet.tables.detections import Detections
from lvdet.tables.ground_truth import GroundTruth, ImageLists, Images

NAMES = ("A1", "A2", "B1")
SCORES = (1.0, 1.0, 0.8)
BOXES = ((0.0, 0.0, 10.0, 10.0), (20.0, 0.0, 10.0, 10.0), (40.0, 0.0, 10.0, 10.0))
#: Where the object of class B is in each world, and how likely that world is: under B1, or not.
WORLDS = (((40.0, 0.0, 10.0, 10.0), 0.8), ((40.0, 50.0, 10.0, 10.0), 0.2))
#: The budget of each ranking, and the AP that the paper gives.
RANKINGS: tuple[tuple[str, tuple[Budget, ...], float], ...] = (
    ("Ranking 1", (PerImage(2),), 0.5),
    ("Ranking 2", (PerClass(1), PerImage(2)), 0.65),
    ("no limit", (), 0.75),
)
REMARKS = (
    "Ranking 2 drops A2, which is always correct, for B1, which is less likely to be: AP rises.",
    "The paper gives 0.65 for Ranking 2. It counts half the recall of A as an AP of 0.5; A reaches "
    "51 of the 101 recall levels at which precision is read, so its AP is 51/101 = 0.5050.",
    "The paper's caption gives 0.75 without a limit. The expected AP of A is 1 and that of B is "
    "0.8: (1 + 0.8) / 2 = 0.9, for both rankings.",
)


@dataclass(frozen=True)
class ToyRow:
    """One ranking: what it keeps, and the expected AP of each class and overall."""

    ranking: str
    budget: str
    kept: tuple[str, ...]
    a: float
    b: float
    overall: float
    paper: float


@dataclass(frozen=True)
class Toy:
    """The computed example."""

    rows: tuple[ToyRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """The result as JSON values."""
        rows = [
            {
                "ranking": row.ranking,
                "budget": row.budget,
                "kept": list(row.kept),
                "AP_A": row.a,
                "AP_B": row.b,
                "AP": row.overall,
                "AP_in_the_paper": row.paper,
            }
            for row in self.rows
        ]
        return {"rows": rows, "remarks": list(REMARKS)}

    def layout(self) -> Layout:
        """The table to print."""
        head = ["ranking", "budget", "keeps", "AP of A", "AP of B", "AP", "paper"]
        lines = [
            [
                row.ranking,
                row.budget,
                ", ".join(row.kept),
                *(f"{value:.4f}" for value in (row.a, row.b, row.overall)),
                f"{row.paper:.2f}",
            ]
            for row in self.rows
        ]
        title = "The toy example: two detections per image, expected over both worlds"
        return Layout("toy", title, head, [[Cell(value) for value in line] for line in lines])

    def __str__(self) -> str:
        found = [
            f"{name}: class {name[0]}, score {score:.1f}, correct with probability {score:.1f}"
            for name, score in zip(NAMES, SCORES, strict=True)
        ]
        return "\n".join([*found, "", text([self.layout()]), "", *REMARKS])


def toy() -> Toy:
    """Computes the example: each ranking in each world, weighted by its probability."""
    detections = Detections.from_arrays(
        [1] * 3, [1 if name[0] == "A" else 2 for name in NAMES], SCORES, BOXES
    )
    matches = [(match(_world(box), detections), chance) for box, chance in WORLDS]
    rows = []
    for ranking, budgets, paper in RANKINGS:
        keep = apply(budgets, detections)
        a, b = sum(
            chance * class_curves(found, found.kept(keep)).precision[:, 0].mean(axis=1)
            for found, chance in matches
        )
        kept = np.ones(len(NAMES), dtype=bool) if keep is None else keep
        names = tuple(name for name, stays in zip(NAMES, kept, strict=True) if stays)
        rows.append(
            ToyRow(ranking, describe(budgets), names, float(a), float(b), float(a + b) / 2, paper)
        )
    return Toy(tuple(rows))


def _world(box: tuple[float, ...]) -> GroundTruth:
    """The image with the two objects of class A and the object of class B at `box`."""
    none = ImageLists(np.zeros(2, dtype=np.int64), np.zeros(0, dtype=np.int32))
    return GroundTruth(
        images=Images(
            np.array([1]), np.array([100], dtype=np.int32), np.array([100], dtype=np.int32), ("",)
        ),
        categories=Categories(np.array([1, 2]), ("A", "B"), np.array(["f", "r"])),
        id=np.array([1, 2, 3]),
        image=np.zeros(3, dtype=np.int32),
        category=np.array([0, 0, 1], dtype=np.int32),
        box=np.array([*BOXES[:2], box]),
        area=np.full(3, 100.0),
        ignore=np.zeros(3, dtype=bool),
        crowd=np.zeros(3, dtype=bool),
        masks=None,
        negative=none,
        not_exhaustive=none,
    )
