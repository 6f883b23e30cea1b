"""A training step beside torchvision's, with the same weights, batches and settings.

    make bench-training PYTHON=python

needs a GPU, torch and torchvision. It checks that both have the same
losses where nothing is random, then times them in turns, and takes a step with every model.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torchvision
from torch import Tensor, nn
from torchvision.models import detection

from lvdet.training.configuration.config import Config, Model, Schedule
from lvdet.training.data.batch import Batch, Objects
from lvdet.training.loop.optimizer import build_optimizer
from lvdet.training.loop.step import descend, differentiate, precision_on
from lvdet.training.loop.step_graphs import SEEN, StepGraphs
from lvdet.training.model.backbones import FoldedConv2d, freeze_norms
from lvdet.training.model.build import build_detector
from lvdet.training.model.classifier import Frequencies
from lvdet.training.model.detector import Detector
from lvdet.training.model.nms import survivors
from lvdet.training.model.recipe import TORCHVISION

NAMES = {
    "rpn_objectness": "loss_objectness",
    "rpn_box": "loss_rpn_box_reg",
    "class": "loss_classifier",
    "box": "loss_box_reg",
    "mask": "loss_mask",
}
ALL = 1_000_000
MODELS = (
    ("mask_rcnn", "resnet50"),
    ("mask_rcnn", "resnet101"),
    ("mask_rcnn", "resnext101_32x8d"),
    ("cascade_rcnn", "regnet_y_4gf"),
    ("mask_rcnn", "resnet18"),
    ("mask_rcnn", "tiny"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--classes", type=int, default=1203)
    parser.add_argument("--side", type=int, default=320)
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument("--backbone", default="resnet50")
    parser.add_argument("--steps", type=int, default=30, help="steps of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=100)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--no-models", action="store_true")
    parser.add_argument("--no-graphs", action="store_true", help="as run.cuda_graphs = false")
    options = parser.parse_args()
    device = torch.device(options.device)
    gpu = torch.cuda.get_device_name() if device.type == "cuda" else "CPU"
    print(f"{gpu}, torch {torch.__version__}, torchvision {torchvision.__version__}")
    print(
        f"Mask R-CNN, {options.backbone}, {options.classes:,} classes, {options.side} px, "
        f"{options.images} images per step, frozen batch norm, bf16 autocast, SGD with momentum"
    )
    torch.manual_seed(0)
    batches = [made_batch(seed, options, device) for seed in range(8)]
    check_suppression(device)
    theirs, ours = twins(options, device, batches)
    check_losses(theirs, ours, batches[0])
    if device.type == "cuda" and not options.no_graphs:
        check_graphs(ours, batches)
    compare(theirs, ours, batches, options)
    if options.profile:
        show_profile(ours, batches)
    del theirs, ours
    if not options.no_models:
        for kind, backbone in MODELS:
            one_step(kind, backbone, options, device, batches[0])


def made_batch(seed: int, options: Any, device: torch.device) -> tuple[Batch, Any, Any]:
    """Coloured ellipses on noise, a dozen an image; as a batch, and as torchvision takes it."""
    rng = np.random.default_rng(seed)
    images, side, most = options.images, options.side, 16
    pixels = rng.integers(0, 256, (images, side, side, 3)).astype(np.uint8) // 4
    box = np.zeros((images, most, 4), dtype=np.float32)
    label = np.full((images, most), -1, dtype=np.int64)
    masks = np.zeros((images, most, side, side), dtype=np.uint8)
    y, x = np.mgrid[:side, :side] + 0.5
    for image in range(images):
        for row in range(int(rng.integers(8, most + 1))):
            width, height = np.exp(rng.uniform(np.log(side / 16), np.log(side / 2.2), 2)).round()
            left, top = rng.integers(1, side - 1 - np.array([width, height]).astype(int))
            inside = (
                ((x - left - width / 2) / (width / 2)) ** 2
                + ((y - top - height / 2) / (height / 2)) ** 2
            ) <= 1
            pixels[image][inside] = rng.integers(60, 256, 3)
            masks[image, row] = inside
            box[image, row] = left, top, left + width, top + height
            label[image, row] = int(options.classes * rng.random() ** 3)
    frame = np.tile(np.array([0, 0, 1, 1], dtype=np.float32), (images, most, 1))
    on = {
        name: torch.from_numpy(value).to(device)
        for name, value in {
            "pixels": np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)),
            "box": box,
            "label": label,
            "masks": masks,
            "frame": frame,
        }.items()
    }
    size = torch.full((images, 2), side, device=device)
    numbers = torch.arange(images, device=device) + 1000 * seed
    objects = Objects(on["box"], on["label"], on["masks"], on["frame"])
    views = list(on["pixels"].float() / 255)
    targets = [
        {
            "boxes": on["box"][i, : int((label[i] >= 0).sum())],
            "labels": on["label"][i, : int((label[i] >= 0).sum())] + 1,
            "masks": on["masks"][i, : int((label[i] >= 0).sum())],
        }
        for i in range(images)
    ]
    return Batch(on["pixels"], size, numbers, objects), views, targets


def check_suppression(device: torch.device) -> None:
    """All groups at once keep what torchvision keeps of each."""
    for number in (1, 31, 32, 33, 1000, 2000):
        low = torch.rand(6, number, 2, device=device) * 200
        box = torch.cat([low, low + torch.rand(6, number, 2, device=device) * 80], dim=2)
        there = torch.rand(6, number, device=device) < 0.9
        falling = -torch.arange(number, device=device, dtype=torch.float32)
        for threshold in (0.3, 0.5, 0.7):
            kept = survivors(box, there, threshold)
            for group in range(6):
                rows = there[group].nonzero().squeeze(1)
                chosen = torchvision.ops.nms(box[group, rows], falling[rows], threshold)
                if not torch.equal(rows[chosen].sort()[0], kept[group].nonzero().squeeze(1)):
                    sys.exit(f"suppression differs: {number} boxes at {threshold}")
    print("suppression: the same boxes as torchvision's, 18 cases of 6 groups")


def twins(options: Any, device: torch.device, batches: list[Any]) -> tuple[nn.Module, Detector]:
    """torchvision's model and ours with its weights."""
    if options.backbone == "resnet50":
        theirs = detection.maskrcnn_resnet50_fpn(
            weights=None,
            weights_backbone=None,
            num_classes=options.classes + 1,
            trainable_backbone_layers=5,
            min_size=options.side,
            max_size=options.side,
        ).to(device)
    else:
        body = detection.backbone_utils.resnet_fpn_backbone(
            backbone_name=options.backbone,
            weights=None,
            norm_layer=nn.BatchNorm2d,
            trainable_layers=5,
        )
        theirs = detection.MaskRCNN(
            body, options.classes + 1, min_size=options.side, max_size=options.side
        ).to(device)
    # Statistics that batch norm would have, and then frozen: without weights of ImageNet, frozen
    # norms of 1 and 0 would let the features explode.
    for module in theirs.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None
    theirs.train()
    with torch.no_grad():
        for batch, _, _ in batches[:4]:
            theirs.backbone((batch.pixels.float() - 100) / 60)
    freeze_norms(theirs)
    model = Model(backbone=options.backbone, weights="none", norm="frozen")
    counts = np.full(options.classes, 100, dtype=np.int64)
    ours = build_detector(
        Config(model=model), Frequencies(10_000, counts, counts), recipe=TORCHVISION
    ).to(device)
    copy_weights(theirs, ours)
    return theirs, ours.to(memory_format=torch.channels_last)


