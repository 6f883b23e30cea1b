"""How other projects compute the numbers they publish.

docs/reproducing.md says where each row was read: file and line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from lvdet.errors import InputError
from lvdet.limits.budgets import Budget, describe, parse_budget
from lvdet.matching.match_options import DEFAULT, MatchOptions
from lvdet.tables.ground_truth import GroundTruth

_CHUNKS = "keeps 300 detections per image and group of 40 classes during inference"


@dataclass(frozen=True)
class Preset:
    """What a project does with a results file. All projects repeat the quirks of the reference
    tools and evaluate every class of the annotations.

    federated: whether its annotations follow LVIS rather than COCO
    chain:   its limits, as `parse_budget` reads them
    iou:     what it compares; None for boxes or masks, as the caller chooses
    mask_area: whether it drops `bbox` when it compares masks, so that a detection's area is its
             mask's; otherwise the box's, if there is one
    missing: a further step that a results file cannot show, "" for none
    """

    name: str
    title: str
    federated: bool
    chain: str
    iou: str | None = None
    mask_area: bool = False
    missing: str = ""

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """The chain of limits as budgets."""
        return parse_budget(self.chain)

    def options(self, requested: MatchOptions) -> MatchOptions:
        """How detections are compared, as far as the preset leaves that open."""
        if replace(requested, iou=None) != DEFAULT:
            raise InputError(
                f"preset {self.name!r} sets the IoU thresholds and lvis's quirks itself: leave out "
                "thresholds and exact_lvis"
            )
        if requested.iou is not None and self.iou not in (None, requested.iou):
            raise InputError(
                f"preset {self.name!r} compares with iou {self.iou}, not {requested.iou}"
            )
        return replace(
            requested, iou=requested.iou or self.iou, exact_lvis=True, mask_area=self.mask_area
        )

    def require(self, gt: GroundTruth) -> None:
        """Raises for annotations of the other kind."""
        if gt.federated != self.federated:
            kinds = {True: "LVIS", False: "COCO"}
            raise InputError(
                f"preset {self.name!r} is for {kinds[self.federated]} annotations, but "
                f"{gt.source} has {kinds[gt.federated]} annotations"
            )

    def notes(self, iou: str) -> list[str]:
        """What was applied and what could not be, in sentences."""
        area = ""
        if iou != "bbox" and self.federated:
            area = ", a detection's area is its " + (
                "mask's" if self.mask_area else "box's if it has one"
            )
        tool = "lvis" if self.federated else "pycocotools"
        found = [f"Evaluated like {self.title}: {self.chain}, the quirks of {tool}{area}."]
        if self.missing:
            found.append(
                f"{self.title} also {self.missing}, which cannot be seen in a results file: "
                f"lvdet applied {self.chain} alone."
            )
        return found

    def to_dict(self, iou: str) -> dict[str, Any]:
        """Plain values, beside the numbers."""
        return {
            "name": self.name,
            "budget": describe(self.budgets),
            "exact_lvis": True,
            "mask_area": self.mask_area,
            "notes": self.notes(iou),
        }


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        one.name: one
        for one in (
            Preset("lvis", "lvis", True, "300/image"),
            Preset("detectron2", "Detectron2", True, "300/image", mask_area=True),
            Preset(
                "lvis-challenge-2021",
                "the LVIS Challenge 2021",
                True,
                "10000/class",
                iou="boundary",
            ),
            Preset("glip", "GLIP", True, "10000/class", iou="bbox", missing=_CHUNKS),
            Preset(
                "mm-grounding-dino",
                "MM-Grounding-DINO",
                True,
                "10000/class",
                iou="bbox",
                missing=_CHUNKS,
            ),
            Preset("yolo-world", "YOLO-World", True, "1000/image,10000/class", iou="bbox"),
            Preset("yoloe", "YOLOE", True, "1000/image,10000/class", mask_area=True),
            Preset("coco", "pycocotools", False, "100/image/class"),
            Preset("v3det", "V3Det", False, "300/image/class", iou="bbox"),
        )
    }
)


def preset(name: str) -> Preset:
    """The preset with the given name."""
    if name not in PRESETS:
        raise InputError(f"unknown preset {name!r}, expected one of {', '.join(PRESETS)}")
    return PRESETS[name]
