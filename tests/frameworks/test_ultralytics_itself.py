"""Ultralytics' own validation, at random weights on drawn images."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import lvdet
from integrations.framework_samples import class_ids
from lvdet.errors import InputError
from lvdet.images.image_set import Settings, make_image_set
from oracles.lvis_reference import cut_per_class, evaluate_lvis

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("default"),  # those of the framework and of its packages
]

Json = dict[str, Any]
CLASSES = 5


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, annotations whose ids are neither numbers of file names nor in a row, and labels as
    Ultralytics reads them."""
    folder = tmp_path_factory.mktemp("drawn")
    os.environ.setdefault("YOLO_CONFIG_DIR", str(folder))
    os.environ.setdefault("YOLO_OFFLINE", "true")
    make_image_set(folder / "set", Settings(images=8, val_images=6, classes=CLASSES, size=96))
    annotations = json.loads((folder / "set" / "annotations" / "val.json").read_text())
    shutil.copytree(folder / "set" / "val", folder / "images")
    (folder / "labels").mkdir()
    for image in annotations["images"]:
        labels = []
        for one in annotations["annotations"]:
            if one["image_id"] == image["id"]:
                # Random weights find whole images, if anything.
                x, y, w, h = one["bbox"] = [0, 0, image["width"], image["height"]]
                one["area"] = w * h
                one["segmentation"] = [[x, y, x + w, y, x + w, y + h, x, y + h]]
                labels.append(f"{one['category_id'] - 1} 0 0 1 0 1 1 0 1\n")
        text = "".join(labels)
        (folder / "labels" / image["file_name"]).with_suffix(".txt").write_text(text)
    names = [one["name"] for one in annotations["categories"]]
    (folder / "data.yaml").write_text(
        f"path: {folder}\ntrain: images\nval: images\nnames: {json.dumps(names)}\n"
    )
    (folder / "stock.json").write_text(json.dumps(annotations))
    for one in annotations["images"]:
        one["id"] += 1000
        for name in ("neg_category_ids", "not_exhaustive_category_ids"):
            one[name] = [3 * class_id for class_id in one[name]]
    for one in annotations["annotations"]:
        one["image_id"] += 1000
        one["category_id"] *= 3
    for one in annotations["categories"]:
        one["id"] *= 3
    (folder / "annotations.json").write_text(json.dumps(annotations))
    return folder


def model(folder: Path, kind: str = "yolov8") -> Any:
    """Random weights for our number of classes."""
    import torch
    import ultralytics

    torch.manual_seed(0)
    source = Path(ultralytics.__file__).parent / "cfg" / "models" / "v8" / f"{kind}.yaml"
    path = folder / f"{kind.replace('v8', 'v8n')}.yaml"
    path.write_text(re.sub(r"(?m)^nc: 80", f"nc: {CLASSES}", source.read_text()))
    return ultralytics.YOLO(str(path), verbose=False)


def validated(drawn: Path, detector: Any, **options: Any) -> Any:
    return detector.val(
        data=str(drawn / "data.yaml"),
        imgsz=96,
        batch=4,
        conf=1e-5,
        max_det=1000,
        plots=False,
        device="cpu",
        workers=0,
        project=str(drawn / "runs"),
        exist_ok=True,
        **options,
    )


@pytest.mark.parametrize("masks", [False, True])
def test_validator(drawn: Path, *, masks: bool) -> None:
    from lvdet.integrations.ultralytics import validator

    gt = drawn / "annotations.json"
    detector = model(drawn, "yolov8-seg" if masks else "yolov8")
    name = f"ours {masks}"
    kind = validator(gt, masks=masks, dets_per_class=20)
    metrics = validated(drawn, detector, validator=kind, name=name)
    annotations = json.loads(gt.read_text())
    path = drawn / "runs" / name / "predictions.json"
    rows = json.loads(path.read_text())
    assert {row["category_id"] for row in rows} <= set(class_ids(annotations))
    for iou, result in metrics.lvdet.items():
        expected = evaluate_lvis(annotations, cut_per_class(rows, 20), iou, -1)["AP"]
        found = result["fixed"].AP
        assert found == pytest.approx(expected, abs=1e-12)
        again = lvdet.evaluate(gt, path, iou=iou, exact_lvis=True, dets_per_class=20)
        assert {one: result[one].AP for one in result} == {one: again[one].AP for one in again}
    assert set(metrics.lvdet) == ({"bbox", "segm"} if masks else {"bbox"})
    assert metrics.lvdet["bbox"]["fixed"].AP > 0
    assert [one.name for one in path.parent.iterdir()] == ["predictions.json"]


@pytest.mark.parametrize("masks", [False, True])
def test_stock_results_file(drawn: Path, *, masks: bool) -> None:
    """`model.val(save_json=True)` writes what `evaluate` reads; scores are rounded to 5 digits and
    boxes to 3."""
    from lvdet.integrations.ultralytics import validator

    kind = "yolov8-seg" if masks else "yolov8"
    name = f"stock {masks}"
    validated(drawn, model(drawn, kind), save_json=True, name=name)
    path = drawn / "runs" / name / "predictions.json"
    stock = lvdet.evaluate(drawn / "stock.json", path)
    assert stock.iou == ("segm" if masks else "bbox")
    ours = validated(
        drawn,
        model(drawn, kind),
        validator=validator(drawn / "stock.json", masks=masks),
        name=f"same {masks}",
    )
    found, expected = (result["fixed"].AP50 for result in (ours.lvdet[stock.iou], stock))
    assert found == pytest.approx(expected, abs=0.02)
    assert found > 0
    with pytest.raises(InputError, match=r"is 0000000000.*jpg: write image ids, not file names"):
        lvdet.evaluate(drawn / "annotations.json", path)


def test_another_number_of_classes(drawn: Path) -> None:
    from lvdet.integrations.ultralytics import validator

    annotations = json.loads((drawn / "annotations.json").read_text())
    annotations["categories"].append({"id": 99, "name": "one more", "frequency": "r"})
    path = drawn / "more.json"
    path.write_text(json.dumps(annotations))
    with pytest.raises(InputError, match="has 6 classes, but the detector has 5"):
        validated(drawn, model(drawn), validator=validator(path))
