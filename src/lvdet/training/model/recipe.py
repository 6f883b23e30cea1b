"""The numbers of two-stage detectors that no experiment of the paper varies."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """Thresholds, sample sizes and losses; the defaults are Detectron2's, which the paper used.

    aligned:       RoIAlign takes the middle of a pixel for its place
    box_beta:      where the smooth L1 loss of boxes turns from a parabola to a line; 0: L1
    hard_masks:    mask targets are 0 or 1, not the share of the object
    samples:       points in each direction of a bin of RoIAlign; 0: as many as it has pixels, as in
                   Detectron2
    whole_anchors: corners of anchors are rounded to pixels
    pre_nms:       proposals of each level before suppression, in training and in prediction
    post_nms:      proposals of an image after it
    """

    aligned: bool = True
    box_beta: float = 0.0
    hard_masks: bool = True
    samples: int = 2
    whole_anchors: bool = True
    pre_nms: tuple[int, int] = (2000, 1000)
    post_nms: tuple[int, int] = (1000, 1000)
    proposal_nms: float = 0.7
    anchor_foreground: float = 0.7
    anchor_background: float = 0.3
    anchors_sampled: int = 256
    anchors_foreground_share: float = 0.5
    boxes_sampled: int = 512
    boxes_foreground_share: float = 0.25
    foreground: float = 0.5
    box_weights: tuple[float, float, float, float] = (10.0, 10.0, 5.0, 5.0)


#: What the paper's models are trained with.
PAPER = Recipe()

#: Cascades take more proposals in training.
PAPER_CASCADE = Recipe(post_nms=(2000, 1000))

#: Fewer of everything, for the tiny backbone: a step takes a tenth of a second on a CPU core.
TINY = Recipe(pre_nms=(200, 200), post_nms=(100, 200), boxes_sampled=64)

#: What torchvision's models are trained with, for comparing with them.
TORCHVISION = Recipe(aligned=False, box_beta=1 / 9, hard_masks=False, post_nms=(2000, 1000))

#: What predicts as Detectron2 does, for its checkpoints.
DETECTRON2 = Recipe(samples=0, whole_anchors=False)

#: The stages of a cascade: overlap that makes a box foreground, and weights of its targets.
CASCADE = (
    (0.5, (10.0, 10.0, 5.0, 5.0)),
    (0.6, (20.0, 20.0, 10.0, 10.0)),
    (0.7, (30.0, 30.0, 15.0, 15.0)),
)
