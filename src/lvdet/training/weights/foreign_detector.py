"""Detectors from Detectron2 and torchvision, ready to predict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from lvdet.errors import InputError
from lvdet.training.configuration.config import Config, Model
from lvdet.training.model.build import build_detector
from lvdet.training.model.classifier import Frequencies
from lvdet.training.model.recipe import DETECTRON2, TORCHVISION
from lvdet.training.records.checkpoint import LoadedModel, put_weights
from lvdet.training.records.vocabulary import Vocabulary
from lvdet.training.weights.body_weights import body_weights
from lvdet.training.weights.head_names import Heads, detector_heads
from lvdet.training.weights.weight_file import read_weight_file

#: What torchvision calls a label that COCO skips.
_UNUSED = "N/A"


def load_foreign(
    path: Path,
    categories: Mapping[int, str],
    where: object,
    device: torch.device,
    convention: str | None = None,
) -> LoadedModel:
    """Loads the detector in a Detectron2 or torchvision file, in eval mode.

    categories: names by id of the classes that it was trained on, which the file does not say;
                `where` they are from is what errors name
    convention: a name of `CONVENTIONS`, for a backbone trained otherwise than usual
    """
    file = read_weight_file(path)
    heads = detector_heads(file)
    body = body_weights(file, convention)
    if not body.backbone:
        raise InputError(
            f"{path}: unknown backbone, expected ResNet-18, -50 or -101, ResNeXt-101 32x8d or "
            "RegNetY-4GF"
        )
    if heads.stages not in (1, 3):
        raise InputError(f"{path}: has {heads.stages} box stages, expected 1 or 3")
    vocabulary = _vocabulary(heads, categories, path, where)
    model = Model(
        kind="mask_rcnn" if heads.stages == 1 else "cascade_rcnn",
        backbone=body.backbone,
        weights=str(path),
        norm="frozen",
        stride_in=body.stride_in,
        masks=heads.masks,
    )
    if heads.sides:
        model = replace(model, anchors=heads.sides)
    config = Config(model=model)
    detector = build_detector(
        config,
        vocabulary.frequencies,
        recipe=TORCHVISION if heads.project == "torchvision" else DETECTRON2,
        body=body,
    )
    state = detector.state_dict()
    bodies = {name: tensor for name, tensor in state.items() if name.startswith("backbone.body.")}
    put_weights(detector, {**bodies, **heads.tensors}, path)
    detector.requires_grad_(False).to(device).eval()
    return LoadedModel(detector, config, vocabulary, 0)


def _vocabulary(
    heads: Heads, categories: Mapping[int, str], path: Path, where: object
) -> Vocabulary:
    """Classes are in the order of their ids. torchvision's labels may also be the ids themselves,
    with gaps: then the classes in between are unused."""
    ids, count = sorted(categories), heads.classes
    if not ids:
        raise InputError(f"{path}: does not name its {count:,} classes; pass --annotations FILE")
    if len(ids) == count:
        names = [categories[number] for number in ids]
    elif heads.project == "torchvision" and ids[0] >= 1 and ids[-1] <= count:
        ids = list(range(1, count + 1))
        names = [categories.get(number, _UNUSED) for number in ids]
    else:
        raise InputError(
            f"{path}: has {count:,} classes, but {where} has {len(ids):,} categories; pass "
            "--annotations FILE with the annotations that it was trained on"
        )
    none = np.zeros(count, dtype=np.int64)
    return Vocabulary(np.array(ids, dtype=np.int64), names, None, Frequencies(0, none, none))
