"""`lvdet report`: one page about one or more detectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.options import Annotations, DropDuplicates, Iou, Summary, Threads
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import progress_bar, warn
from lvdet.errors import InputError
from lvdet.extras import extra

EXAMPLES = """\b
Examples:
  lvdet report lvis_v1_val.json results.json -o report.html
  lvdet report gt.json baseline.json new.json -o report.html --figures figures
  lvdet report gt.json results.json --calibrator cal.json --images val2017 -o report.html
"""


#: This option takes two values and is repeatable, which typer cannot express.
_TRAIN = "--train"


def pairs_apart(arguments: Sequence[str]) -> list[str]:
    """Rewrites this verb's `--train GT DT` as `--train GT --train DT`."""
    apart = list(arguments)
    if "report" not in apart[:1]:
        return apart
    for place in reversed(range(len(apart))):
        if apart[place] == _TRAIN:
            if place + 2 >= len(apart):
                raise InputError(f"{_TRAIN} needs two values: GT DT (see --help)")
            apart.insert(place + 2, _TRAIN)
    return apart


@extra("report", "a report")
def run(
    ground_truth: Annotations,
    detections: Annotated[
        list[str],
        typer.Argument(
            metavar="DT", help="Detections, as for evaluate. Several results files are compared."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write.")
    ] = Path("report.html"),
    name: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="Name of a detector; repeat once per results file, in order."
        ),
    ] = None,
    calibrator: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="CAL.json",
            help="Calibrator to use, from calibrate fit; repeat once per results file, in "
            "order. Default: fit to --train, or by cross-validation.",
        ),
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            metavar="GT DT",
            help="Annotations and detections of the training images, to fit a calibrator on; "
            "repeat once per results file, in order.",
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            metavar="METHOD", help="Calibration method to fit if there is no --calibrator."
        ),
    ] = "hierarchical",
    images: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of the images. The page then shows detections on some."
        ),
    ] = None,
    image_id: Annotated[
        list[int] | None,
        typer.Option(
            metavar="ID",
            help="Id of an image to show. Repeatable. Default: the images that calibration "
            "changes most.",
        ),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Also write the figures as PDF and PNG, and the tables as .tex, .md and .csv.",
        ),
    ] = None,
    resamples: Annotated[int, typer.Option(metavar="N", help="Number of bootstrap samples.")] = 200,
    summary: Summary = None,
    iou: Iou = None,
    drop_duplicates: DropDuplicates = False,
    threads: Threads = None,
) -> None:
    """Write an HTML report on one or more detectors.

    The page is a single file that works offline, in light and dark mode, in print and on a phone.
    """
    require_target(output, (".html", ".htm"))
    require_target(summary, (".json",))
    if figures is not None and figures.exists() and not figures.is_dir():
        raise InputError(f"{figures}: not a folder")

    from lvdet.calibration.calibrator import Calibrator
    from lvdet.files.writing import make_folder
    from lvdet.reporting.page import render  # noqa: F401  before the work begins
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
        drop_duplicates=drop_duplicates,
        progress=progress_bar,
    )
    for path in filter(None, (output, summary)):
        result.save(path)
    for study in result.studies:
        print(f"{study.name}\n{study.evaluation}\n")
    for text in result.notes():
        print(text)
    print(f"wrote {output}: {output.stat().st_size / 1e6:.1f} MB")
    for text in result.warnings:
        warn(text)
    if figures is not None:
        written = result.save_figures(figures, progress=progress_bar)
        print(f"wrote {figures}: {len(written):,} files")
