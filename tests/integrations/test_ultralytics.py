"""Ultralytics' validators, driven as Ultralytics does; lvis is the oracle of the numbers.

test_ultralytics_itself.py runs them in Ultralytics' own validation.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from integrations.framework_samples import ImageDetections, class_ids, per_image
from lvdet.errors import InputError
from oracles.cases import lvis_case
from oracles.lvis_reference import cut_per_class, evaluate_lvis

pytest.importorskip("torch")

Json = dict[str, Any]
ADAPTER = "lvdet.integrations.ultralytics"


class DetectionValidator:
    """Ultralytics', as far as detections go: corners are scaled by 2 to the image's pixels."""

    def __init__(self, folder: Path) -> None:
        self.save_dir, self.metrics = folder, SimpleNamespace()
        self.args = SimpleNamespace(save_json=True)

    def init_metrics(self, model: Any) -> None:
        self.is_custom_json, self.gdict = True, {}

    def update_metrics(self, preds: Any, batch: Json) -> None:
        assert not self.args.save_json  # or it lists all detections

    def gather_stats(self) -> None:
        assert self.args.save_json

    def get_stats(self) -> Json:
        return {"metrics/mAP50(B)": 0.5}

    def _prepare_batch(self, place: int, batch: Json) -> Json:
        return {"im_file": batch["im_file"][place]}

    def _prepare_pred(self, pred: Json) -> Json:
        return pred

    def scale_preds(self, pred: Json, batch: Json) -> Json:
        return pred | {"bboxes": pred["bboxes"] * 2}


class SegmentationValidator(DetectionValidator):
    def init_metrics(self, model: Any) -> None:
        super().init_metrics(model)
        self.process = None


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The adapter over a stand-in for Ultralytics."""
    ops = SimpleNamespace(process_mask_native="native")
    logger = SimpleNamespace(info=lambda text: None)
    contents = {
        "models.yolo.detect": {"DetectionValidator": DetectionValidator},
        "models.yolo.segment": {"SegmentationValidator": SegmentationValidator},
        "utils": {"LOGGER": logger, "RANK": -1, "ops": ops},
    }
    for name in ("ultralytics", "ultralytics.models", "ultralytics.models.yolo"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for name, values in contents.items():
        module = ModuleType(f"ultralytics.{name}")
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    yield importlib.import_module(ADAPTER)
    del sys.modules[ADAPTER]


def case(folder: Path, *, masks: bool = False) -> tuple[Json, Path, list[ImageDetections]]:
    """A small LVIS file that names its images, and their detections."""
    annotations, results = next(
        found
        for found in (lvis_case(seed, masks=masks) for seed in range(40))
        if sum(len(one) > 0 for one in per_image(*found)) > 2
    )
    for image in annotations["images"]:
        image["file_name"] = f"val/image {image['id']}.jpg"
    path = folder / "annotations.json"
    path.write_text(json.dumps(annotations))
    return annotations, path, list(per_image(annotations, results))


def run(validator: Any, images: list[ImageDetections], names: Any, masks: Any = None) -> Json:
    validator.init_metrics(SimpleNamespace(names=names))
    for image in images:
        pred = {"bboxes": image.corners / 2, "conf": image.scores, "cls": image.labels}
        if masks is not None:
            pred["masks"] = masks(image)
        batch = {"im_file": [f"/data/val/image {image.image_id}.jpg"]}
        validator.update_metrics([pred], batch)
    validator.gather_stats()
    stats: Json = validator.get_stats()
    return validator.eval_json(stats)


@pytest.mark.parametrize("by_label", [False, True])
def test_boxes(adapter: Any, tmp_path: Path, *, by_label: bool) -> None:
    annotations, path, images = case(tmp_path)
    ids = class_ids(annotations)
    names: Any = [f"another name {class_id}" for class_id in ids]
    names = dict(enumerate(names)) if by_label else names
    validator = adapter.validator(path, dets_per_class=3)(tmp_path / "run")
    stats = run(validator, images, names)
    rows = [row for image in images for row in image.results(ids)]
    expected = evaluate_lvis(annotations, cut_per_class(rows, 3), "bbox", -1)["AP"]
    assert stats["fixed/AP(B)"] == pytest.approx(expected, abs=1e-12)
    assert stats["metrics/mAP50(B)"] == 0.5
    assert stats["fixed/AP(B)"] == validator.metrics.lvdet["bbox"]["fixed"].AP
    saved = json.loads((tmp_path / "run" / "predictions.json").read_text())
    assert {row["image_id"] for row in saved} <= {one["id"] for one in annotations["images"]}


def test_masks(adapter: Any, tmp_path: Path) -> None:
    annotations, path, images = case(tmp_path, masks=True)
    sizes = {one["id"]: (one["height"], one["width"]) for one in annotations["images"]}
    rng = np.random.default_rng(0)
    validator = adapter.validator(path, masks=True)(tmp_path / "run")
    assert isinstance(validator, SegmentationValidator)
    stats = run(
        validator,
        images,
        [str(class_id) for class_id in class_ids(annotations)],
        lambda image: rng.random((len(image), *sizes[image.image_id])) < 0.5,
    )
    saved = json.loads((tmp_path / "run" / "predictions.json").read_text())
    expected = evaluate_lvis(annotations, saved, "segm", -1)["AP"]
    assert stats["fixed/AP(M)"] == pytest.approx(expected, abs=1e-12)
    assert set(validator.metrics.lvdet) == {"bbox", "segm"}
    assert validator.process == "native"


def test_refusals(adapter: Any, tmp_path: Path) -> None:
    annotations, path, images = case(tmp_path)
    kind = adapter.validator(path)
    names = [str(class_id) for class_id in class_ids(annotations)]
    with pytest.raises(InputError, match=r"classes, but the detector has 1, and some of their"):
        run(kind(tmp_path / "run"), images, {0: "one"})
    unknown = ImageDetections(12345, images[0].corners, images[0].scores, images[0].labels)
    with pytest.raises(InputError, match=r"image 12345\.jpg.* in .*annotations\.json"):
        run(kind(tmp_path / "run"), [unknown], names)


def test_without_ultralytics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ultralytics", None)
    monkeypatch.delitem(sys.modules, ADAPTER, raising=False)
    with pytest.raises(ModuleNotFoundError, match=r"needs ultralytics: pip install ultralytics$"):
        importlib.import_module(ADAPTER)
