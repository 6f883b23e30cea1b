"""`lvdet calibrate`: scores that mean the same for every class."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from lvdet.cli.cluster_option import Cluster, SkipBadShards, placed
from lvdet.cli.options import (
    Annotations,
    DetectionsOutput,
    ImagesOf,
    Iou,
    Outputs,
    Results,
    RowOutputs,
    Summary,
    Threads,
)
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import finish, progress_bar, require_outputs, warn
from lvdet.files.writing import write_json

EXAMPLES = """\b
Examples:
  lvdet calibrate fit train.json train_results.json -o cal.json
  lvdet calibrate apply cal.json results.json -o calibrated.json
  lvdet calibrate compare val.json results.json --train train.json train_results.json
  lvdet calibrate measure val.json results.json
  lvdet calibrate thresholds val.json results.json -o thresholds.json
"""
FIT_EXAMPLES = """\b
Examples:
  lvdet calibrate fit train.json train_results.json -o cal.json
  lvdet calibrate fit train.json train_results.json -o cal.json --method beta --missing keep
  lvdet calibrate fit train.json train_results.json -o cal.json --method platt --grouping frequency
"""
APPLY_EXAMPLES = """\b
Examples:
  lvdet calibrate apply cal.json results.json -o calibrated.json
  lvdet calibrate apply cal.json 'parts-*.parquet' -o calibrated.parquet
  lvdet calibrate apply cal.json named.json -o calibrated.json --images val.json
"""
COMPARE_EXAMPLES = """\b
Examples:
  lvdet calibrate compare val.json results.json --train train.json train_results.json
  lvdet calibrate compare val.json results.json --folds 10 -o table.tex
  lvdet calibrate compare val.json results.json --methods platt,hierarchical --no-oracle
"""
MEASURE_EXAMPLES = """\b
Examples:
  lvdet calibrate measure val.json results.json
  lvdet calibrate measure val.json results.json --iou-threshold 0.5 -o errors.json
  lvdet calibrate measure test.json test_results.json --thresholds thresholds.json
"""
THRESHOLDS_EXAMPLES = """\b
Examples:
  lvdet calibrate thresholds val.json results.json -o thresholds.json
  lvdet calibrate thresholds val.json calibrated.json --iou-threshold 0 -o thresholds.csv
"""

Grouping: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="GROUPING",
        help="Fit one map per class (class), per frequency group (frequency), "
        "or a single map (all). Not for hierarchical.",
    ),
]
Missing: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="RULE",
        help="Scores of classes without a correct detection: zero lowers them to almost 0 (the "
        "paper: to 0); keep leaves them unchanged; frequency uses the fit of the class's frequency "
        "group. Default: zero; for identity, keep. Not for hierarchical.",
    ),
]
IouThreshold: TypeAlias = Annotated[
    float, typer.Option(metavar="IOU", help="IoU at which a detection counts as correct.")
]
DetsPerClass: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="Use the N highest-scoring detections of each class.")
]

DetsPerImage: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Limit per image, across all classes. Default: 300 for LVIS; for COCO, 100 per "
        "image and class.",
    ),
]

app = typer.Typer(
    help="Calibrate scores so that they mean the same for every class.",
    short_help="Calibrate scores across classes.",
    rich_markup_mode=None,
    epilog=EXAMPLES,
)


@app.callback(invoke_without_command=True)
def _top(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command("fit", epilog=FIT_EXAMPLES)
def fit(
    ground_truth: Annotations,
    detections: Results,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="CAL.json", help="Where to write the calibrator."),
    ],
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD",
            help="Calibration method: hierarchical (also works for rare classes), histogram, "
            "bbq, bbq-bic, beta, isotonic, platt, temperature or identity.",
        ),
    ] = "hierarchical",
    grouping: Grouping = "class",
    missing: Missing = None,
    iou: Iou = None,
    iou_threshold: IouThreshold = 0.75,
    dets_per_class: DetsPerClass = 10_000,
    cluster: Cluster = None,
    skip_bad_shards: SkipBadShards = False,
    threads: Threads = None,
) -> None:
    """Fit a calibrator.

    Fits maps from scores to the probability that a detection is correct. Use training images if
    you can.
    """
    from lvdet.calibration.calibrator import Calibrator

    require_target(output, (".json",))
    fit = Calibrator(method, grouping=grouping, missing=missing).fit
    calibrator = placed(fit, cluster, skip_bad_shards)(
        ground_truth,
        detections,
        iou=iou,
        iou_threshold=iou_threshold,
        dets_per_class=dets_per_class,
        progress=progress_bar,
    )
    calibrator.save(output)
    print(f"wrote {output}: {calibrator.summary()}")
    for text in calibrator.warnings_:
        warn(text)


@app.command("apply", epilog=APPLY_EXAMPLES)
def apply(
    calibrator: Annotated[
        Path, typer.Argument(metavar="CAL.json", help="Calibrator written by calibrate fit.")
    ],
    detections: Results,
    output: DetectionsOutput,
    images: ImagesOf = None,
    summary: Summary = None,
    threads: Threads = None,
) -> None:
    """Write detections with calibrated scores."""
    from lvdet.calibration.calibrator import Calibrator

    require_target(output)
    require_target(summary, (".json",))
    fitted = Calibrator.load(calibrator)
    written = fitted.transform_file(detections, output, images=images, progress=progress_bar)
    method = fitted.recipe.method
    if summary is not None:
        write_json({"output": str(output), "written": written, "method": method}, summary)
    print(f"wrote {output}: {written:,} detections, calibrated by {method}")


@app.command("compare", epilog=COMPARE_EXAMPLES)
def compare(
    ground_truth: Annotations,
    detections: Results,
    train: Annotated[
        tuple[Path, str] | None,
        typer.Option(
            metavar="GT DT",
            help="Annotations and detections of the training images; methods are fitted on them.",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Methods to compare, named as for fit. Default: histogram, bbq, beta, isotonic, "
            "platt and hierarchical.",
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Also cross-validate over K folds of the images. Default: 5 if there is no "
            "--train.",
        ),
    ] = None,
    oracle: Annotated[
        bool, typer.Option(help="Also fit on the evaluated images themselves.")
    ] = True,
    grouping: Grouping = "class",
    missing: Missing = None,
    output: Outputs = None,
    iou: Iou = None,
    iou_threshold: IouThreshold = 0.75,
    dets_per_class: DetsPerClass = 10_000,
    threads: Threads = None,
) -> None:
    """Compare calibration methods, as in the paper's table."""
    from lvdet.calibration.calibrate import SHOWN, calibrate

    require_outputs(output)
    named = None if methods is None else [name.strip() for name in methods.split(",")]
    result = calibrate(
        ground_truth,
        detections,
        train=train,
        methods=SHOWN if named is None else [name for name in named if name],
        grouping=grouping,
        missing=missing,
        folds=folds,
        oracle=oracle,
        iou=iou,
        iou_threshold=iou_threshold,
        dets_per_class=dets_per_class,
        progress=progress_bar,
    )
    finish(result, output)