@torch.no_grad()
def copy_weights(theirs: Any, ours: Any) -> None:
    """The weights of torchvision's model; its background is the first class, ours the last."""
    there = dict(theirs.backbone.body.named_modules())
    for name, module in ours.backbone.body.named_modules():
        if isinstance(module, FoldedConv2d):
            norm = name.replace("conv", "bn") if "conv" in name else name[:-1] + "1"
            frozen = there[norm]
            scale = frozen.weight * (frozen.running_var + frozen.eps).rsqrt()
            module.weight.copy_(there[name].weight)
            module.scale.copy_(scale)
            module.shift.copy_(frozen.bias - frozen.running_mean * scale)
    ours.backbone.fpn.load_state_dict(theirs.backbone.fpn.state_dict())
    ours.proposals.head.load_state_dict(theirs.rpn.head.state_dict())
    heads, stage = theirs.roi_heads, ours.stages[0]
    stage.mlp.load_state_dict(heads.box_head.state_dict())
    stage.classifier.layer.weight.copy_(heads.box_predictor.cls_score.weight.roll(-1, 0))
    stage.classifier.layer.bias.copy_(heads.box_predictor.cls_score.bias.roll(-1, 0))
    stage.mover.weight.copy_(heads.box_predictor.bbox_pred.weight[4:])
    stage.mover.bias.copy_(heads.box_predictor.bbox_pred.bias[4:])
    ours.mask_head.layers.load_state_dict(heads.mask_head.state_dict())
    ours.mask_head.predictor.conv5_mask.load_state_dict(
        heads.mask_predictor.conv5_mask.state_dict()
    )
    last = heads.mask_predictor.mask_fcn_logits
    ours.mask_head.predictor.mask_fcn_logits.weight.copy_(last.weight[1:])
    ours.mask_head.predictor.mask_fcn_logits.bias.copy_(last.bias[1:])


