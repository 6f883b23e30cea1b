"""Imported detectors predict what they predict in their own project."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional
from torchvision.models.detection import MaskRCNN
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.ops import roi_align

from lvdet.errors import InputError
from lvdet.training.data.batch import Batch
from lvdet.training.model.pooling import level_of
from lvdet.training.weights.foreign_detector import load_foreign
from training.weights.original_layouts import State, filters, resnet_state, run_resnet

CPU = torch.device("cpu")
NAMES = {3: "cat", 5: "dog", 9: "bird"}


def pixels() -> Tensor:
    draw = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (1, 3, 128, 160), generator=draw).to(torch.uint8)


def batch() -> Batch:
    return Batch(pixels(), torch.tensor([[128, 160]]), torch.zeros(1, dtype=torch.int64), None)


def test_torchvision_s_mask_r_cnn(tmp_path: Path) -> None:
    torch.manual_seed(0)
    theirs = MaskRCNN(
        resnet_fpn_backbone(backbone_name="resnet18", weights=None),
        num_classes=4,
        min_size=128,
        max_size=160,
        box_score_thresh=-1.0,
        box_nms_thresh=1.0,
        box_detections_per_img=100_000,
    ).eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "predictor" in name or "rpn" in name:
                parameter.add_(torch.randn_like(parameter) * 0.02)
    torch.save(theirs.state_dict(), tmp_path / "model.pth")
    model = load_foreign(tmp_path / "model.pth", NAMES, "x.json", CPU)
    assert model.category_ids.tolist() == [3, 5, 9]
    with torch.no_grad():
        features = model.detector.features(batch())
        found = model.detector.candidates(features, batch())
        images, _ = theirs.transform([pixels()[0].float() / 255])
        maps = theirs.backbone(images.tensors)
        for ours, map_ in zip(features.pyramid, maps.values(), strict=True):
            torch.testing.assert_close(ours, map_, rtol=1e-4, atol=1e-4 * float(map_.std()))
        ours_of, theirs_of = (
            head(levels)
            for head, levels in (
                (model.detector.proposals.head, features.pyramid),
                (theirs.rpn.head, list(maps.values())),
            )
        )
        for ours_all, theirs_all in zip(ours_of, theirs_of, strict=True):
            for ours, map_ in zip(ours_all, theirs_all, strict=True):
                torch.testing.assert_close(ours, map_, rtol=1e-3, atol=1e-3 * float(map_.std()))
        proposals, _ = model.detector.proposals(features.pyramid, batch())
        boxes = [proposals.box[0][proposals.there[0]]]
        hidden = theirs.roi_heads.box_head(
            theirs.roi_heads.box_roi_pool(maps, boxes, images.image_sizes)
        )
        logits, codes = theirs.roi_heads.box_predictor(hidden)
        moved = theirs.roi_heads.box_coder.decode(codes, boxes)[:, 1:]
        moved[..., 0::2].clamp_(0, 160)
        moved[..., 1::2].clamp_(0, 128)
        there = proposals.there[0]
        scores = found.score[0, there]
        torch.testing.assert_close(scores, logits.softmax(1)[:, 1:], rtol=1e-3, atol=1e-4)
        every = found.boxes(torch.arange(found.score.numel())).view(*found.score.shape[1:], 4)
        torch.testing.assert_close(every[there], moved, rtol=1e-3, atol=1e-2)
        box, label = boxes[0][:5], torch.tensor([0, 1, 2, 0, 1])
        masks = model.detector.masks(features, batch(), torch.zeros(5).long(), box, label)
        pooled = theirs.roi_heads.mask_roi_pool(maps, [box], images.image_sizes)
        expected = theirs.roi_heads.mask_predictor(theirs.roi_heads.mask_head(pooled)).sigmoid()
        expected = expected[torch.arange(5), label + 1]
        torch.testing.assert_close(masks, expected, rtol=1e-3, atol=1e-4)


def detectron2_state(classes: int, stages: int) -> State:
    """A whole Mask or Cascade R-CNN with ResNet-18, by Detectron2's names."""
    body = resnet_state([2, 2, 2, 2], bottleneck=False)
    state = {f"backbone.bottom_up.{name}": tensor for name, tensor in body.items()}
    state["backbone.bottom_up.stem.conv1.weight"] /= 50  # colours are not divided

    def layer(name: str, weight: Tensor) -> None:
        state[f"{name}.weight"], state[f"{name}.bias"] = weight, torch.randn(len(weight)) * 0.1

    for level in range(2, 6):
        layer(f"backbone.fpn_lateral{level}", filters(256, 16 << level, 1) / 2)
        layer(f"backbone.fpn_output{level}", filters(256, 256, 3) / 2)
    head = "proposal_generator.rpn_head"
    layer(f"{head}.conv", filters(256, 256, 3))
    layer(f"{head}.objectness_logits", filters(3, 256, 1))
    layer(f"{head}.anchor_deltas", filters(12, 256, 1) / 10)
    for stage in range(stages):
        at = f"{stage}." if stages > 1 else ""
        layer(f"roi_heads.box_head.{at}fc1", filters(1024, 256 * 49, 1)[:, :, 0, 0])
        layer(f"roi_heads.box_head.{at}fc2", filters(1024, 1024, 1)[:, :, 0, 0])
        of_class = filters(classes + 1, 1024, 1)[:, :, 0, 0]
        of_box = filters(4 if stages > 1 else 4 * classes, 1024, 1)[:, :, 0, 0] / 10
        layer(f"roi_heads.box_predictor.{at}cls_score", of_class)
        layer(f"roi_heads.box_predictor.{at}bbox_pred", of_box)
    for number in range(1, 5):
        layer(f"roi_heads.mask_head.mask_fcn{number}", filters(256, 256, 3))
    layer("roi_heads.mask_head.deconv", filters(256, 256, 2))
    layer("roi_heads.mask_head.predictor", filters(classes, 256, 1))
    return state


