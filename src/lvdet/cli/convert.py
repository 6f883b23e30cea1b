"""`lvdet convert`: detections in another format, all or the best of each class."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.options import DetectionsOutput, ImagesOf, Results, Summary, Threads
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import progress_bar
from lvdet.files.writing import write_json

EXAMPLES = """\b
Examples:
  lvdet convert results.json -o results.parquet
  lvdet convert 'out-*.parquet' -o out.parquet --dets-per-class 10000
  lvdet convert 'out-*.parquet' -o out.parquet --dets-per-class 10000 --dets-per-image 300
  lvdet convert results.parquet -o boxes.json --no-masks
  lvdet convert corners.json -o results.json --box-format xyxy
"""


def run(
    detections: Results,
    output: DetectionsOutput,
    dets_per_class: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Keep only the K highest scores of each class over all files; among equal "
            "scores the earlier rows win.",
        ),
    ] = None,
    dets_per_image: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Keep only the N highest scores of each image; with --dets-per-class, whatever is "
            "among either.",
        ),
    ] = None,
    no_masks: Annotated[
        bool,
        typer.Option("--no-masks", help="Write boxes only; boxes of masks that have none."),
    ] = False,
    box_format: Annotated[
        str,
        typer.Option(
            help="How boxes are written in DT: xywh, xyxy or cxcywh; xywhn, xyxyn or cxcywhn for "
            "fractions of the image."
        ),
    ] = "xywh",
    images: ImagesOf = None,
    category_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help='Class ids by those in DT: {"0": 1, "1": 2, …}. Others stay.',
        ),
    ] = None,
    summary: Summary = None,
    threads: Threads = None,
) -> None:
    """Convert detections between formats.

    JSON, JSON lines and Parquet. Files may be larger than memory.
    """
    from lvdet.files.convert import convert
    from lvdet.files.repair import read_category_map

    require_target(summary, (".json",))
    written, found = convert(
        detections,
        output,
        dets_per_class=dets_per_class,
        dets_per_image=dets_per_image,
        masks=not no_masks,
        box_format=box_format,
        images=images,
        category_map=None if category_map is None else read_category_map(category_map),
        progress=progress_bar,
    )
    if summary is not None:
        write_json({"output": str(output), "written": written, "read": found}, summary)
    print(f"wrote {output}: {written:,} of {found:,} detections")
