"""`lvdet demo`: a tour in seconds, on simulated data."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.terminal import print_evaluation, print_tables, warn
from lvdet.extras import has_extra

EXAMPLES = """\b
Examples:
  lvdet demo
  lvdet demo larger --images 2000
"""
#: Training images per evaluated image, and the methods fitted on them.
TRAINING, METHODS = 10, ("beta", "platt", "hierarchical")


def run(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write the files.")] = Path(
        "lvdet-demo"
    ),
    images: Annotated[int, typer.Option(metavar="N", help="Number of images.")] = 500,
    classes: Annotated[int, typer.Option(metavar="N", help="Number of classes.")] = 1203,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
) -> None:
    """Try lvdet on simulated data, in seconds.

    Simulates a long-tail data set and a detector, evaluates the detections, shows what a limit
    per image does, calibrates the scores and, with lvdet[report], writes a report.
    """
    from lvdet.calibration.calibrate import calibrate
    from lvdet.evaluation.protocols import evaluate
    from lvdet.files.annotation_files import write_ground_truth
    from lvdet.files.detection_files import write_detections
    from lvdet.files.writing import make_folder
    from lvdet.reporting.report import report
    from lvdet.simulation.simulate import Settings, simulate, simulate_training
    from lvdet.studies.reranking import rerank
    from lvdet.studies.sweep import sweep

    make_folder(folder)
    gt_path, dt_path = folder / "annotations.json", folder / "results.json"
    print(f"simulating a detector on {images:,} images with {classes:,} classes")
    settings = Settings(images, classes, dets_per_image=None, bias=1.0, class_bias=0.7, seed=seed)
    gt, dt = simulate(**asdict(settings))
    write_ground_truth(gt, gt_path)
    write_detections(dt, dt_path)
    print(f"wrote {gt_path} ({len(gt):,} objects) and {dt_path} ({len(dt):,} detections)")
    train_gt_path, train_dt_path = folder / "train.json", folder / "train_results.json"
    # On its training images the detector is overconfident; only detections that count are
    # simulated.
    gt, dt = simulate_training(
        replace(settings, candidates_per_image=1), TRAINING * images, overconfidence=2.0
    )
    write_ground_truth(gt, train_gt_path)
    write_detections(dt, train_dt_path)
    print(f"wrote {train_gt_path} and {train_dt_path} ({TRAINING * images:,} images)\n")
    print(f"$ lvdet evaluate {gt_path} {dt_path}")
    result = evaluate(gt_path, dt_path)
    result.save(folder / "scores.json")
    print_evaluation(result)
    print(f"\n$ lvdet sweep {gt_path} {dt_path} --paper image-limit,subsets")
    swept = sweep(gt_path, dt_path, paper=["image-limit", "subsets"])
    swept.save(folder / "sweep.json")
    print_tables(swept.title(), swept.layouts())
    print(
        f"\n$ lvdet calibrate compare {gt_path} {dt_path} --train {train_gt_path} {train_dt_path} "
        f"--methods {','.join(METHODS)} --no-oracle"
    )
    table = calibrate(
        gt_path, dt_path, train=(train_gt_path, train_dt_path), methods=METHODS, oracle=False
    )
    table.save(folder / "calibration.json")
    print_tables(table.title(), table.layouts())
    reranked_path, page = folder / "reranked.json", folder / "report.html"
    print(f"\n$ lvdet rerank {gt_path} {dt_path} --dets-per-class best -o {reranked_path}")
    gamed = rerank(gt_path, dt_path, dets_per_class="best")
    write_detections(gamed.detections, reranked_path)
    print_tables(gamed.title(), gamed.layouts())
    command = (
        f"lvdet report {gt_path} {dt_path} {reranked_path} "
        + f"--train {train_gt_path} {train_dt_path} " * 2
        + f"-o {page}"
    )
    if has_extra("report"):
        print(f"\n$ {command}")
        made = report(
            gt_path,
            [dt_path, reranked_path],
            train=[(train_gt_path, train_dt_path)] * 2,
        )
        made.save(page)
        for text in made.notes():
            print(text)
        following = f"open {page} in a browser"
    else:
        following = f"for a report of all this, pip install 'lvdet[report]' and run\n$ {command}"
    for text in dict.fromkeys([*result.warnings, *swept.warnings, *table.warnings]):
        warn(text)
    print(f"\nnext: {following}")
