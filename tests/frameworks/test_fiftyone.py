"""FiftyOne's own classes, without its database. It is not in requirements.txt: where it is
installed, these tests run, and tests/integrations has what they recorded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

os.environ |= {"FIFTYONE_DISABLE_SERVICES": "1", "FIFTYONE_DO_NOT_TRACK": "1"}

from integrations.fiftyone_samples import SAMPLES, Json
from lvdet.integrations.fiftyone import (
    detections_from_fiftyone,
    detections_to_fiftyone,
    ground_truth_from_fiftyone,
)

pytestmark = pytest.mark.frameworks

fo = pytest.importorskip("fiftyone")


def field(value: Json | None) -> Any:
    if value is None:
        return None
    rows = [{key: one[key] for key in one if key not in ("_id", "mask")} for one in value]
    return fo.Detections(
        detections=[
            fo.Detection(**{key: one[key] for key in one if key not in ("_cls", "attributes")})
            for one in rows
        ]
    )


def own(recorded: Json) -> Any:
    size = {name: recorded["metadata"][name] for name in ("width", "height")}
    sample = fo.Sample(filepath=recorded["filepath"], metadata=fo.ImageMetadata(**size))
    sample["ground_truth"] = field(recorded["ground_truth"]["detections"])
    found = recorded["predictions"]
    sample["predictions"] = field(None if found is None else found["detections"])
    return sample


def test_recorded_samples_are_fiftyone_s() -> None:
    samples = [own(one) for one in SAMPLES]
    for name in ("ground_truth", "predictions"):
        for sample, recorded in zip(samples, SAMPLES, strict=True):
            made = sample.to_dict()[name]
            assert (made is None) == (recorded[name] is None)
            for ours, theirs in zip(
                *([] if one is None else one["detections"] for one in (recorded[name], made)),
                strict=True,
            ):
                kept = {key: ours[key] for key in ours if key not in ("_id", "mask")}
                assert {key: theirs[key] for key in theirs if key != "_id"} == kept


def test_there_and_back() -> None:
    samples = [own(one) for one in SAMPLES]
    gt = ground_truth_from_fiftyone(samples, "ground_truth")
    dt = detections_from_fiftyone(samples, "predictions", gt)
    assert dt.score.tolist() == [0.75, 0.5, 0.25, 0.9]
    for sample in samples:
        out = detections_to_fiftyone(dt, gt)[Path(sample.filepath).name]
        sample["predictions"] = fo.Detections.from_dict(out)
    again = detections_from_fiftyone(samples, "predictions", gt)
    assert again.score.tolist() == dt.score.tolist()
    assert again.box == pytest.approx(dt.box, rel=1e-12)