def check_losses(theirs: Any, ours: Any, batch: Any) -> None:
    """On one batch, in float32, with all anchors and boxes as samples: then nothing is random."""
    samplers = theirs.rpn.fg_bg_sampler, theirs.roi_heads.fg_bg_sampler
    before = [sampler.batch_size_per_image for sampler in samplers]
    recipe = ours.recipe
    everything = replace(recipe, anchors_sampled=ALL, boxes_sampled=ALL)
    for sampler in samplers:
        sampler.batch_size_per_image = ALL
    for part in (ours, ours.proposals):
        part.recipe = everything
    few = Batch(
        *(value[:2] for value in (batch[0].pixels, batch[0].size, batch[0].seed)),
        Objects(
            *(getattr(batch[0].objects, name)[:2] for name in ("box", "label", "tile", "frame"))
        ),
    )
    precise = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print("losses of 2 images, float32, every anchor and box a sample:")
    for name, value in ours.train()(few).items():
        expected = theirs.train()(batch[1][:2], batch[2][:2])[NAMES[name]]
        difference = abs(value.item() - expected.item()) / max(abs(expected.item()), 1e-6)
        print(
            f"  {name:<15} {value.item():.6f}   torchvision {expected.item():.6f}   "
            f"relative difference {difference:.1e}"
        )
        if difference > 1e-3:
            sys.exit(f"{name} differs")
    torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = precise
    for sampler, size in zip(samplers, before, strict=True):
        sampler.batch_size_per_image = size
    for part in (ours, ours.proposals):
        part.recipe = recipe


def check_graphs(ours: Detector, batches: list[Any]) -> None:
    """A step as a CUDA graph has the losses and gradients of one that is not, in float32."""
    precise = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    graphs = StepGraphs(ours, "fp32")
    worst = [0.0, 0.0]
    trained = [parameter for parameter in ours.train().parameters() if parameter.requires_grad]
    for batch, _, _ in batches:
        ours.zero_grad(set_to_none=True)
        expected = differentiate(ours, ours, batch, "fp32", 1)
        slopes = [parameter.grad for parameter in trained]
        tries = (graphs.differentiate(batch) for _ in range(SEEN + 1))
        losses = next((found for found in tries if found is not None), None)
        if losses is None:
            sys.exit("a step was not recorded: is the GPU's memory full?")
        for name, value in expected.items():
            worst[0] = max(worst[0], abs(losses[name].item() / value.item() - 1))
        for slope, parameter in zip(slopes, trained, strict=True):
            assert slope is not None
            assert parameter.grad is not None
            worst[1] = max(worst[1], ((slope - parameter.grad).norm() / slope.norm()).item())
    ours.zero_grad(set_to_none=True)
    torch.backends.cudnn.allow_tf32 = precise
    print(
        f"steps as CUDA graphs, float32, {len(batches)} batches: losses differ by up to "
        f"{worst[0]:.1e}, gradients by {worst[1]:.1e}"
    )
    if max(worst) > 1e-3:
        sys.exit("a recorded step differs")


