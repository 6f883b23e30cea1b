"""`lvdet demo`: the whole way in seconds, on made-up data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.json_file import write_json
from lvdet.cli.terminal import print_evaluation, print_tables, warn

EXAMPLES = """\b
Examples:
  lvdet demo
  lvdet demo somewhere --images 2000
"""


def run(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write the files.")] = Path(
        "lvdet-demo"
    ),
    images: Annotated[int, typer.Option(help="How many images.")] = 500,
    classes: Annotated[int, typer.Option(help="How many classes.")] = 1203,
    seed: Annotated[int, typer.Option(help="Another seed, another set.")] = 0,
) -> None:
    """Make a long-tail set and a simulated detector's results, evaluate them, and show what the
    limit an image does."""
    from lvdet.metrics.protocols import evaluate
    from lvdet.metrics.sweep import sweep
    from lvdet.read.annotations import write_ground_truth
    from lvdet.read.detections import write_detections
    from lvdet.synth.simulate import simulate

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        from lvdet.errors import OutputError

        raise OutputError(f"{folder}: cannot be made: {error.strerror}") from None
    gt_path, dt_path = folder / "annotations.json", folder / "results.json"
    print(f"simulating a detector on {images:,} images of {classes:,} classes")
    gt, dt = simulate(images=images, classes=classes, dets_per_image=None, bias=1.0, seed=seed)
    write_ground_truth(gt, gt_path)
    write_detections(dt, dt_path)
    print(f"wrote {gt_path} ({len(gt):,} objects) and {dt_path} ({len(dt):,} detections)\n")
    print(f"$ lvdet evaluate {gt_path} {dt_path}")
    result = evaluate(gt_path, dt_path)
    write_json(result.to_dict(), folder / "scores.json")
    print_evaluation(result)
    print(f"\n$ lvdet sweep {gt_path} {dt_path} --paper image-limit,subsets")
    swept = sweep(gt_path, dt_path, paper=["image-limit", "subsets"])
    write_json(swept.to_dict(), folder / "sweep.json")
    print_tables(swept.title(), swept.layouts())
    for text in dict.fromkeys([*result.warnings, *swept.warnings]):
        warn(text)
    print(f"\nnext: lvdet audit {gt_path} {dt_path}")
