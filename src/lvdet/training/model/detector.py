"""Mask R-CNN, with one stage or a cascade of them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torchvision.models.detection.backbone_utils import BackboneWithFPN

from lvdet.training.data.batch import Batch, Objects
from lvdet.training.loop.processes import mean_over_processes
from lvdet.training.model.box_stage import BoxStage
from lvdet.training.model.boxes import clip, is_box
from lvdet.training.model.candidates import Candidates
from lvdet.training.model.classifier import Classifier
from lvdet.training.model.draws import BOXES, uniform
from lvdet.training.model.mask_head import MaskHead
from lvdet.training.model.proposals import ProposalNetwork, Proposals
from lvdet.training.model.recipe import Recipe
from lvdet.training.model.sampling import Matched, match, sample, taken
from lvdet.training.weights.body_weights import DEVIATION, MEAN


class Features(NamedTuple):
    """The five levels of a batch's pyramid."""

    pyramid: list[Tensor]

    @property
    def pooled(self) -> list[Tensor]:
        """The levels that boxes are pooled from."""
        return self.pyramid[:4]


class Counts(NamedTuple):
    """Scalars that losses are divided by: anchors, boxes, and boxes with masks."""

    anchors: Tensor
    boxes: Tensor
    masks: Tensor


class _Boxes(NamedTuple):
    """B x S boxes that are trained on.

    box:    [B, S, 4]
    label:  [B, S] class rows, K for background, -1 if there is no box
    object: [B, S] places of their objects
    """

    box: Tensor
    label: Tensor
    object: Tensor


class Samples(NamedTuple):
    """The samples for the losses of boxes and masks, and the losses of the proposals.

    anchors:    what the proposals are made of
    boxes:      B x S of them and of the objects
    foreground: scalar, how many of these boxes are of an object
    """

    features: Features
    anchors: list[Tensor]
    boxes: _Boxes
    foreground: Tensor
    losses: dict[str, Tensor]


