"""`lvdet experiment`: the paper's tables and figures, from training to results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lvdet.cli.options import Threads
from lvdet.cli.terminal import finish, note, progress_bar
from lvdet.errors import InputError
from lvdet.extras import extra

EXAMPLES = """\b
Examples:
  lvdet experiment --list
  lvdet experiment ap_fixed_losses
  lvdet experiment ap_fixed_losses --seeds 0 --jobs 3 -o results --deadline 540
  lvdet experiment all --status
  lvdet experiment all --scale lvis --only 1/8 -o results
  lvdet experiment --page docs/results/index.md --results docs/results/data
"""


@extra("train", "an experiment")
def run(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Tables and figures to reproduce, named as in --list; or all."
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the paper's tables and figures, and exit.")
    ] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status",
            "--dry-run",
            help="List the runs, done or missing, with their times, and exit.",
        ),
    ] = False,
    scale: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="lvis: the paper's settings. synth: synthetic images, minutes per run on a GPU. "
            "tiny: a smoke test, seconds on a CPU.",
        ),
    ] = "synth",
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="DIR", help="Folder for results and tables."),
    ] = Path("results"),
    work: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for images and checkpoints.")
    ] = Path("runs/experiments"),
    results: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="DIR",
            help="Folder of earlier results; runs found there are skipped. Repeatable.",
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option(metavar="N", help="Number of training runs in parallel.")
    ] = 1,
    only: Annotated[
        str,
        typer.Option(
            metavar="I/N", help="Do only part I of N of the runs, to share them among machines."
        ),
    ] = "1/1",
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="N,…",
            help="Random seeds to run: some of the scale's, or pilot seeds (100 and above), which "
            "do not count toward verdicts. Default: all of the scale's.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="cuda or cpu. Default: cuda if there is a GPU."),
    ] = None,
    deadline: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Stop within this many seconds; finished runs are kept."
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.md",
            help="Write a page with the results of --scale from --results, and exit.",
        ),
    ] = None,
    threads: Threads = None,
) -> None:
    """Reproduce the paper's tables and figures.

    Trains and evaluates the detectors they need, on LVIS or on synthetic images, and prints the
    results beside the paper's. Run the same command again to resume.
    """
    if listed:
        _list()
        return
    if page is not None:
        from lvdet.experiments.results_page import write_page

        for path in write_page(page, results or [output], scale):
            print(f"wrote {path}")
        return
    if not names:
        raise InputError("NAME is missing: pass a name from --list, or all (see --help)")

    from lvdet.experiments.request import Request
    from lvdet.experiments.run_status import RunStatus
    from lvdet.training.loop.stopping import StoppedError

    request = Request(
        names=tuple(names),
        scale_name=scale,
        out=output,
        work=work,
        known=tuple(results or ()),
        jobs=jobs,
        only=only,
        seeds=_seeds(seeds),
        device=device,
        deadline=deadline,
        say=note,
    )
    try:
        finish(RunStatus.of(request) if status else request.carry_out(progress_bar))
    except StoppedError as stopped:
        print("stopped during training; the same command resumes it", file=sys.stderr)
        sys.exit(128 + stopped.signal)


def _list() -> None:
    """Prints one line per table and figure."""
    from lvdet.experiments.paper_item import experiment, names

    found = [experiment(name) for name in names()]
    width = max(len(one.name) for one in found)
    for one in found:
        print(f"{one.name:{width}}  {one.label.partition(':')[0]}  {one.title}")


def _seeds(text: str | None) -> tuple[int, ...]:
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise InputError(f"--seeds is {text!r}, expected integers such as 0,1,2")
    return tuple(dict.fromkeys(map(int, parts)))
