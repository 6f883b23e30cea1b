"""The evaluator inside Detectron2, beside its own, and a Mask R-CNN of random weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from integrations.framework_samples import ImageDetections, bitmaps, class_ids, per_image
from oracles.cases import lvis_case
from oracles.lvis_reference import LVIS  # makes lvis importable

pytestmark = [
    pytest.mark.frameworks,
    pytest.mark.filterwarnings("default"),  # those of the framework and of its packages
]

assert LVIS
pytest.importorskip("detectron2", reason="needs Detectron2: see CONTRIBUTING.md, Frameworks")
Json = dict[str, Any]


@pytest.fixture
def catalogue(tmp_path: Path) -> Iterator[Any]:
    """Registers an annotation file as Detectron2's data set `drawn`."""
    from detectron2.data import MetadataCatalog

    def register(annotations: Json) -> Path:
        path = tmp_path / "annotations.json"
        path.write_text(json.dumps(annotations))
        MetadataCatalog.get("drawn").set(json_file=str(path), evaluator_type="lvis")
        return path

    yield register
    MetadataCatalog.pop("drawn", None)


def outputs(image: ImageDetections, size: tuple[int, int], masks: Any = None) -> Json:
    import torch
    from detectron2.structures import Boxes, Instances

    found = Instances(size)
    found.pred_boxes = Boxes(torch.tensor(image.corners))
    found.scores = torch.tensor(image.scores)
    found.pred_classes = torch.tensor(image.labels)
    if masks is not None:
        found.pred_masks = torch.tensor(masks)
    return {"instances": found}


def numbers(evaluator: Any, batches: list[tuple[Json, Json]]) -> Any:
    evaluator.reset()
    for given, found in batches:
        evaluator.process([given], [found])
    return evaluator.evaluate()


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_ap_old_is_detectron2_s(catalogue: Any, tmp_path: Path, seed: int, *, masks: bool) -> None:
    from detectron2.evaluation import LVISEvaluator as Theirs

    from lvdet.integrations.detectron2 import LVISEvaluator

    annotations, results = lvis_case(seed, masks=masks)
    # Without a map, a class's label is its id minus 1.
    new = {class_id: row + 1 for row, class_id in enumerate(class_ids(annotations))}
    for one in annotations["categories"]:
        one["id"] = new[one["id"]]
    for one in annotations["annotations"]:
        one["category_id"] = new[one["category_id"]]
    for one in annotations["images"]:
        for name in ("neg_category_ids", "not_exhaustive_category_ids"):
            one[name] = [new[class_id] for class_id in one[name] if class_id in new]
    results = [
        one | {"category_id": new[one["category_id"]]}
        for one in results
        if one["category_id"] in new
    ]
    catalogue(annotations)
    sizes = {one["id"]: (one["height"], one["width"]) for one in annotations["images"]}
    shapes = bitmaps(annotations, results) if masks else {}
    batches = []
    for image in per_image(annotations, results):
        drawn = shapes.get(image.image_id)
        given = {"image_id": image.image_id}
        batches.append((given, outputs(image, sizes[image.image_id], drawn)))
    if not annotations["annotations"] or not any(len(one["instances"]) for _, one in batches):
        pytest.skip("Detectron2 does not evaluate without objects, nor lvis without detections")
    theirs = numbers(Theirs("drawn", distributed=False), batches)
    ours = numbers(LVISEvaluator("drawn", output_dir=str(tmp_path / "out")), batches)
    for task, expected in theirs.items():
        undefined = {name: np.nan if value == -100 else value for name, value in expected.items()}
        assert {name: ours[task][name] for name in expected} == pytest.approx(
            undefined, abs=1e-10, nan_ok=True
        )
        assert {f"{task}_fixed", f"{task}_pool"} <= set(ours)
    assert set(theirs) == ({"bbox", "segm"} if masks else {"bbox"})
    assert (tmp_path / "out" / "lvis_instances_results.json").exists()


CLASSES, SIDE, IMAGES = 6, 96, 5