class Detector(nn.Module):
    """Backbone, proposals, one or more stages of boxes, and masks.

    stages: with the overlap from which a box is foreground in each
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        backbone: BackboneWithFPN,
        proposals: ProposalNetwork,
        stages: list[BoxStage],
        foreground: list[float],
        mask_head: MaskHead | None,
        classes: int,
        recipe: Recipe,
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.proposals = proposals
        self.stages = nn.ModuleList(stages)
        self.foreground = foreground
        self.mask_head = mask_head
        self.classes = classes
        self.recipe = recipe
        self.register_buffer("mean", torch.tensor(MEAN)[:, None, None], persistent=False)
        self.register_buffer("deviation", torch.tensor(DEVIATION)[:, None, None], persistent=False)

    @property
    def classifiers(self) -> list[Classifier]:
        """The classifier of each stage."""
        return [stage.classifier for stage in self.stages]  # type: ignore[misc]

    def forward(self, batch: Batch, counts: Counts | None = None) -> dict[str, Tensor]:
        """The losses of a batch by name, divided by counts: without any its own, as means over
        processes."""
        return self.losses(batch, self.samples(batch, counts), counts)

    def samples(self, batch: Batch, counts: Counts | None = None) -> Samples:
        """Everything up to the boxes to train on; never waits for the device."""
        objects = batch.objects
        assert objects is not None
        features = self.features(batch)
        proposals: Proposals
        losses: dict[str, Tensor]
        proposals, losses = self.proposals(features.pyramid, batch, counts and counts.anchors)
        with torch.no_grad():
            boxes = self._sampled(proposals, objects, batch.seed)
            foreground = self._is_foreground(boxes).sum()
        anchors = self.proposals.anchors(features.pyramid)
        return Samples(features, anchors, boxes, foreground, losses)

    def losses(
        self, batch: Batch, samples: Samples, counts: Counts | None = None, room: int = 0
    ) -> dict[str, Tensor]:
        """The losses of a batch by name.

        room: rows for the foreground, at least as many as it has: then nothing waits for the
              device; 0: exactly as many
        """
        objects, features, boxes = batch.objects, samples.features, samples.boxes
        assert objects is not None
        losses = dict(samples.losses)
        with torch.no_grad():
            count = (
                mean_over_processes((boxes.label >= 0).sum().float()).clamp(min=1)
                if counts is None
                else counts.boxes
            )
        rows, weight = self._foreground(boxes, room)
        if self.mask_head is not None:
            losses["mask"] = self._mask_loss(
                self.mask_head,
                features.pooled,
                boxes,
                objects,
                rows,
                weight,
                counts and counts.masks,
            )
        for number, stage in enumerate(self.stages):
            assert isinstance(stage, BoxStage)
            name = f"_{number + 1}" if len(self.stages) > 1 else ""
            box, label = boxes.box.flatten(0, 1), boxes.label.flatten()
            hidden = stage.features(features.pooled, _images(boxes.box), box)
            logits = stage.classifier(hidden)
            losses[f"class{name}"] = stage.classifier.loss(
                logits, label, count, batch.seed + number
            )
            target = taken(objects.box, boxes.object).flatten(0, 1)
            moving = stage.box_loss(
                hidden[rows],
                box[rows],
                target[rows],
                label[rows].clamp(0, self.classes - 1),
                weight,
            )
            losses[f"box{name}"] = moving / count
            if number + 1 < len(self.stages):
                with torch.no_grad():
                    moved = stage.moved(hidden, box).view_as(boxes.box)
                    boxes = self._matched(clip(moved, batch.size), boxes, objects, number + 1)
                    # Any box may be foreground now.
                    rows, weight = self._foreground(boxes, room and boxes.label.numel())
        return losses

    @torch.no_grad()
    def counted(self, batch: Batch) -> Counts:
        """The counts that a batch's losses would be divided by, computed without the heads."""
        objects = batch.objects
        assert objects is not None
        pyramid = self.features(batch).pyramid
        anchors = self.proposals.anchors_sampled(pyramid, objects, batch.seed)
        boxes = self._sampled(self.proposals(pyramid, batch)[0], objects, batch.seed)
        foreground = (boxes.label >= 0) & (boxes.label < self.classes)
        shown = taken(objects.frame, boxes.object)[:, :, 2] > 0
        return Counts(anchors, (boxes.label >= 0).sum(), (foreground & shown).sum())

    def features(self, batch: Batch) -> Features:
        """The pyramid of normalised images, which are 0 outside the image."""
        rows = torch.arange(batch.pixels.shape[2], device=batch.pixels.device)
        columns = torch.arange(batch.pixels.shape[3], device=batch.pixels.device)
        height, width = batch.size[:, :1, None], batch.size[:, 1:, None]
        inside = (rows[None, :, None] < height) & (columns[None, None, :] < width)
        images = (batch.pixels - self.mean) / self.deviation * inside[:, None]
        return Features(list(self.backbone(images).values()))

    def candidates(self, features: Features, batch: Batch) -> Candidates:
        """Boxes and scores, before suppression; in evaluation mode."""
        proposals, _ = self.proposals(features.pyramid, batch)
        box, there = proposals
        images, classes = len(box), self.classes
        scores: list[Tensor] = []
        code: Tensor | None = None
        weights = self.recipe.box_weights
        for stage in self.stages:
            assert isinstance(stage, BoxStage)
            weights, flat = stage.weights, box.flatten(0, 1)
            hidden = stage.features(features.pooled, _images(box), flat)
            scores.append(stage.classifier.scores(stage.classifier(hidden)))
            if stage.classes == 1:
                box = clip(stage.moved(hidden, flat).view_as(box), batch.size)
            else:
                code = stage.mover(hidden).view(images, -1, classes, 4)
        score = torch.stack(scores).mean(dim=0).float().view(images, -1, classes)
        score = score.masked_fill(~there[:, :, None], -torch.inf)
        return Candidates(score, box, batch.size, code, weights)

    def masks(
        self, features: Features, batch: Batch, image: Tensor, box: Tensor, label: Tensor
    ) -> Tensor:
        """[N, 28, 28] probabilities in [N, 4] boxes of classes [N] in images [N] of the batch."""
        assert self.mask_head is not None
        return self.mask_head.logits(features.pooled, image, box, label).sigmoid()

    def _sampled(self, proposals: Proposals, objects: Objects, seed: Tensor) -> _Boxes:
        """Proposals and objects, and the samples among them to train on."""
        box = torch.cat([proposals.box, objects.box], dim=1)
        there = torch.cat([proposals.there, objects.label >= 0], dim=1)
        matched = self._match(box, objects, 0)
        chosen = sample(
            torch.where(there, matched.kind, -1),
            uniform(seed, box.shape[1], BOXES),
            self.recipe.boxes_sampled,
            self.recipe.boxes_foreground_share,
        )
        place = taken(matched.object, chosen.place)
        label = torch.where(chosen.foreground, taken(objects.label, place), self.classes)
        label = torch.where(chosen.taken, label, -1)
        return _Boxes(taken(box, chosen.place), label, place)

    def _matched(self, box: Tensor, before: _Boxes, objects: Objects, stage: int) -> _Boxes:
        """The boxes of a stage as those of the next, where all of them are trained on."""
        matched = self._match(box, objects, stage)
        label = torch.where(matched.kind == 1, taken(objects.label, matched.object), self.classes)
        label = torch.where((before.label >= 0) & is_box(box), label, -1)
        return _Boxes(box, label, matched.object)

    def _match(self, box: Tensor, objects: Objects, stage: int) -> Matched:
        overlap = self.foreground[stage]
        return match(box, objects.box, objects.label >= 0, foreground=overlap, background=overlap)

    def _is_foreground(self, boxes: _Boxes) -> Tensor:
        """[B * S] bool."""
        label = boxes.label.flatten()
        return (label >= 0) & (label < self.classes)

    def _foreground(self, boxes: _Boxes, room: int) -> tuple[Tensor, Tensor]:
        """Rows of the foreground among B * S, and their weights, 1.

        With `room` there are exactly `room` rows, and padding rows have the weight 0. Otherwise the
        host waits for their number; if it is 0, there is one row of weight 0.
        """
        is_foreground = self._is_foreground(boxes)
        if room:
            rows = is_foreground.sort(descending=True, stable=True)[1][:room]
            return rows, is_foreground[rows].float()
        rows = is_foreground.nonzero().squeeze(1)
        if len(rows):
            return rows, torch.ones_like(rows, dtype=torch.float32)
        return rows.new_zeros(1), torch.zeros(1, device=rows.device)

    def _mask_loss(
        self,
        head: MaskHead,
        levels: list[Tensor],
        boxes: _Boxes,
        objects: Objects,
        rows: Tensor,
        weight: Tensor,
        count: Tensor | None,
    ) -> Tensor:
        image = _images(boxes.box)[rows]
        box = boxes.box.flatten(0, 1)[rows]
        label = boxes.label.flatten()[rows].clamp(0, self.classes - 1)
        number = image * objects.label.shape[1] + boxes.object.flatten()[rows]
        weight = weight * (objects.frame.flatten(0, 1)[number, 2] > 0)
        loss = head.loss(head.logits(levels, image, box, label), box, objects, number)
        if count is None:
            count = mean_over_processes(weight.sum()).clamp(min=1)
        return (loss * weight).sum() / count


def _images(box: Tensor) -> Tensor:
    """[B * S] the image of each of [B, S, 4] boxes."""
    image = torch.arange(len(box), device=box.device)
    return image[:, None].expand(-1, box.shape[1]).flatten()
