"""`lvdet check`: every problem of the input."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.json_file import write_json
from lvdet.cli.options import Annotations
from lvdet.cli.terminal import progress_bar

EXAMPLES = """\b
Examples:
  lvdet check lvis_v1_val.json
  lvdet check gt.json results.json
"""


def run(
    ground_truth: Annotations,
    detections: Annotated[
        str | None, typer.Argument(metavar="DT", help="Results, as for evaluate.")
    ] = None,
    show: Annotated[int, typer.Option(help="How many problems to print.")] = 50,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write all problems as JSON.")
    ] = None,
) -> None:
    """List every problem of the files, with row and byte. Exit code 2 if there is any."""
    from lvdet.files.check import check

    problems = check(ground_truth, detections, progress=progress_bar)
    if output is not None:
        rows = [
            {"source": p.source, "table": p.table, "row": p.row, "byte": p.byte, "what": p.what}
            for p in problems
        ]
        write_json({"problems": rows}, output)
    for problem in problems[:show]:
        print(problem)
    if len(problems) > show:
        print(f"… and {len(problems) - show:,} more (--show, --output)")
    names = " and ".join(str(name) for name in (ground_truth, detections) if name is not None)
    print(
        f"{names}: {len(problems):,} problem{'s' * (len(problems) != 1)}"
        if problems
        else f"{names}: no problem found"
    )
    if problems:
        raise typer.Exit(2)
