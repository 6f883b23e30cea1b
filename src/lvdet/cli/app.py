"""The list of all verbs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from lvdet.cli import (
    audit,
    calibrate,
    check,
    compare,
    convert,
    demo,
    evaluate,
    predict,
    report,
    rerank,
    sweep,
    synth,
    train,
)
from lvdet.errors import InputError

# No verb does linear algebra worth a second thread, and BLAS threads spin while they wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

app = typer.Typer(
    name="lvdet",
    help="Train, run, evaluate and calibrate large-vocabulary object detectors: AP-Old, AP-Fixed "
    "and AP-Pool, exact and fast.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("evaluate", epilog=evaluate.EXAMPLES)(evaluate.run)
app.command("sweep", epilog=sweep.EXAMPLES)(sweep.run)
app.command("audit", epilog=audit.EXAMPLES)(audit.run)
app.command("rerank", epilog=rerank.EXAMPLES)(rerank.run)
app.command("compare", epilog=compare.EXAMPLES)(compare.run)
app.command("report", epilog=report.EXAMPLES)(report.run)
app.add_typer(calibrate.app, name="calibrate")
app.command("check", epilog=check.EXAMPLES)(check.run)
app.command("convert", epilog=convert.EXAMPLES)(convert.run)
app.command("demo", epilog=demo.EXAMPLES)(demo.run)
app.command("train", epilog=train.EXAMPLES)(train.run)
app.command("predict", epilog=predict.EXAMPLES)(predict.run)
app.command("synth", epilog=synth.EXAMPLES)(synth.run)

INTERRUPTED = 130
#: What typer raises for a command line that makes no sense; it has no public name there.
_UsageError: type[Any] = typer.BadParameter.__mro__[2]


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    if version:
        from lvdet import __version__

        print(__version__)
    elif context.invoked_subcommand is None:
        print(context.get_help())


def run(arguments: Sequence[str]) -> int:
    """Runs a command line, without the program's name."""
    try:
        code = app(report.pairs_apart(arguments), standalone_mode=False)
    except _UsageError as error:
        raise InputError(f"{error.format_message()} (see --help)") from None
    except typer.Abort:
        raise KeyboardInterrupt from None
    if code == INTERRUPTED:  # what newer versions of typer make of Ctrl-C
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0