def compare(theirs: nn.Module, ours: Detector, batches: list[Any], options: Any) -> None:
    """Rounds of steps in turns; medians of images a second, and the memory each needs."""
    device = batches[0][0].pixels.device
    cuda = device.type == "cuda"
    torch.set_float32_matmul_precision("high")
    steps = {
        "torchvision": stepper(theirs, lambda m, b: m(b[1], b[2]), fused=False),
        "lvdet": our_stepper(ours, cuda_graphs=cuda and not options.no_graphs),
    }
    rates: dict[str, list[float]] = {name: [] for name in steps}
    held: dict[str, int] = {}
    peak: dict[str, int] = {}
    last: dict[str, float] = {}
    for name, step in steps.items():
        held[name] = -unused() if cuda else 0
        for number in range(options.warm_up):
            loss = step(batches[number % len(batches)])
            if number in (0, options.warm_up // 2, options.warm_up - 1):
                print(f"{name:<12} loss of step {number + 1}: {float(loss):.3f}")
        held[name] += unused() if cuda else 0
    for _ in range(options.rounds):
        for name, step in steps.items():
            if cuda:
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
            begin = time.perf_counter()
            for number in range(options.steps):
                loss = step(batches[number % len(batches)])
            last[name] = float(loss)
            if cuda:
                torch.cuda.synchronize()
                peak[name] = torch.cuda.max_memory_allocated() - before
            took = time.perf_counter() - begin
            rates[name].append(options.steps * options.images / took)
    for name, values in rates.items():
        middle = statistics.median(values)
        memory = (held[name] + peak.get(name, 0)) / 2**30
        print(
            f"{name:<12} {middle:7.1f} images/s ({1000 * options.images / middle:6.1f} ms a step; "
            f"rounds {', '.join(f'{value:.0f}' for value in values)}), "
            f"{memory:.2f} GiB over weights and optimiser, loss {last[name]:.3f}"
        )
    ratio = statistics.median(rates["lvdet"]) / statistics.median(rates["torchvision"])
    print(f"lvdet / torchvision: {ratio:.2f} x")


def stepper(
    model: nn.Module, losses: Callable[[nn.Module, Any], dict[str, Tensor]], *, fused: bool
) -> Callable[[Any], Tensor]:
    """A whole training step."""
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(
        trained, lr=0.0005, momentum=0.9, weight_decay=1e-4, fused=fused or None
    )

    def step(batch: Any) -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        device = batch[0].pixels.device.type
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            loss = sum(losses(model, batch).values(), torch.zeros((), device=device))
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def unused() -> int:
    """Bytes that are kept though no tensor has them now: those of CUDA graphs."""
    torch.cuda.empty_cache()
    return torch.cuda.memory_reserved() - torch.cuda.memory_allocated()


def our_stepper(ours: Detector, *, cuda_graphs: bool) -> Callable[[Any], Tensor]:
    """A whole training step, as in a run."""
    ours.train()
    optimizer = build_optimizer(ours, Schedule(rate=0.0005))
    precision = precision_on(ours.mean.device, "")
    graphs = StepGraphs(ours, precision) if cuda_graphs else None

    def step(batch: Any) -> Tensor:
        losses = graphs.differentiate(batch[0]) if graphs is not None else None
        if losses is None:
            losses = differentiate(ours, ours, batch[0], precision, 1)
        descend(ours, optimizer, 0.0005, 0.0)
        return torch.stack(list(losses.values())).sum()

    return step


def show_profile(ours: Detector, batches: list[Any]) -> None:
    from torch.profiler import ProfilerActivity, profile

    step = our_stepper(ours, cuda_graphs=False)
    for number in range(3):
        step(batches[number])
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        for number in range(4):
            step(batches[number])
        torch.cuda.synchronize()
    print(
        found.key_averages().table(
            sort_by="self_cuda_time_total", row_limit=45, max_name_column_width=70
        )
    )


def one_step(kind: str, backbone: str, options: Any, device: torch.device, batch: Any) -> None:
    """A step of a model, from nothing, with batch norm."""
    model = Model(kind=kind, backbone=backbone, weights="none", norm="batch")
    counts = np.full(options.classes, 100, dtype=np.int64)
    detector = build_detector(Config(model=model), Frequencies(10_000, counts, counts)).to(device)
    detector = detector.to(memory_format=torch.channels_last)
    step = our_stepper(detector, cuda_graphs=False)
    losses = [float(step(batch)) for _ in range(3)]
    begin = time.perf_counter()
    for _ in range(5):
        loss = step(batch)
    losses.append(float(loss))
    took = (time.perf_counter() - begin) / 5
    number = sum(p.numel() for p in detector.parameters()) / 1e6
    print(
        f"{kind} {backbone}: {number:.1f} M parameters, loss {losses[0]:.2f} to {losses[-1]:.2f}, "
        f"{options.images / took:.0f} images/s"
    )
    if not np.isfinite(losses).all():
        sys.exit(f"{kind} {backbone}: a loss is not finite")


if __name__ == "__main__":
    main()
