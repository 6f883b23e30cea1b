"""`lvdet compare`: detectors beside a baseline, and which differences hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lvdet.cli.json_file import write_json
from lvdet.cli.options import Annotations, ExactLvis, Iou, Threads
from lvdet.cli.table_file import write_text
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import print_tables, progress_bar, warn
from lvdet.errors import InputError

if TYPE_CHECKING:
    from lvdet.comparison.comparison_result import Comparison

EXAMPLES = """\b
Examples:
  lvdet compare lvis_v1_val.json baseline.json ours.json
  lvdet compare gt.json baseline.json ours.json theirs.parquet --resamples 5000
  lvdet compare gt.json baseline.json ours.json --output compared.json --output compared.tex
"""
ENDINGS = (".json", ".csv", ".md", ".tex")


def run(
    ground_truth: Annotations,
    detections: Annotated[
        list[str],
        typer.Argument(
            metavar="A B…", help="Results, as for evaluate: the baseline, and one or more others."
        ),
    ],
    iou: Iou = None,
    resamples: Annotated[int, typer.Option(help="How many sets of images are drawn.")] = 1_000,
    confidence: Annotated[
        float, typer.Option(help="How often intervals are to cover the difference.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(help="With the same one the same sets are drawn.")] = 0,
    dets_per_image: Annotated[
        int | None, typer.Option(help="Budget of AP-Old, as for evaluate.")
    ] = None,
    dets_per_class: Annotated[
        int | None, typer.Option(help="Budget of AP-Fixed and AP-Pool. Default: 10,000.")
    ] = None,
    classes_shown: Annotated[
        int, typer.Option(metavar="N", help="Show the N classes that differ most surely.")
    ] = 10,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Write the result as .json, .csv, .md or .tex, by the ending; may be given again.",
        ),
    ] = None,
    exact_lvis: ExactLvis = False,
    threads: Threads = None,
) -> None:
    """Differences from a baseline with intervals, for AP-Old, AP-Fixed and AP-Pool."""
    outputs = output or []
    for path in outputs:
        require_target(path, ENDINGS)
    if classes_shown < 0:
        raise InputError(f"--classes-shown is {classes_shown}, expected 0 or more")

    from lvdet.comparison.compare import compare

    result = compare(
        ground_truth,
        detections,
        iou=iou,
        dets_per_image=dets_per_image,
        dets_per_class=dets_per_class,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
        exact_lvis=exact_lvis,
        progress=progress_bar,
    )
    for path in outputs:
        write_comparison(result, path, classes_shown)
    print_tables(result.title(), result.layouts(classes_shown))
    print("", *result.verdicts, sep="\n")
    for text in result.warnings:
        warn(text)


def write_comparison(result: Comparison, path: Path, classes_shown: int) -> None:
    """Writes the result in the format that the ending names."""
    ending = path.suffix.lower()
    if ending == ".json":
        write_json(result.to_dict(), path)
    elif ending == ".csv":
        write_text(result.to_csv(), path)
    elif ending == ".md":
        write_text(result.to_markdown(classes_shown), path)
    else:
        write_text(result.to_latex(classes_shown), path)
