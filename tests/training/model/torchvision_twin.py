"""torchvision's Mask R-CNN with the weights of one of ours."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torchvision.models.detection import MaskRCNN
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor
from torchvision.models.detection.mask_rcnn import MaskRCNNPredictor

from lvdet.training.model.box_stage import BoxStage
from lvdet.training.model.detector import Detector


def twin(detector: Detector, anchors: tuple[int, ...], **settings: Any) -> MaskRCNN:
    """Shares backbone, proposal head and hidden layers; last layers are copied, with the
    background first, as torchvision has it."""
    (stage,) = detector.stages
    assert isinstance(stage, BoxStage)
    assert detector.mask_head is not None
    classes, hidden = detector.classes, stage.mover.in_features
    boxes = FastRCNNPredictor(hidden, classes + 1)
    of_mask = detector.mask_head.predictor.mask_fcn_logits
    masks = MaskRCNNPredictor(of_mask.in_channels, of_mask.in_channels, classes + 1)
    masks.conv5_mask = detector.mask_head.predictor.conv5_mask
    with torch.no_grad():
        layer = stage.classifier.layer
        boxes.cls_score.weight.copy_(layer.weight.roll(1, 0))
        boxes.cls_score.bias.copy_(layer.bias.roll(1, 0))
        for ours, theirs in ((stage.mover, boxes.bbox_pred), (of_mask, masks.mask_fcn_logits)):
            rows = len(ours.weight) // classes
            nn.init.zeros_(theirs.weight)
            theirs.weight[rows:].copy_(ours.weight)
            nn.init.zeros_(theirs.bias)
            theirs.bias[rows:].copy_(ours.bias)
    generator = AnchorGenerator(
        tuple((side,) for side in anchors), ((0.5, 1.0, 2.0),) * len(anchors)
    )
    return MaskRCNN(
        detector.backbone,
        rpn_anchor_generator=generator,
        rpn_head=detector.proposals.head,
        box_head=stage.mlp,
        box_predictor=boxes,
        mask_head=detector.mask_head.layers,
        mask_predictor=masks,
        **settings,
    )
