"""`lvdet report`: one page that says it all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.options import Annotations, Iou, Threads
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import progress_bar, warn
from lvdet.errors import InputError

EXAMPLES = """\b
Examples:
  lvdet report lvis_v1_val.json results.json -o report.html
  lvdet report gt.json baseline.json new.json -o report.html --figures figures
  lvdet report gt.json results.json --calibrator cal.json --images val2017 -o report.html
"""


#: The option that takes two values and may be repeated, which typer has no type for.
_TRAIN = "--train"


def pairs_apart(arguments: Sequence[str]) -> list[str]:
    """The command line with `--train GT DT` of this verb written as `--train GT --train DT`."""
    apart = list(arguments)
    if "report" not in apart[:1]:
        return apart
    for place in reversed(range(len(apart))):
        if apart[place] == _TRAIN:
            if place + 2 >= len(apart):
                raise InputError(f"{_TRAIN} needs two values: GT DT (see --help)")
            apart.insert(place + 2, _TRAIN)
    return apart


def run(
    ground_truth: Annotations,
    detections: Annotated[
        list[str],
        typer.Argument(metavar="DT…", help="Results, as for evaluate; several are compared."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write.")
    ] = Path("report.html"),
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="What to call a results file; once for each of them."),
    ] = None,
    calibrator: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="CAL.json",
            help="Calibration to show, as of calibrate fit; once for each results file. Default: "
            "cross-validation over the images.",
        ),
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GT DT",
            help="Annotations and results of the training images, to fit calibration on; once per "
            "results file, in order.",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="How calibration is fitted, where no --calibrator is given.")
    ] = "hierarchical",
    images: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Show detections on images of this folder."),
    ] = None,
    image_id: Annotated[
        list[int] | None,
        typer.Option(
            metavar="ID",
            help="Show this image; may be given again. Default: those that calibration changes "
            "most.",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the figures as PDF and PNG there, and the tables as .tex, .md and .csv.",
        ),
    ] = None,
    resamples: Annotated[
        int,
        typer.Option(metavar="N", help="Resamples of the images, for intervals; more are finer."),
    ] = 200,
    iou: Iou = None,
    threads: Threads = None,
) -> None:
    """One page on a detector or several: works offline, light and dark, on paper and on a phone."""
    require_target(output, (".html", ".htm"))
    if figures is not None and figures.exists() and not figures.is_dir():
        raise InputError(f"{figures}: it is no folder")

    from lvdet.calibration.calibrator import Calibrator
    from lvdet.files.writing import make_folder
    from lvdet.reporting.paper_files import require_drawing
    from lvdet.reporting.report import report

    if figures is not None:
        require_drawing()
        make_folder(figures)
    result = report(
        ground_truth,
        detections,
        names=name,
        iou=iou,
        calibrators=[Calibrator.load(path) for path in calibrator or []],
        train=list(zip((train or [])[::2], (train or [])[1::2], strict=True)),
        method=method,
        images=images,
        image_ids=image_id or (),
        resamples=resamples,
        progress=progress_bar,
    )
    result.save(output)
    for study in result.studies:
        print(f"{study.name}\n{study.evaluation}\n")
    for text in result.findings:
        print(text)
    print(f"wrote {output}: {output.stat().st_size / 1e6:.1f} MB")
    for text in result.warnings:
        warn(text)
    if figures is not None:
        written = result.save_figures(figures, progress=progress_bar)
        print(f"wrote {figures}: {len(written):,} files")
