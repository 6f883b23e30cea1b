"""`lvdet check`: every problem in the input."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.options import Annotations
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import note, progress_bar
from lvdet.files.writing import write_json

EXAMPLES = """\b
Examples:
  lvdet check lvis_v1_val.json
  lvdet check gt.json results.json
"""


def run(
    ground_truth: Annotations,
    detections: Annotated[
        str | None, typer.Argument(metavar="DT", help="Detections, as for evaluate.")
    ] = None,
    show: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Maximum number of problems to print; systematic mistakes are always printed.",
        ),
    ] = 50,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE.json",
            help="Write the problems as JSON: per file, up to 10,000 unreadable values "
            "and a count of the rest.",
        ),
    ] = None,
    category_map: Annotated[
        Path | None,
        typer.Option(
            metavar="MAP.json",
            help="If class ids appear to be remapped and lvdet finds the whole mapping, write it, "
            "for convert --category-map.",
        ),
    ] = None,
) -> None:
    """Find every problem in the input files.

    Prints each problem, with its row and byte offset where they apply. If every row of DT can be
    read and belongs to a known image, also looks for systematic mistakes: repeated or missing
    images, boxes in another format, remapped class ids. The exit code
    is 2 if there are problems.
    """
    require_target(output, (".json",))
    require_target(category_map, (".json",))
    from lvdet.plausibility.check import inspect

    problems, findings = inspect(ground_truth, detections, progress=progress_bar)
    if output is not None:
        rows = [
            {"source": p.source, "table": p.table, "row": p.row, "byte": p.byte, "what": p.what}
            for p in problems
        ]
        whole = [finding.to_dict() for finding in findings]
        write_json({"problems": rows, "findings": whole}, output)
    mapping = {str(old): new for finding in findings for old, new in finding.category_map.items()}
    if category_map is not None and mapping:
        write_json(mapping, category_map)
    elif category_map is not None:
        note(f"no complete mapping of class ids was found: {category_map} was not written")
    for problem in problems[:show]:
        print(problem)
    if len(problems) > show:
        print(f"… and {len(problems) - show:,} more (see --show and --output)")
    for finding in findings:
        print(finding)
    names = " and ".join(str(name) for name in (ground_truth, detections) if name is not None)
    number = len(problems) + len(findings)
    count = f"{number:,} problem{'s' * (number != 1)}" if number else "no problems"
    print(f"{names}: {count} found")
    if number:
        raise typer.Exit(2)
