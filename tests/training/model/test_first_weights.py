"""First weights and proposals, beside Detectron2's."""

from __future__ import annotations

import math

import pytest
from torch import Tensor

from lvdet.training.model.box_stage import BoxStage
from lvdet.training.model.recipe import PAPER, PAPER_CASCADE
from training.model.test_detector import made


def require_uniform(weight: Tensor, inputs: int) -> None:
    """Caffe2's Xavier: between -b and b = sqrt(3 / inputs)."""
    bound = math.sqrt(3 / inputs)
    assert bound * 0.98 <= weight.abs().max() <= bound
    assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)


def require_normal(weight: Tensor, spread: float) -> None:
    assert weight.std().item() == pytest.approx(spread, rel=0.1)


def test_heads() -> None:
    detector = made()
    stage, masks = detector.stages[0], detector.mask_head
    assert isinstance(stage, BoxStage)
    assert masks is not None
    require_uniform(stage.mlp.fc6.weight, 32 * 49)
    require_uniform(stage.mlp.fc7.weight, 128)
    require_normal(stage.mover.weight, 0.001)
    require_normal(stage.classifier.layer.weight, 0.01)
    convolutions = [layer for layer in masks.layers.modules() if hasattr(layer, "weight")]
    assert len(convolutions) == 4
    for layer in convolutions:  # He's, of 3 x 3 filters and 32 outputs
        require_normal(layer.weight, math.sqrt(2 / (9 * 32)))
    require_normal(masks.predictor.conv5_mask.weight, math.sqrt(2 / (4 * 32)))
    require_normal(masks.predictor.mask_fcn_logits.weight, 0.001)
    for layer in (detector.proposals.head.cls_logits, detector.proposals.head.bbox_pred):
        require_normal(layer.weight, 0.01)
    assert not any(p.any() for name, p in masks.named_parameters() if name.endswith("bias"))
    assert not any(p.any() for name, p in stage.named_parameters() if name.endswith("bias"))


def test_proposals_of_an_image() -> None:
    assert PAPER.post_nms == (1000, 1000)
    assert PAPER_CASCADE.post_nms == (2000, 1000)
    for kind, recipe in (("mask_rcnn", PAPER), ("cascade_rcnn", PAPER_CASCADE)):
        assert made(kind=kind, backbone="resnet18", norm="batch").recipe == recipe
