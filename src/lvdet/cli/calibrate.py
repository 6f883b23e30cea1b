"""`lvdet calibrate`: scores that mean the same for every class."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from lvdet.cli.json_file import write_json
from lvdet.cli.options import Annotations, Iou, Results, Threads
from lvdet.cli.table_file import write_layouts
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import print_tables, progress_bar, warn

if TYPE_CHECKING:
    from lvdet.calibration.calibration_table import CalibrationTable

EXAMPLES = """\b
Examples:
  lvdet calibrate fit train.json train_results.json -o cal.json
  lvdet calibrate apply cal.json results.json -o calibrated.json
  lvdet calibrate compare val.json results.json --train train.json train_results.json
  lvdet calibrate measure val.json results.json
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
"""
COMPARE_EXAMPLES = """\b
Examples:
  lvdet calibrate compare val.json results.json --train train.json train_results.json
  lvdet calibrate compare val.json results.json --folds 10 --output table.tex
  lvdet calibrate compare val.json results.json --methods platt,hierarchical --no-oracle
"""
MEASURE_EXAMPLES = """\b
Examples:
  lvdet calibrate measure val.json results.json
  lvdet calibrate measure val.json results.json --iou-threshold 0.5 --output errors.json
"""

Grouping: TypeAlias = Annotated[
    str, typer.Option(help="Whose detections a fit is made of: class, frequency or all.")
]
Missing: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="What a class without a right detection gets: zero (as in the paper), keep for its "
        "own scores, or frequency for its group's fit. Default: zero.",
    ),
]
IouThreshold: TypeAlias = Annotated[
    float, typer.Option(help="The IoU at which a detection is right.")
]
DetsPerClass: TypeAlias = Annotated[
    int, typer.Option(metavar="N", help="Detections of each class that are used, its best.")
]

app = typer.Typer(
    help="Turn scores into chances, so that they mean the same for every class.",
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
            help="histogram, bbq, bbq-bic, beta, isotonic, platt, temperature, identity, or "
            "hierarchical, which has an answer for rare classes too."
        ),
    ] = "hierarchical",
    grouping: Grouping = "class",
    missing: Missing = None,
    iou: Iou = None,
    iou_threshold: IouThreshold = 0.75,
    dets_per_class: DetsPerClass = 10_000,
    threads: Threads = None,
) -> None:
    """Learn a calibrator from annotations and results."""
    from lvdet.calibration.calibrator import Calibrator

    require_target(output, (".json",))
    calibrator = Calibrator(method, grouping=grouping, missing=missing).fit(
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
        Path, typer.Argument(metavar="CAL.json", help="What calibrate fit has written.")
    ],
    detections: Results,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="What to write: .json, .jsonl, .ndjson or .parquet. It may be the input.",
        ),
    ],
    threads: Threads = None,
) -> None:
    """Write results with calibrated scores."""
    from lvdet.calibration.calibrator import Calibrator

    require_target(output)
    fitted = Calibrator.load(calibrator)
    written = fitted.transform_file(detections, output, progress=progress_bar)
    print(f"wrote {output}: {written:,} detections, scores by {fitted.recipe.method}")


@app.command("compare", epilog=COMPARE_EXAMPLES)
def compare(
    ground_truth: Annotations,
    detections: Results,
    train: Annotated[
        tuple[Path, str] | None,
        typer.Option(
            metavar="GT DT", help="Annotations and results of the training set, to fit on."
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Methods, as for fit. Default: the paper's five and hierarchical.",
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Also fit on parts of the images and judge on the others. Default: 5 parts where "
            "there is no --train.",
        ),
    ] = None,
    oracle: Annotated[
        bool, typer.Option(help="Also fit on the very images that are evaluated.")
    ] = True,
    grouping: Grouping = "class",
    missing: Missing = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Write the tables: .json, .md or .tex; may be given repeatedly."
        ),
    ] = None,
    iou: Iou = None,
    iou_threshold: IouThreshold = 0.75,
    dets_per_class: DetsPerClass = 10_000,
    threads: Threads = None,
) -> None:
    """The paper's calibration table, on your detector."""
    from lvdet.calibration.calibrate import SHOWN, calibrate

    for path in output or []:
        require_target(path, (".json", ".md", ".tex"))
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
    for path in output or []:
        write_table(result, path)
    print_tables(result.title(), result.layouts())
    for text in result.notes():
        print(f"\n{text}")
    for text in result.warnings:
        warn(text)


@app.command("measure", epilog=MEASURE_EXAMPLES)
def measure(
    ground_truth: Annotations,
    detections: Results,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Write the errors, those of each class too."),
    ] = None,
    iou: Iou = None,
    iou_threshold: IouThreshold = 0.75,
    dets_per_class: DetsPerClass = 10_000,
    threads: Threads = None,
) -> None:
    """Measure how calibrated scores are."""
    from lvdet.calibration.calibrator import Calibrator

    require_target(output, (".json",))
    result = Calibrator("identity").measure(
        ground_truth,
        detections,
        iou=iou,
        iou_threshold=iou_threshold,
        dets_per_class=dets_per_class,
        progress=progress_bar,
    )
    if output is not None:
        write_json(result.to_dict(), output)
    print_tables(result.title(), result.layouts())
    for text in result.warnings:
        warn(text)


def write_table(result: CalibrationTable, path: Path) -> None:
    """Writes the tables in the format that the ending names."""
    if path.suffix.lower() == ".json":
        write_json(result.to_dict(), path)
    else:
        write_layouts(result.layouts(labelled=True), path)
