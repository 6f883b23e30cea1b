"""`lvdet convert`: detections in another format, all or the best per class and image."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.cluster_option import Cluster, placed
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
            help="Keep only the K highest-scoring detections of each class across all files; "
            "ties go to earlier rows.",
        ),
    ] = None,
    dets_per_image: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Keep only the N highest-scoring detections of each image; with "
            "--dets-per-class, keep those within either limit.",
        ),
    ] = None,
    no_masks: Annotated[
        bool,
        typer.Option(
            "--no-masks",
            help="Write boxes only; a detection without a box gets its mask's bounding box.",
        ),
    ] = False,
    box_format: Annotated[
        str,
        typer.Option(
            metavar="FORMAT",
            help="Box format of DT: xywh, xyxy or cxcywh in pixels; xywhn, xyxyn or cxcywhn "
            "as fractions of the image size.",
        ),
    ] = "xywh",
    images: ImagesOf = None,
    category_map: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.json",
            help='A mapping of class ids, such as {"0": 1, "1": 2, …}; other ids are kept.',
        ),
    ] = None,
    summary: Summary = None,
    cluster: Cluster = None,
    threads: Threads = None,
) -> None:
    """Convert detections between formats.

    Files may be larger than memory.
    """
    from lvdet.files.convert import convert
    from lvdet.files.detection_files import WRITTEN
    from lvdet.files.repair import read_category_map

    require_target(output, WRITTEN)
    require_target(summary, (".json",))
    written, found = placed(convert, cluster, place=0)(
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
