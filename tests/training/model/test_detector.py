"""What holds for every detector: one stage or three, with and without masks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from lvdet.errors import InputError
from lvdet.training.configuration.config import Config, Model
from lvdet.training.data.batch import Batch, Objects
from lvdet.training.model.box_stage import BoxStage
from lvdet.training.model.build import build_detector
from lvdet.training.model.classifier import Frequencies
from lvdet.training.model.detector import Detector, _Boxes
from training.model.random_batch import random_batch

TINY = Model(backbone="tiny", weights="none", norm="group", anchors=(16, 32, 64, 128, 256))
CLASSES = 7


def made(**changes: object) -> Detector:
    torch.manual_seed(0)
    counts = np.full(CLASSES, 5, dtype=np.int64)
    model = replace(TINY, **changes)  # type: ignore[arg-type]
    return build_detector(Config(model=model), Frequencies(10, counts, counts))


def without_objects(batch: Batch) -> Batch:
    objects = batch.objects
    assert objects is not None
    nothing = torch.full_like(objects.label, -1)
    return replace(batch, objects=Objects(objects.box, nothing, objects.tile, objects.frame))


@pytest.mark.parametrize("kind", ["mask_rcnn", "cascade_rcnn"])
@pytest.mark.parametrize("masks", [True, False])
def test_losses_have_names_and_every_weight_a_gradient(kind: str, masks: bool) -> None:
    detector = made(kind=kind, masks=masks).train()
    for batch in (random_batch(1)[0], without_objects(random_batch(1)[0])):
        losses = detector(batch)
        stages = [""] if kind == "mask_rcnn" else ["_1", "_2", "_3"]
        assert set(losses) == {
            "rpn_objectness",
            "rpn_box",
            *(f"{name}{stage}" for name in ("class", "box") for stage in stages),
            *(["mask"] if masks else []),
        }
        assert all(torch.isfinite(value) for value in losses.values())
        detector.zero_grad()
        sum(losses.values()).backward()  # type: ignore[union-attr]
        # Also without foreground: several processes wait for the gradients of all.
        assert [name for name, p in detector.named_parameters() if p.grad is None] == []
    empty = {name for name, value in losses.items() if value == 0}
    assert empty == {"rpn_box", *(n for n in losses if n.startswith(("box", "mask")))}


@pytest.mark.parametrize("kind", ["mask_rcnn", "cascade_rcnn"])
@pytest.mark.parametrize("objects", [True, False])
def test_room_for_the_foreground_changes_nothing(kind: str, objects: bool) -> None:
    detector = made(kind=kind).train()
    batch = random_batch(1)[0]
    batch = batch if objects else without_objects(batch)

    def found(room: int) -> tuple[dict[str, torch.Tensor], list[torch.Tensor]]:
        samples = detector.samples(batch)
        assert samples.foreground <= 48
        losses = detector.losses(batch, samples, room=room)
        parameters = list(detector.parameters())
        return losses, list(torch.autograd.grad(torch.stack([*losses.values()]).sum(), parameters))

    least = max(1, int(detector.samples(batch).foreground))
    losses, gradients = found(0)
    for room in (least, least + 5, 3 * 64):
        others, slopes = found(room)
        for name, loss in losses.items():
            torch.testing.assert_close(others[name], loss, rtol=1e-6, atol=1e-6, msg=name)
        for slope, gradient in zip(slopes, gradients, strict=True):
            assert (slope - gradient).norm() <= 1e-5 * gradient.norm() + 1e-9


def test_the_order_of_boxes_does_not_matter() -> None:
    detector = made().train()
    batch = random_batch(1)[0]
    samples = detector.samples(batch)
    order = torch.randperm(samples.boxes.label.shape[1], generator=torch.Generator().manual_seed(0))
    turned = samples._replace(boxes=_Boxes(*(values[:, order] for values in samples.boxes)))
    for room in (0, int(samples.foreground), 100):
        losses, others = (detector.losses(batch, some, room=room) for some in (samples, turned))
        for name, loss in losses.items():
            torch.testing.assert_close(others[name], loss, rtol=1e-6, atol=1e-6, msg=name)


def test_a_loss_does_not_depend_on_how_images_share_batches() -> None:
    detector = made().train()
    batch = random_batch(2, images=4)[0]
    objects = batch.objects
    assert objects is not None

    def part(rows: slice) -> Batch:
        some = Objects(*(getattr(objects, n)[rows] for n in ("box", "label", "tile", "frame")))
        return Batch(batch.pixels[rows], batch.size[rows], batch.seed[rows], some)

    whole, halves = detector(batch), [detector(part(slice(0, 2))), detector(part(slice(2, 4)))]
    for name in ("rpn_objectness", "rpn_box"):  # divided by as many samples in every image
        half = (halves[0][name] + halves[1][name]) / 2
        torch.testing.assert_close(whole[name], half, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["mask_rcnn", "cascade_rcnn"])
def test_candidates(kind: str) -> None:
    detector = made(kind=kind).eval()
    batch = replace(random_batch(3)[0], objects=None)
    with torch.inference_mode():
        features = detector.features(batch)
        found = detector.candidates(features, batch)
    assert found.score.shape[::2] == (3, CLASSES)
    assert 0 < found.score.shape[1] <= 1000
    every = found.boxes(torch.arange(found.score.numel())).view(*found.score.shape, 4)
    some = torch.tensor([5, 3 * CLASSES, found.score.numel() - 1])
    assert torch.equal(found.boxes(some), every.flatten(0, 2)[some])
    for image, (height, width) in enumerate(batch.size.tolist()):
        alone = found.of(torch.tensor([image]))
        assert torch.equal(alone.score[0], found.score[image])
        assert torch.equal(alone.boxes(some[:2]), every[image].flatten(0, 1)[some[:2]])
        there = found.score[image, :, 0] > -torch.inf
        box, score = every[image, there], found.score[image, there]
        assert (kind == "mask_rcnn") == bool((box != box[:, :1]).any())
        assert box.min() >= 0
        assert box[..., 0::2].max() <= width
        assert box[..., 1::2].max() <= height
        assert score.min() >= 0
        assert score.sum(dim=1).max() <= 1 + 1e-5


def test_masks_are_those_of_the_class() -> None:
    """What the last layer gives for all classes, and the row of the box's class."""
    detector = made().eval()
    assert detector.mask_head is not None
    torch.nn.init.normal_(detector.mask_head.predictor.mask_fcn_logits.bias)
    batch = replace(random_batch(3)[0], objects=None)
    box = torch.tensor([[10.0, 10, 60, 90], [0, 0, 128, 128], [5, 5, 9, 9]])
    image, label = torch.tensor([0, 2, 1]), torch.tensor([3, 0, 6])
    with torch.inference_mode():
        features = detector.features(batch)
        got = detector.masks(features, batch, image, box, label)
        head = detector.mask_head
        pooled = []
        head.layers.register_forward_pre_hook(lambda _, inputs: pooled.append(inputs[0]))
        detector.masks(features, batch, image, box, label)
        every = head.predictor(head.layers(pooled[0])).sigmoid()
    torch.testing.assert_close(got, every[torch.arange(3), label], rtol=1e-4, atol=1e-5)


