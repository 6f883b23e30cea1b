"""Images and masks per second of `lvdet predict`, on a drawn set, with a briefly trained detector.

    make bench-inference PYTHON=python

needs torch and torchvision, and a GPU for numbers that mean anything: `--device cpu --tiny` tries
whether it works. Scores of a detector that was never trained are all alike, which no budget can
choose from, so one is trained first, for some hundred steps. What the first batches take, Triton's
compilation above all, is printed apart.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lvdet.files.progress import Update
from lvdet.images.image_set import Settings as SetSettings
from lvdet.images.image_set import make_image_set
from lvdet.inference.image_list import annotated_images
from lvdet.inference.paste import paste
from lvdet.inference.predict import predict
from lvdet.inference.settings import Settings
from lvdet.threads import thread_count
from lvdet.training.configuration.config_file import read_config
from lvdet.training.data.loader_workers import cores
from lvdet.training.records.checkpoint import LoadedModel, load_model
from lvdet.training.train import train


class Clock:
    """When each pass began, had its first images and its last, and ended."""

    def __init__(self) -> None:
        self.times: dict[str, list[tuple[float, int]]] = {}

    def __call__(
        self, title: str, /, *, unit: str = "bytes"
    ) -> AbstractContextManager[Update | None]:
        return self._track(title)

    @contextmanager
    def _track(self, title: str) -> Iterator[Update]:
        times = self.times[title] = [(time.perf_counter(), 0)]
        yield lambda done, _: times.append((time.perf_counter(), done))
        times.append((time.perf_counter(), times[-1][1]))

    def report(self, title: str, rows: int = 0) -> None:
        """Images per second over the whole pass, to the last image, and over the second half."""
        *images, end = self.times[title]
        begin, last = images[0], images[-1]
        middle = images[len(images) // 2]
        text = (
            f"  {title}: {end[0] - begin[0]:.1f} s, "
            f"{last[1] / (end[0] - begin[0]):,.1f} images/s; without writing the file at the end "
            f"{last[1] / (last[0] - begin[0]):,.1f}, in the second half "
            f"{(last[1] - middle[1]) / max(last[0] - middle[0], 1e-9):,.1f}"
        )
        if rows:
            text += (
                f"; {rows / (end[0] - begin[0]):,.0f} masks/s, without writing "
                f"{rows / (last[0] - begin[0]):,.0f}"
            )
        print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--images", type=int, default=4000, help="of which boxes are predicted")
    parser.add_argument("--masked", type=int, default=1000, help="images with masks")
    parser.add_argument("--side", type=int, default=320)
    parser.add_argument("--classes", type=int, default=1203)
    parser.add_argument("--backbone", default="resnet50")
    parser.add_argument("--steps", type=int, default=500, help="of training")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--workers", type=int, default=-1)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--dets-per-class", type=int, default=10_000)
    parser.add_argument("--masks-per-class", type=int, default=1_000, help="in the run with masks")
    parser.add_argument("--tiny", action="store_true", help="a trial: few images, a small network")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--folder", type=Path, help="keeps the set and the detector for next time")
    options = parser.parse_args()
    if options.tiny:
        options.images, options.masked, options.steps, options.batch = 24, 8, 10, 4
        options.side, options.classes, options.backbone = 96, 20, "tiny"
        options.dets_per_class = options.masks_per_class = 100
    gpu = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    print(f"{gpu}, {cores()} cores, torch {torch.__version__}")
    with nullcontext(options.folder) if options.folder else tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, images = prepared(folder, options)
        measure(model, images, folder, options)
        if options.profile:
            show_profile(model, images, folder, options)


def prepared(folder: Path, options: Any) -> tuple[LoadedModel, list[tuple[int, Path]]]:
    """A drawn set, and a detector trained on it."""
    begun = time.perf_counter()
    drawn, run = folder / "drawn", folder / "run"
    if not (drawn / "config.toml").exists():
        train_images = 200 if options.tiny else 3500
        chosen = SetSettings(train_images, options.images, options.classes, options.side)
        make_image_set(drawn, chosen, workers=thread_count())
        print(f"drew the images in {time.perf_counter() - begun:.1f} s", flush=True)
    changes = [
        f"model.backbone={options.backbone}",
        "data.val=",
        f"schedule.steps={options.steps}",
        f"schedule.milestones=[{options.steps * 4 // 5}]",
        f"schedule.warmup_steps={options.steps // 5}",
        "schedule.clip=10.0",
        f"run.workers={options.workers if options.device == 'cuda' else 0}",
    ]
    changes += ["schedule.batch=2"] if options.tiny else []
    begun = time.perf_counter()
    train(read_config(drawn / "config.toml", changes), run, device=options.device, resume=True)
    print(f"trained {options.steps} steps in {time.perf_counter() - begun:.1f} s", flush=True)
    model = load_model(run, torch.device(options.device))
    images = annotated_images(drawn / "annotations" / "val.json", drawn / "val").images
    return model, list(images)


def measure(model: LoadedModel, images: list[tuple[int, Path]], folder: Path, options: Any) -> None:
    base = Settings(
        batch=options.batch,
        workers=options.workers,
        precision=options.precision,
        overwrite=True,
        masks=False,
        dets_per_class=options.dets_per_class,
    )
    begun = time.perf_counter()
    some = images[: 4 * options.batch]
    predict(model, some, folder / "warm.jsonl", replace(base, masks=True, dets_per_class=100))
    print(f"warm-up: {time.perf_counter() - begun:.1f} s for {len(some)} images", flush=True)
    few = images[: options.masked]
    for name, settings, some in (
        (f"300/image and {base.dets_per_class:,}/class", base, images),
        (f"{base.dets_per_class:,}/class", replace(base, dets_per_image=0), images),
        ("300/image", replace(base, dets_per_class=0), few),
    ):
        clock, out = Clock(), folder / "boxes.jsonl"
        done = predict(model, some, out, settings, clock)
        print(
            f"boxes, {name}, floor {settings.score:g}: "
            f"{done.files[0].detections:,} detections on {len(some):,} images, "
            f"{done.files[0].full_classes:,} classes full"
        )
        clock.report("boxes")
        memory(options)
    clock, out = Clock(), folder / "masks.jsonl"
    settings = replace(base, masks=True, dets_per_class=options.masks_per_class)
    done = predict(model, few, out, settings, clock)
    rows = done.files[0].detections
    print(
        f"masks, 300/image and {options.masks_per_class:,}/class: {rows:,} detections on "
        f"{done.images:,} images"
    )
    clock.report("boxes (1 of 2)")
    clock.report("masks (2 of 2)", rows)
    memory(options)
    for side in (30, 100):
        pasting(side, 2000 if options.tiny else 100_000)


def memory(options: Any) -> None:
    if options.device == "cuda":
        print(f"  GPU memory: {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB at most")
        torch.cuda.reset_peak_memory_stats()


def pasting(side: int, number: int) -> None:
    """Pasting and encoding alone, of round objects."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:28, :28] - 13.5
    disc = 1 / (1 + np.exp(np.hypot(x, y) - rng.uniform(5, 14, (number, 1, 1))))
    corner = rng.uniform(0, 320 - side, (number, 2))
    box = np.concatenate([corner, corner + side * rng.uniform(0.5, 1, (number, 2))], axis=1)
    size = np.full((number, 2), 320)
    chance = torch.from_numpy(disc.astype(np.float32))
    begun = time.perf_counter()
    masks = paste(chance, box, size)
    seconds = time.perf_counter() - begun
    if len(masks) != number:
        sys.exit("masks are missing")
    print(
        f"pasting and encoding alone, boxes up to {side} x {side}, {thread_count()} threads: "
        f"{number / seconds:,.0f} masks/s"
    )


def show_profile(
    model: LoadedModel, images: list[tuple[int, Path]], folder: Path, options: Any
) -> None:
    """Of batches of which most classes are full, as in most of a long run."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU]
    if options.device == "cuda":
        activities.append(ProfilerActivity.CUDA)
    settings = Settings(
        batch=options.batch,
        workers=options.workers,
        precision=options.precision,
        overwrite=True,
        dets_per_class=100,
    )
    some = images[: 40 * options.batch]
    order = "self_cuda_time_total" if options.device == "cuda" else "self_cpu_time_total"
    with profile(activities=activities) as found:
        predict(model, some, folder / "profiled.jsonl", settings)
    print(f"profile of {len(some)} images, 300/image and 100/class, with masks:")
    for by in (order, "self_cpu_time_total"):
        table = found.key_averages().table(sort_by=by, row_limit=30, max_name_column_width=70)
        print(table)


if __name__ == "__main__":
    main()
