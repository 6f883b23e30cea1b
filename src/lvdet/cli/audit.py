"""`lvdet audit`: which numbers of a results file can be published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.json_file import write_json
from lvdet.cli.options import Annotations, ExactLvis, Iou, Results, Threads
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import print_tables, progress_bar, warn

EXAMPLES = """\b
Examples:
  lvdet audit lvis_v1_val.json results.json
  lvdet audit gt.json results.parquet --output audit.json
"""


def run(
    ground_truth: Annotations,
    detections: Results,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the audit as JSON.")
    ] = None,
    iou: Iou = None,
    exact_lvis: ExactLvis = False,
    threads: Threads = None,
) -> None:
    """Was this file cut, which classes are short, and how gameable is its number."""
    require_target(output)

    from lvdet.studies.audit import audit

    result = audit(
        ground_truth,
        detections,
        iou=iou,
        exact_lvis=exact_lvis,
        progress=progress_bar,
    )
    if output is not None:
        write_json(result.to_dict(), output)
    print_tables(result.title(), result.layouts())
    print("", *result.findings(), "", *(f"- {text}" for text in result.verdict), sep="\n")
    for text in result.warnings:
        warn(text)