def model() -> Any:
    """A Mask R-CNN over a small ResNet, with the limits per image that AP-Fixed needs."""
    import torch
    from detectron2.config import get_cfg
    from detectron2.modeling import build_model

    cfg = get_cfg()
    cfg.MODEL.DEVICE = "cpu"
    cfg.MODEL.MASK_ON = True
    cfg.MODEL.META_ARCHITECTURE = "GeneralizedRCNN"
    cfg.MODEL.BACKBONE.NAME = "build_resnet_fpn_backbone"
    cfg.MODEL.RESNETS.DEPTH = 18
    cfg.MODEL.RESNETS.RES2_OUT_CHANNELS = 64
    cfg.MODEL.RESNETS.OUT_FEATURES = ["res2", "res3", "res4", "res5"]
    cfg.MODEL.FPN.OUT_CHANNELS = 32
    cfg.MODEL.FPN.IN_FEATURES = ["res2", "res3", "res4", "res5"]
    cfg.MODEL.ANCHOR_GENERATOR.SIZES = [[16], [32], [64], [128], [256]]
    cfg.MODEL.RPN.IN_FEATURES = ["p2", "p3", "p4", "p5", "p6"]
    cfg.MODEL.RPN.POST_NMS_TOPK_TEST = 40
    cfg.MODEL.ROI_HEADS.NAME = "StandardROIHeads"
    cfg.MODEL.ROI_HEADS.IN_FEATURES = ["p2", "p3", "p4", "p5"]
    cfg.MODEL.ROI_HEADS.NUM_CLASSES = CLASSES
    cfg.MODEL.ROI_HEADS.SCORE_THRESH_TEST = 0.0
    cfg.MODEL.ROI_BOX_HEAD.NAME = "FastRCNNConvFCHead"
    cfg.MODEL.ROI_BOX_HEAD.NUM_FC = 1
    cfg.MODEL.ROI_BOX_HEAD.FC_DIM = 64
    cfg.MODEL.ROI_BOX_HEAD.POOLER_RESOLUTION = 7
    cfg.MODEL.ROI_MASK_HEAD.NAME = "MaskRCNNConvUpsampleHead"
    cfg.MODEL.ROI_MASK_HEAD.NUM_CONV = 1
    cfg.MODEL.ROI_MASK_HEAD.CONV_DIM = 32
    cfg.MODEL.ROI_MASK_HEAD.POOLER_RESOLUTION = 14
    cfg.TEST.DETECTIONS_PER_IMAGE = 10_000
    torch.manual_seed(0)
    made = build_model(cfg)
    with torch.no_grad():  # random weights barely tell boxes apart
        for layer in (made.roi_heads.box_predictor.cls_score, made.roi_heads.mask_head.predictor):
            layer.weight.mul_(30)
        made.roi_heads.mask_head.predictor.bias.add_(1)  # more than half of a box
    return made


def drawn_set(detector: Any) -> tuple[Json, list[Json]]:
    """What a loader passes: noise, at 1.5 times the image's size; and annotations: some of what the
    detector finds in it."""
    import pycocotools.mask
    import torch

    generator = torch.Generator().manual_seed(4)
    rng = np.random.default_rng(3)
    inputs, images, objects = [], [], []
    for row in range(IMAGES):
        image = {"id": 10 * row, "height": SIDE, "width": SIDE + 16 * row}
        resized = (3, image["height"] * 3 // 2, image["width"] * 3 // 2)
        pixels = 255 * torch.rand(resized, generator=generator)
        sizes = {name: image[name] for name in ("height", "width")}
        inputs.append({"image_id": image["id"], "image": pixels} | sizes)
        images.append(image | {"neg_category_ids": [], "not_exhaustive_category_ids": []})
        with torch.no_grad():
            found = detector.inference(inputs[-1:])[0]["instances"]
        for at in rng.choice(len(found), 20, replace=False).tolist():
            rle = pycocotools.mask.encode(np.asfortranarray(found.pred_masks[at].numpy(), np.uint8))
            x1, y1, x2, y2 = found.pred_boxes.tensor[at].tolist()
            objects.append(
                {
                    "id": len(objects) + 1,
                    "image_id": image["id"],
                    "category_id": int(found.pred_classes[at]) + 1,
                    "bbox": [x1, y1, x2 - x1, y2 - y1],
                    "area": (x2 - x1) * (y2 - y1),
                    "segmentation": rle | {"counts": rle["counts"].decode()},
                }
            )
    classes = [
        {"id": class_id, "name": f"class {class_id}", "frequency": "rcf"[class_id % 3]}
        for class_id in range(1, CLASSES + 1)
    ]
    return {"images": images, "annotations": objects, "categories": classes}, inputs


def test_two_passes_equal_one(catalogue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from detectron2.evaluation import inference_on_dataset

    import lvdet.integrations.detectron2 as adapter

    detector = model().eval()
    annotations, inputs = drawn_set(detector)
    catalogue(annotations)
    loader = [inputs[:2], inputs[2:4], inputs[4:]]
    budgets = {"dets_per_class": 40, "max_dets_per_image": 50}
    one = inference_on_dataset(detector, loader, adapter.LVISEvaluator("drawn", **budgets))
    made: list[int] = []
    pasted = adapter.paste
    monkeypatch.setattr(
        adapter, "paste", lambda *given: (made.append(len(given[1])), pasted(*given))[1]
    )
    monkeypatch.setattr(adapter, "MASK_VALUES", 20 * CLASSES * 28**2)
    two = adapter.evaluate_in_two_passes(
        detector, loader, adapter.LVISEvaluator("drawn", **budgets)
    )
    assert two["bbox"] == pytest.approx(one["bbox"], nan_ok=True)
    assert two["bbox_fixed"] == pytest.approx(one["bbox_fixed"], nan_ok=True)
    # Boxes go through the original image's pixels and back: a pixel may differ.
    for name in ("segm", "segm_fixed", "segm_pool"):
        assert two[name] == pytest.approx(one[name], abs=0.3, nan_ok=True)
        assert two[name]["AP50"] > 1
    assert max(made) <= 20
    assert sum(made) <= 40 * CLASSES + 50 * IMAGES
    assert detector.roi_heads.mask_on
    with pytest.raises(adapter.InputError, match="no roi_heads with a mask head"):
        adapter.evaluate_in_two_passes(detector.backbone, loader, adapter.LVISEvaluator("drawn"))
