"""The metric inside MMDetection, beside its own `LVISFixedAPMetric`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from integrations.framework_samples import ImageDetections, class_ids, per_image
from oracles.cases import lvis_case
from oracles.lvis_reference import LVIS  # makes lvis importable

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("default"),  # those of the framework and of its packages
]

assert LVIS


class Operators(ModuleType):
    """Stands in for mmcv's compiled operators, which evaluation does not use."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: pytest.fail(f"evaluation uses mmcv._ext.{name}")


@pytest.fixture(scope="module", autouse=True)
def mmdet() -> None:
    if "mmcv._ext" not in sys.modules:
        sys.modules["mmcv._ext"] = Operators("mmcv._ext")
    import mmdet.evaluation.metrics

    assert mmdet.evaluation.metrics


def samples(images: list[ImageDetections]) -> list[Any]:
    import torch
    from mmdet.structures import DetDataSample
    from mmengine.structures import InstanceData

    found = []
    for image in images:
        one = DetDataSample(metainfo={"img_id": image.image_id, "ori_shape": (100, 100)})
        one.pred_instances = InstanceData(
            bboxes=torch.tensor(image.corners),
            scores=torch.tensor(image.scores),
            labels=torch.tensor(image.labels),
        )
        found.append(one)
    return found


def evaluated(kind: str, classes: list[str], images: list[ImageDetections], **options: Any) -> Any:
    """As a runner does: built from a config, the samples passed through an Evaluator."""
    from mmdet.registry import METRICS
    from mmengine.evaluator import Evaluator

    evaluator = Evaluator(METRICS.build(dict(type=kind, **options)))
    evaluator.dataset_meta = {"classes": tuple(classes)}
    for image in images:
        evaluator.process(data_samples=samples([image]))
    return evaluator.evaluate(len(images))


@pytest.mark.parametrize("topk", [3, 10_000])
@pytest.mark.parametrize("seed", range(20))
def test_only_the_type_changes(tmp_path: Path, seed: int, topk: int) -> None:
    annotations, results = lvis_case(seed, masks=False)
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps(annotations))
    images = list(per_image(annotations, results))
    if not any(map(len, images)):
        pytest.skip("lvis fails without detections")
    names = {one["id"]: one["name"] for one in annotations["categories"]}
    # Their metric takes the order of the file, whatever the classes are called.
    annotations["categories"].sort(key=lambda one: one["id"])
    path.write_text(json.dumps(annotations))
    classes = [names[class_id] for class_id in class_ids(annotations)]
    options = {"ann_file": str(path), "topk": topk}
    theirs = evaluated("LVISFixedAPMetric", classes, images, **options)
    ours = evaluated("lvdet.integrations.mmdet.FixedAPMetric", classes, images, **options)
    assert {name: ours[name] for name in theirs} == pytest.approx(theirs, abs=1e-12)
    assert "lvis_fixed_ap/AP" in theirs