def test_weights_that_are_not_numbers_give_losses_that_are_not() -> None:
    detector = made().train()
    with torch.no_grad():
        detector.proposals.head.bbox_pred.weight.fill_(torch.nan)
    losses = detector(random_batch(1)[0])
    assert torch.isnan(losses["rpn_box"])
    assert torch.isfinite(losses["class"])


@pytest.mark.parametrize("name", ["kind", "backbone", "norm"])
def test_an_unknown_name(name: str) -> None:
    with pytest.raises(InputError, match=f"model.{name} is 'yolo', expected one of "):
        made(**{name: "yolo"})


def test_an_object_without_a_mask_trains_none() -> None:
    detector = made().train()
    batch = random_batch(1)[0]
    objects = batch.objects
    assert objects is not None
    assert detector(batch)["mask"] > 0
    unknown = replace(objects, frame=torch.zeros_like(objects.frame))
    assert detector(replace(batch, objects=unknown))["mask"] == 0


def test_what_is_no_sample_is_none_in_the_next_stage() -> None:
    detector = made(kind="cascade_rcnn")
    objects = random_batch(1)[0].objects
    assert objects is not None
    box = objects.box.clone()
    box[objects.label < 0] = torch.tensor([3.0, 3, 40, 40])
    before = _Boxes(
        box, torch.where(objects.label >= 0, CLASSES, -1), torch.zeros_like(objects.label)
    )
    after = detector._matched(box, before, objects, 1)
    assert torch.equal(after.label, objects.label)  # an object's own box is of its class
    box[:, 0, 2:] = box[:, 0, :2]
    assert (detector._matched(box, before, objects, 1).label[:, 0] == -1).all()


def test_the_stages_of_a_cascade_share_the_gradient_of_the_features() -> None:
    box, image = torch.tensor([[5.0, 5, 50, 60]]), torch.tensor([0])
    gradients = []
    for kind in ("mask_rcnn", "cascade_rcnn"):
        stage = made(kind=kind).stages[0]
        assert isinstance(stage, BoxStage)
        torch.manual_seed(1)
        for layer in (stage.mlp.fc6, stage.mlp.fc7):
            torch.nn.init.normal_(layer.weight, std=0.05)
        levels = [torch.ones(1, 32, 128 // s, 128 // s, requires_grad=True) for s in (4, 8, 16, 32)]
        stage.features(levels, image, box).sum().backward()
        gradients.append(levels[0].grad)
    assert gradients[0].abs().max() > 0
    torch.testing.assert_close(gradients[1], gradients[0] / 3, rtol=1e-4, atol=1e-6)