def run_pyramid(state: State, x: Tensor) -> list[Tensor]:
    """p2 to p6 of red, green and blue pixels."""
    x = x.flip(1) - torch.tensor([103.530, 116.280, 123.675])[:, None, None]
    prefix = "backbone.bottom_up."
    body = {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}
    stages = run_resnet(body, x, stride_in_1x1=True)
    before, levels = None, []
    for level, stage in zip((5, 4, 3, 2), stages[::-1], strict=True):
        at = f"backbone.fpn_lateral{level}"
        inner = functional.conv2d(stage, state[f"{at}.weight"], state[f"{at}.bias"])
        if before is not None:
            inner = inner + functional.interpolate(before, scale_factor=2.0, mode="nearest")
        before, at = inner, f"backbone.fpn_output{level}"
        levels.append(
            functional.conv2d(inner, state[f"{at}.weight"], state[f"{at}.bias"], padding=1)
        )
    return [*levels[::-1], functional.max_pool2d(levels[0], 1, 2)]


def linear(state: State, name: str, x: Tensor) -> Tensor:
    return functional.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])


def pooled(levels: list[Tensor], box: Tensor, side: int) -> Tensor:
    """ROIAlignV2, with as many samples as a bin has pixels."""
    level = level_of(box, 4)
    rows = [
        roi_align(levels[int(n)], [one[None]], side, 0.25 / 2 ** int(n), 0, True)
        for n, one in zip(level, box, strict=True)
    ]
    return torch.cat(rows)


