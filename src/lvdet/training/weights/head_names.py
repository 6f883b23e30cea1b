"""Maps the tensors of other projects' detectors to lvdet's, except the backbone's body."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import Tensor

from lvdet.errors import InputError
from lvdet.training.weights.weight_file import WeightFile

_ANY = r"(\.weight|\.bias)"
#: Names of Detectron2, and lvdet's; K is a stage of a cascade, L a level less 2 or a layer less 1.
_DETECTRON2 = (
    (rf"backbone\.fpn_lateral(?P<L>[2-5]){_ANY}", "backbone.fpn.inner_blocks.{L}.0"),
    (rf"backbone\.fpn_output(?P<L>[2-5]){_ANY}", "backbone.fpn.layer_blocks.{L}.0"),
    (rf"proposal_generator\.rpn_head\.conv{_ANY}", "proposals.head.conv.0.0"),
    (rf"proposal_generator\.rpn_head\.objectness_logits{_ANY}", "proposals.head.cls_logits"),
    (rf"proposal_generator\.rpn_head\.anchor_deltas{_ANY}", "proposals.head.bbox_pred"),
    (rf"roi_heads\.box_head\.(?:(?P<K>\d)\.)?fc1{_ANY}", "stages.{K}.mlp.fc6"),
    (rf"roi_heads\.box_head\.(?:(?P<K>\d)\.)?fc2{_ANY}", "stages.{K}.mlp.fc7"),
    (rf"roi_heads\.box_predictor\.(?:(?P<K>\d)\.)?cls_score{_ANY}", "stages.{K}.classifier.layer"),
    (rf"roi_heads\.box_predictor\.(?:(?P<K>\d)\.)?bbox_pred{_ANY}", "stages.{K}.mover"),
    (rf"roi_heads\.mask_head\.mask_fcn(?P<L>[1-4]){_ANY}", "mask_head.layers.{L}.0"),
    (rf"roi_heads\.mask_head\.deconv{_ANY}", "mask_head.predictor.conv5_mask"),
    (rf"roi_heads\.mask_head\.predictor{_ANY}", "mask_head.predictor.mask_fcn_logits"),
)
#: Those of torchvision, of which older files have shorter ones.
_TORCHVISION = (
    (
        rf"backbone\.fpn\.inner_blocks\.(?P<L>[0-3])(?:\.0)?{_ANY}",
        "backbone.fpn.inner_blocks.{L}.0",
    ),
    (
        rf"backbone\.fpn\.layer_blocks\.(?P<L>[0-3])(?:\.0)?{_ANY}",
        "backbone.fpn.layer_blocks.{L}.0",
    ),
    (rf"rpn\.head\.conv(?:\.0\.0)?{_ANY}", "proposals.head.conv.0.0"),
    (rf"rpn\.head\.cls_logits{_ANY}", "proposals.head.cls_logits"),
    (rf"rpn\.head\.bbox_pred{_ANY}", "proposals.head.bbox_pred"),
    (rf"roi_heads\.box_head\.fc6{_ANY}", "stages.0.mlp.fc6"),
    (rf"roi_heads\.box_head\.fc7{_ANY}", "stages.0.mlp.fc7"),
    (rf"roi_heads\.box_predictor\.cls_score{_ANY}", "stages.0.classifier.layer"),
    (rf"roi_heads\.box_predictor\.bbox_pred{_ANY}", "stages.0.mover"),
    (rf"roi_heads\.mask_head\.(?P<L>[0-3])\.0{_ANY}", "mask_head.layers.{L}.0"),
    (rf"roi_heads\.mask_head\.mask_fcn(?P<N>[1-4]){_ANY}", "mask_head.layers.{N}.0"),
    (rf"roi_heads\.mask_predictor\.conv5_mask{_ANY}", "mask_head.predictor.conv5_mask"),
    (rf"roi_heads\.mask_predictor\.mask_fcn_logits{_ANY}", "mask_head.predictor.mask_fcn_logits"),
)
#: Numbers that lvdet has elsewhere, or works out.
_NOT_NEEDED = ("pixel_mean", "pixel_std", "proposal_generator.anchor_generator.cell_anchors.")


@dataclass(frozen=True)
class Heads:
    """Everything in a detector except its backbone's body, under lvdet's names.

    classes: K, without the background
    stages:  of the box head
    sides:   of the anchors, where the file has them
    """

    project: str
    tensors: Mapping[str, Tensor]
    classes: int
    stages: int
    masks: bool
    sides: tuple[int, ...] = field(default=())


def detector_heads(file: WeightFile) -> Heads:
    """The heads of a whole detector of Detectron2 or torchvision."""
    tensors = file.tensors
    if any(name.startswith("proposal_generator.rpn_head.") for name in tensors):
        named = _renamed(file, _DETECTRON2, "backbone.bottom_up.", first=2)
        return _of_detectron2(named, file)
    if any(name.startswith("rpn.head.") for name in tensors):
        return _of_torchvision(_renamed(file, _TORCHVISION, "backbone.body.", first=0), file)
    raise InputError(
        f"{file.path}: not a detector from Detectron2 or torchvision: it has no proposal layers"
    )


def _renamed(
    file: WeightFile, names: tuple[tuple[str, str], ...], body: str, first: int
) -> dict[str, Tensor]:
    """first: the number of the lowest level of the pyramid"""
    found = {}
    for name, tensor in file.tensors.items():
        if name.startswith((body, *_NOT_NEEDED)):
            continue
        for pattern, ours in names:
            match = re.fullmatch(pattern, name)
            if match is None:
                continue
            numbers = {key: int(value or 0) for key, value in match.groupdict().items()}
            if "mask_fcn" in name and "mask_fcn_logits" not in name:
                numbers = {key: value - 1 for key, value in numbers.items()}
                numbers["L"] = numbers.pop("N", numbers.get("L", 0))
            elif "L" in numbers:
                numbers["L"] -= first
            found[_filled(ours, numbers) + match.groups()[-1]] = tensor.float()
            break
        else:
            raise InputError(
                f"{file.path}: has {name}, which lvdet's Mask R-CNN and Cascade R-CNN lack"
            )
    return found


def _filled(ours: str, numbers: Mapping[str, int]) -> str:
    for key, value in numbers.items():
        ours = ours.replace(f"{{{key}}}", str(value))
    return ours


def _of_detectron2(named: dict[str, Tensor], file: WeightFile) -> Heads:
    """Background is last, as in lvdet. What is the same for all classes is repeated."""
    stages = len({name.split(".")[1] for name in named if name.startswith("stages.")})
    classes = _rows(named, "stages.0.classifier.layer.weight", file) - 1
    for kind in ("weight", "bias"):
        name = f"stages.0.mover.{kind}"
        if stages == 1 and name in named and len(named[name]) == 4:
            named[name] = _repeated(named[name], classes)
        name = f"mask_head.predictor.mask_fcn_logits.{kind}"
        if name in named and len(named[name]) == 1:
            named[name] = _repeated(named[name], classes)
    return Heads(
        "Detectron2", named, classes, stages, _has_masks(named), _sides(file, "cell_anchors")
    )


def _of_torchvision(named: dict[str, Tensor], file: WeightFile) -> Heads:
    """Background is first there, with a box and a mask of its own, which nothing needs."""
    classes = _rows(named, "stages.0.classifier.layer.weight", file) - 1
    changes: dict[str, Callable[[Tensor], Tensor]] = {
        "stages.0.classifier.layer": lambda rows: rows.roll(-1, 0),
        "stages.0.mover": lambda rows: rows[4:],
        "mask_head.predictor.mask_fcn_logits": lambda rows: rows[1:],
    }
    for layer, change in changes.items():
        for name in (f"{layer}.weight", f"{layer}.bias"):
            if name in named:
                named[name] = change(named[name]).contiguous()
    return Heads("torchvision", named, classes, 1, _has_masks(named))


def _repeated(rows: Tensor, classes: int) -> Tensor:
    return rows.repeat(classes, *[1] * (rows.dim() - 1))


def _rows(named: Mapping[str, Tensor], name: str, file: WeightFile) -> int:
    if name not in named or named[name].dim() != 2 or len(named[name]) < 2:
        raise InputError(f"{file.path}: has no layer that scores classes")
    return len(named[name])


def _has_masks(named: Mapping[str, Tensor]) -> bool:
    return any(name.startswith("mask_head.") for name in named)


def _sides(file: WeightFile, mark: str) -> tuple[int, ...]:
    """Sides of the anchors of the five levels, of the anchors that older files have."""
    found = sorted((name, tensor) for name, tensor in file.tensors.items() if mark in name)
    sides = []
    for _, anchors in found:
        corners = anchors.float().reshape(-1, 4)
        areas = (corners[:, 2:] - corners[:, :2]).prod(dim=1)
        sides.append(round(float(areas.mean().sqrt())))
    return tuple(sides)