@app.command("measure", epilog=MEASURE_EXAMPLES)
def measure(
    ground_truth: Annotations,
    detections: Results,
    output: Outputs = None,
    iou: Iou = None,
    iou_threshold: Annotated[
        float,
        typer.Option(
            metavar="IOU",
            help="IoU at which a detection counts as correct for ECE, MCE, Brier score and log "
            "loss. D-ECE always uses 0.5.",
        ),
    ] = 0.75,
    dets_per_class: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Use the N highest-scoring detections of each class for ECE, MCE, Brier score and "
            "log loss.",
        ),
    ] = 10_000,
    laece_iou_threshold: Annotated[
        float,
        typer.Option(
            metavar="IOU",
            help="IoU at which LaECE and LaACE match detections; 0 means any overlap.",
        ),
    ] = 0.0,
    dets_per_image: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Limit per image for LaECE, LaACE and D-ECE, across all classes. Default: 300 for "
            "LVIS; for COCO, 100 per image and class.",
        ),
    ] = None,
    thresholds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Score thresholds, written by calibrate thresholds. LaECE, LaACE and D-ECE ignore "
            "lower scores.",
        ),
    ] = None,
    threads: Threads = None,
) -> None:
    """Measure how well the scores are calibrated.

    Reports ECE, MCE, Brier score and log loss, localisation-aware ECE (LaECE) and ACE (LaACE), and
    detection ECE (D-ECE).
    """
    from lvdet.calibration.calibrator import Calibrator

    require_outputs(output)
    result = Calibrator("identity").measure(
        ground_truth,
        detections,
        iou=iou,
        iou_threshold=iou_threshold,
        dets_per_class=dets_per_class,
        laece_iou_threshold=laece_iou_threshold,
        dets_per_image=dets_per_image,
        thresholds=thresholds,
        progress=progress_bar,
    )
    finish(result, output)


@app.command("thresholds", epilog=THRESHOLDS_EXAMPLES)
def thresholds(
    ground_truth: Annotations,
    detections: Results,
    output: RowOutputs = None,
    iou: Iou = None,
    iou_threshold: Annotated[
        float,
        typer.Option(
            metavar="IOU", help="IoU at which a detection counts as correct; 0 means any overlap."
        ),
    ] = 0.5,
    dets_per_image: DetsPerImage = None,
    threads: Threads = None,
) -> None:
    """Choose a score threshold for each class by optimal LRP.

    The threshold minimises the class's localisation recall precision (LRP) error.
    """
    from lvdet.calibration.thresholds import Thresholds, find_thresholds

    require_outputs(output, Thresholds.ENDINGS)
    result = find_thresholds(
        ground_truth,
        detections,
        iou=iou,
        iou_threshold=iou_threshold,
        dets_per_image=dets_per_image,
        progress=progress_bar,
    )
    finish(result, output)