@pytest.mark.parametrize("stages", [1, pytest.param(3, marks=pytest.mark.long)])
def test_detectron2_s_detectors(tmp_path: Path, stages: int) -> None:
    torch.manual_seed(1)
    state = detectron2_state(3, stages)
    arrays = {name: tensor.numpy() for name, tensor in state.items()}
    content = {"model": arrays, "__author__": "Detectron2 Model Zoo"}
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(content, 4))
    model = load_foreign(tmp_path / "model.pkl", NAMES, "x.json", CPU)
    assert model.config.model.kind == ("mask_rcnn" if stages == 1 else "cascade_rcnn")
    box = torch.tensor([[3.0, 5, 40, 60], [20, 10, 150, 120], [0, 0, 158, 126], [50, 60, 59, 66]])
    image, label = torch.zeros(4).long(), torch.tensor([0, 1, 2, 0])
    with torch.no_grad():
        features = model.detector.features(batch())
        levels = run_pyramid(state, pixels().float())
        for ours, theirs in zip(features.pyramid, levels, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4 * float(theirs.std()))
        head = "proposal_generator.rpn_head"
        scores, codes = model.detector.proposals.head(features.pyramid)
        for level, score, code in zip(levels, scores, codes, strict=True):
            weight, bias = state[f"{head}.conv.weight"], state[f"{head}.conv.bias"]
            hidden = functional.conv2d(level, weight, bias, padding=1).relu()
            for name, ours in (("objectness_logits", score), ("anchor_deltas", code)):
                at = f"{head}.{name}"
                theirs = functional.conv2d(hidden, state[f"{at}.weight"], state[f"{at}.bias"])
                torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3 * float(theirs.std()))
        for number, stage in enumerate(model.detector.stages):
            at = f"{number}." if stages > 1 else ""
            x = pooled(levels, box, 7).flatten(1)
            x = linear(state, f"roi_heads.box_head.{at}fc1", x).relu()
            x = linear(state, f"roi_heads.box_head.{at}fc2", x).relu()
            logits = linear(state, f"roi_heads.box_predictor.{at}cls_score", x)
            hidden = stage.features(features.pooled, image, box)
            ours = stage.classifier.scores(stage.classifier(hidden))
            torch.testing.assert_close(ours, logits.softmax(1)[:, :-1], rtol=1e-3, atol=1e-4)
            weights = torch.tensor([10.0, 10, 5, 5]) * (number + 1)
            code = linear(state, f"roi_heads.box_predictor.{at}bbox_pred", x).view(4, -1, 4)
            size = box[:, 2:] - box[:, :2]
            code = code / weights
            centre = (box[:, None, :2] + size[:, None] / 2) + code[..., :2] * size[:, None]
            half = code[..., 2:].clamp(max=4.135166556742356).exp() * size[:, None] / 2
            theirs = torch.cat([centre - half, centre + half], dim=-1)
            torch.testing.assert_close(stage.moved(hidden, box), theirs, rtol=1e-3, atol=1e-2)
        x = pooled(levels, box, 14)
        for number in range(1, 5):
            at = f"roi_heads.mask_head.mask_fcn{number}"
            x = functional.conv2d(x, state[f"{at}.weight"], state[f"{at}.bias"], padding=1).relu()
        at = "roi_heads.mask_head.deconv"
        x = functional.conv_transpose2d(x, state[f"{at}.weight"], state[f"{at}.bias"], 2).relu()
        at = "roi_heads.mask_head.predictor"
        x = functional.conv2d(x, state[f"{at}.weight"], state[f"{at}.bias"]).sigmoid()
        masks = model.detector.masks(features, batch(), image, box, label)
        torch.testing.assert_close(masks, x[torch.arange(4), label], rtol=1e-3, atol=1e-3)
    (anchors, *_) = model.detector.proposals.anchors(features.pyramid)
    sides = (anchors[:3, 2:] - anchors[:3, :2]).tolist()
    expected = [32 / 0.5**0.5, 32 * 0.5**0.5, 32, 32, 32 / 2**0.5, 32 * 2**0.5]
    assert [side for pair in sides for side in pair] == pytest.approx(expected, rel=1e-6)
    with pytest.raises(InputError, match=r"model\.pkl: has 3 classes, but x\.json has 1 categor"):
        load_foreign(tmp_path / "model.pkl", {1: "cat"}, "x.json", CPU)
    with pytest.raises(InputError, match="does not name its 3 classes; pass --annotations"):
        load_foreign(tmp_path / "model.pkl", {}, "x.json", CPU)


def test_what_is_no_detector(tmp_path: Path) -> None:
    state = {name: torch.zeros(1) for name in detectron2_state(1, 1)}
    scores = "roi_heads.box_predictor.cls_score.weight"
    box = {f"roi_heads.box_head.{n}.fc1.weight": torch.zeros(1) for n in range(2)}
    whole = detectron2_state(1, 1)
    other = {name: tensor for name, tensor in whole.items() if ".res5.1." not in name}
    two = {name: tensor for name, tensor in whole.items() if "box_head" not in name}
    for content, says in (
        ({"backbone.bottom_up.stem.conv1.weight": torch.zeros(1)}, "it has no proposal layers"),
        (state, "has no layer that scores classes"),
        (state | {"roi_heads.keypoint_head.weight": torch.zeros(1)}, "has roi_heads.keypoint_head"),
        (whole | {scores: torch.zeros(1, 9)}, "has no layer that scores classes"),
        (other, "unknown backbone, expected ResNet-18"),
        (two | box, "has 2 box stages, expected 1 or 3"),
    ):
        torch.save({"model": content}, tmp_path / "bad.pth")
        with pytest.raises(InputError, match=says) as error:
            load_foreign(tmp_path / "bad.pth", {1: "cat"}, "x.json", CPU)
        assert "\n" not in str(error.value)
