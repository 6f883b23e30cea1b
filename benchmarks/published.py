"""lvdet beside MMDetection's own LVISFixedAPMetric, on random files full of ties.

    python3 -m venv fixed_ap
    fixed_ap/bin/pip install . torch mmengine 'mmcv-lite<2.2' mmdet lvis==0.5.3
    fixed_ap/bin/python benchmarks/published.py --cases 200

mmdet imports compiled operators that the metric does not use. mmcv-lite has none, so an empty
module stands in for them. Prints the largest difference of any metric, and fails above 1e-12.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import logging
import random
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np

import lvdet

Json = dict[str, Any]
METRICS = ("AP", "AP50", "AP75", "APs", "APm", "APl", "APr", "APc", "APf")


def metric_class() -> Any:
    """MMDetection's metric."""
    np.float = float  # type: ignore[attr-defined]  # noqa: NPY001  lvis 0.5.3 still says so
    # What mmdet asks of compiled operators while it is imported.
    sys.modules["mmcv._ext"] = MagicMock()
    from mmdet.evaluation.metrics.lvis_metric import LVISFixedAPMetric

    return LVISFixedAPMetric


def theirs(metric: Any, annotations: Path, results: list[Json], top: int) -> dict[str, float]:
    """The metric, given each image's detections as a data sample, in batches of 3."""
    import torch
    from mmengine.structures import InstanceData

    with contextlib.redirect_stdout(io.StringIO()):
        run = metric(str(annotations), topk=top)
        place = {one: number for number, one in enumerate(run.cat_ids)}
        of_image: dict[int, list[Json]] = {}
        for row in results:
            of_image.setdefault(row["image_id"], []).append(row)
        samples = []
        for image, rows in of_image.items():
            box = torch.tensor([row["bbox"] for row in rows], dtype=torch.float64)
            box[:, 2:] += box[:, :2]
            pred = InstanceData(
                bboxes=box,
                scores=torch.tensor([row["score"] for row in rows], dtype=torch.float64),
                labels=torch.tensor([place[row["category_id"]] for row in rows]),
            )
            samples.append({"img_id": image, "pred_instances": pred})
        for start in range(0, len(samples), 3):
            run.process({}, samples[start : start + 3])
        found = run.evaluate(len(samples))
    return {name.split("/")[-1]: value for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=200)
    count = parser.parse_args().cases
    cases = Path(__file__).resolve().parents[1] / "tests" / "oracles" / "cases.py"
    spec = importlib.util.spec_from_file_location("cases", cases)
    assert spec is not None
    assert spec.loader is not None
    drawn = importlib.util.module_from_spec(spec)
    sys.modules["cases"] = drawn
    spec.loader.exec_module(drawn)
    metric, largest, compared, cut = metric_class(), 0.0, 0, 0
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(count):
            annotations, results = drawn.lvis_case(200_000 + seed, False, quirks=False)
            for row in results:  # corners and back again would round
                row["bbox"] = [float(round(value)) for value in row["bbox"]]
            results.sort(key=lambda row: row["image_id"])
            random.Random(seed).shuffle(annotations["images"])
            gt, dt = Path(folder) / "gt.json", Path(folder) / "dt.json"
            gt.write_text(json.dumps(annotations))
            dt.write_text(json.dumps(results))
            for top in (3, 10_000):
                ours = lvdet.evaluate(gt, dt, iou="bbox", dets_per_class=top, exact_lvis=True)
                reference = theirs(metric, gt, results, top)
                for name in METRICS:
                    value = ours["fixed"][name]
                    other = reference[name]
                    if other == -1:
                        assert np.isnan(value), (seed, top, name, value)
                        continue
                    largest = max(largest, abs(value - other))
                    compared += 1
                cut += top == 3 and len(results) > 3
    print(f"{count:,} cases, {compared:,} numbers, {cut:,} with a cap that may bite")
    print(f"largest difference: {largest:.3g}")
    sys.exit(int(largest > 1e-12))


if __name__ == "__main__":
    main()
