"""`lvdet compare`: whether one detector is better than another, and under which protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from lvdet.cli.cluster_option import Cluster, SkipBadShards, placed
from lvdet.cli.floors import FAILED
from lvdet.cli.options import Annotations, DropDuplicates, ExactLvis, Iou, RowOutputs, Threads
from lvdet.cli.terminal import fail, finish, progress_bar, require_outputs
from lvdet.errors import InputError

EXAMPLES = """\b
Examples:
  lvdet compare lvis_v1_val.json baseline.json ours.json
  lvdet compare gt.json baseline.json ours.json theirs.parquet --resamples 5000
  lvdet compare gt.json base-0.json base-1.json ours-0.json ours-1.json --runs 2
  lvdet compare gt.json baseline.json ours.json --fail-on-regression
  lvdet compare gt.json baseline.json ours.json -o compared.json -o compared.tex
"""
ENDINGS = (".json", ".csv", ".md", ".tex")


def run(
    ground_truth: Annotations,
    detections: Annotated[
        list[str],
        typer.Argument(
            metavar="DT", help="Detections, as for evaluate: the baseline first, then the others."
        ),
    ],
    runs: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Number of results files per detector, one per training run. List those of each "
            "detector together: A A B B.",
        ),
    ] = 1,
    iou: Iou = None,
    resamples: Annotated[
        int, typer.Option(metavar="N", help="Number of bootstrap samples.")
    ] = 1_000,
    confidence: Annotated[
        float, typer.Option(metavar="LEVEL", help="Confidence level of the intervals.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    dets_per_image: Annotated[
        int | None, typer.Option(metavar="N", help="Limit per image of AP-Old, as for evaluate.")
    ] = None,
    dets_per_class: Annotated[
        int | None,
        typer.Option(metavar="N", help="Limit per class of AP-Fixed and AP-Pool. Default: 10,000."),
    ] = None,
    classes_shown: Annotated[
        int,
        typer.Option(
            metavar="N", help="Number of classes to list, those that differ most clearly first."
        ),
    ] = 10,
    fail_on_regression: Annotated[
        bool,
        typer.Option(
            "--fail-on-regression",
            help="Exit with code 3 if a detector is significantly worse than the baseline in AP, "
            "under any protocol.",
        ),
    ] = False,
    output: RowOutputs = None,
    exact_lvis: ExactLvis = False,
    drop_duplicates: DropDuplicates = False,
    cluster: Cluster = None,
    skip_bad_shards: SkipBadShards = False,
    threads: Threads = None,
) -> int:
    """Compare detectors, with confidence intervals.

    Reports differences from the baseline under AP-Old, AP-Fixed and AP-Pool, with confidence
    intervals from a paired bootstrap over images.
    """
    require_outputs(output, ENDINGS)
    if classes_shown < 0:
        raise InputError(f"--classes-shown is {classes_shown}, expected 0 or more")

    from lvdet.comparison.compare import compare

    result = placed(compare, cluster, skip_bad_shards)(
        ground_truth,
        detections,
        runs=runs,
        iou=iou,
        dets_per_image=dets_per_image,
        dets_per_class=dets_per_class,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
        classes_shown=classes_shown,
        exact_lvis=exact_lvis,
        drop_duplicates=drop_duplicates,
        progress=progress_bar,
    )
    finish(result, output)
    regressions = result.regressions if fail_on_regression else []
    for text in regressions:
        fail(text)
    return FAILED if regressions else 0
