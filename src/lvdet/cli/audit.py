"""`lvdet audit`: which numbers of a results file can be published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.json_file import write_json
from lvdet.cli.terminal import print_tables, progress_bar, warn

EXAMPLES = """\b
Examples:
  lvdet audit lvis_v1_val.json results.json
  lvdet audit gt.json results.parquet --output audit.json
"""


def run(
    ground_truth: Annotated[Path, typer.Argument(metavar="GT", help="LVIS or COCO annotations.")],
    detections: Annotated[str, typer.Argument(metavar="DT", help="Results, as for evaluate.")],
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the audit as JSON.")
    ] = None,
    iou: Annotated[
        str | None,
        typer.Option(help="bbox, segm or boundary. Default: segm where the results have masks."),
    ] = None,
    exact_lvis: Annotated[
        bool, typer.Option("--exact-lvis", help="Repeat the quirks of the reference tools.")
    ] = False,
    threads: Annotated[
        int | None, typer.Option(help="Threads to use. Default: all cores, or LVDET_THREADS.")
    ] = None,
) -> None:
    """Was this file cut, which classes are short, and how gameable is its number."""
    from lvdet.metrics.audit import audit

    result = audit(
        ground_truth,
        detections,
        iou=iou,
        exact_lvis=exact_lvis,
        threads=threads,
        watch=progress_bar,
    )
    if output is not None:
        write_json(result.to_dict(), output)
    print_tables(result.title(), result.layouts())
    print("", *result.findings(), "", *(f"- {text}" for text in result.verdict), sep="\n")
    for text in result.warnings:
        warn(text)
