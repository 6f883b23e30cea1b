"""Builds the detector that a config describes."""

from __future__ import annotations

from typing import NamedTuple

from lvdet.errors import InputError
from lvdet.training.configuration.config import Config
from lvdet.training.model.backbones import BACKBONES, NORMS, build_backbone
from lvdet.training.model.box_stage import BoxStage
from lvdet.training.model.classifier import Frequencies, build_classifier
from lvdet.training.model.detector import Detector
from lvdet.training.model.mask_head import MaskHead
from lvdet.training.model.proposals import ProposalNetwork
from lvdet.training.model.recipe import CASCADE, PAPER, PAPER_CASCADE, TINY, Recipe
from lvdet.training.weights.body_weights import BodyWeights

KINDS = ("mask_rcnn", "cascade_rcnn")


class _Widths(NamedTuple):
    """Channels of the pyramid, of the box head's layers, and of the mask head's."""

    pyramid: int = 256
    box: int = 1024
    mask: int = 256


def build_detector(
    config: Config,
    frequencies: Frequencies,
    *,
    pretrained: bool = True,
    recipe: Recipe | None = None,
    body: BodyWeights | None = None,
) -> Detector:
    """A detector of as many classes as there are frequencies.

    pretrained: begin with `model.weights`; otherwise from nothing, for weights to be loaded into
    recipe:     the paper's by default
    body:       weights of the backbone, in place of `model.weights`
    """
    model = config.model
    _require(model.kind, KINDS, "model.kind")
    _require(model.backbone, BACKBONES, "model.backbone")
    norm = model.chosen_norm
    _require(norm, NORMS, "model.norm")
    tiny = model.backbone == "tiny"
    widths = _Widths(32, 128, 32) if tiny else _Widths()
    cascade = model.kind == "cascade_rcnn"
    recipe = recipe or (TINY if tiny else PAPER_CASCADE if cascade else PAPER)
    weights = body or (model.weights if pretrained else "none")
    backbone = build_backbone(model.backbone, norm, weights, widths.pyramid, model.stride_in)
    classes = len(frequencies.image_count)
    plan = CASCADE if cascade else ((recipe.foreground, recipe.box_weights),)
    stages = [
        BoxStage(
            widths.pyramid,
            widths.box,
            build_classifier(config.classifier, widths.box, frequencies),
            1 if cascade else classes,
            targets,
            1 / len(plan),
            recipe,
        )
        for _, targets in plan
    ]
    return Detector(
        backbone,
        ProposalNetwork(widths.pyramid, tuple(model.anchors), recipe),
        stages,
        [overlap for overlap, _ in plan],
        MaskHead(widths.pyramid, widths.mask, classes, recipe) if model.masks else None,
        classes,
        recipe,
    )


def _require(value: str, known: tuple[str, ...], name: str) -> None:
    if value not in known:
        raise InputError(f"{name} is {value!r}, expected one of {', '.join(known)}")
