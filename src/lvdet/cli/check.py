"""`lvdet check`: every problem of the input."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.options import Annotations
from lvdet.cli.targets import require_target
from lvdet.cli.terminal import progress_bar
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
    show: Annotated[int, typer.Option(metavar="N", help="Print the first N problems.")] = 50,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE.json", help="Write all problems as JSON."),
    ] = None,
) -> None:
    """Find every problem in the input files.

    Each with its row and byte. The exit code is 2 if there is any problem.
    """
    require_target(output, (".json",))
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
    count = f"{len(problems):,} problem{'s' * (len(problems) != 1)}" if problems else "no problems"
    print(f"{names}: {count} found")
    if problems:
        raise typer.Exit(2)
