"""What an audit says of scores."""

from __future__ import annotations

import numpy as np
import pytest

import lvdet
from lvdet.studies.score_digits import ScoreDigits


@pytest.mark.parametrize(
    ("scores", "digits", "half"),
    [
        ([0.5, 0.25, 0.125], 3, True),
        ([0.1, 0.2, 0.35], 2, False),
        ([1.0, 0.0, 1.0], 1, True),
        ([0.12345, 1e-5, 2.5e-7], 5, False),
        ([float(np.float16(0.3)), float(np.float16(0.7))], 12, True),
        ([1 / 3, 2 / 3], 16, False),
    ],
)
def test_digits(scores: list[float], digits: int, half: bool) -> None:
    found = ScoreDigits.of(np.array(scores))
    assert found.half_precision is half
    assert found.digits == digits


def test_saturated_scores_are_named(truncated: tuple) -> None:
    gt, dt = truncated
    score = np.minimum(dt.score, np.sort(dt.score)[-51])
    result = lvdet.audit(gt, dt.with_scores(score))
    assert result.scores.saturated
    assert f"51 detections share the highest score, {score.max():.6g}." in result.findings()
    assert result.to_dict()["scores"]["at_highest"] == 51
    assert not lvdet.audit(gt, dt.with_scores(np.arange(len(dt)) / len(dt))).scores.saturated


def test_one_score_for_all(truncated: tuple) -> None:
    gt, dt = truncated
    found = lvdet.audit(gt, dt.with_scores(np.ones(len(dt)))).findings()
    assert "All scores are 1." in found
    assert not any("share the highest" in text for text in found)


def test_no_scores() -> None:
    found = ScoreDigits.of(np.array([]))
    assert found.texts() == []
    assert found.to_dict()["highest"] is None
