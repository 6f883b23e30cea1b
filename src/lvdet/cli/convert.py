"""`lvdet convert`: results in another format, all or the best of each class."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.options import Results, Threads
from lvdet.cli.terminal import progress_bar

EXAMPLES = """\b
Examples:
  lvdet convert results.json -o results.parquet
  lvdet convert 'out-*.parquet' -o out.parquet --dets-per-class 10000
  lvdet convert results.parquet -o boxes.json --no-masks
"""


def run(
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
    dets_per_class: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Keep only the K highest scores of each class over all files, earlier rows first "
            "among equals.",
        ),
    ] = None,
    no_masks: Annotated[
        bool, typer.Option("--no-masks", help="Write boxes only; of masks alone, their boxes.")
    ] = False,
    threads: Threads = None,
) -> None:
    """Write results as JSON, JSON lines or Parquet, all of them or the best of each class. They may
    be larger than memory."""
    from lvdet.files.convert import convert

    written, found = convert(
        detections,
        output,
        dets_per_class=dets_per_class,
        masks=not no_masks,
        progress=progress_bar,
    )
    print(f"wrote {output}: {written:,} detections (of {found:,})")
