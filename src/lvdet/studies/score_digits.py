"""How finely the scores of a results file are resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lvdet.tables.description import counted

#: Scores whose digits are counted, evenly spaced in the file.
_SAMPLE = 20_000


@dataclass(frozen=True)
class ScoreDigits:
    """The scores of a file.

    detections: how many there are
    highest: the highest score, NaN if there are none
    at_highest: how many detections have it
    lowest, at_lowest: the same of the lowest
    digits: significant digits that 99 of 100 scores need
    half_precision: whether all of them are float16 values
    """

    detections: int
    highest: float
    at_highest: int
    lowest: float
    at_lowest: int
    digits: int
    half_precision: bool

    @staticmethod
    def of(score: NDArray[np.float64]) -> ScoreDigits:
        """From the kept scores ([N])."""
        if not len(score):
            return ScoreDigits(0, float("nan"), 0, float("nan"), 0, 0, False)
        highest, lowest = float(score.max()), float(score.min())
        sample = score[:: -(-len(score) // _SAMPLE)]
        needed = np.sort([_digits(value) for value in sample.tolist()])
        return ScoreDigits(
            len(score),
            highest,
            int((score == highest).sum()),
            lowest,
            int((score == lowest).sum()),
            int(needed[(99 * len(needed)) // 100 if len(needed) > 1 else 0]),
            bool((sample.astype(np.float16) == sample).all()),
        )

    @property
    def saturated(self) -> bool:
        """Whether more than one detection has the highest score."""
        return self.at_highest > 1

    def texts(self) -> list[str]:
        """What this says about the file, in sentences."""
        if not self.detections:
            return []
        kept = f"Scores have {counted(self.digits, 'significant digit')}"
        if self.half_precision:
            kept += " and are all half-precision (float16) values"
        found = [f"{kept}."]
        for which, value, count in (
            ("highest", self.highest, self.at_highest),
            ("lowest", self.lowest, self.at_lowest),
        ):
            if count > 1 and self.highest > self.lowest:
                found.append(f"{count:,} detections share the {which} score, {value:.6g}.")
        if self.highest == self.lowest and self.detections > 1:
            found.append(f"All scores are {self.highest:.6g}.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""
        none = not self.detections
        return {
            "digits": self.digits,
            "half_precision": self.half_precision,
            "highest": None if none else self.highest,
            "at_highest": self.at_highest,
            "lowest": None if none else self.lowest,
            "at_lowest": self.at_lowest,
        }


def _digits(value: float) -> int:
    """The fewest significant digits that represent the number."""
    digits = repr(value).split("e")[0].replace(".", "").replace("-", "").strip("0")
    return max(len(digits), 1)
