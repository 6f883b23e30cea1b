"""The command line: one file a verb. A verb parses, makes one library call and prints."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from lvdet.cli import (
    audit,
    calibrate,
    check,
    compare,
    convert,
    demo,
    evaluate,
    report,
    rerank,
    sweep,
)
from lvdet.errors import InputError, LvdetError

# No verb does linear algebra worth a second thread, and BLAS threads spin while they wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

app = typer.Typer(
    name="lvdet",
    help="Evaluate and calibrate large-vocabulary object detectors: AP-Old, AP-Fixed and AP-Pool, "
    "exact and fast.",
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


def main() -> None:
    """Runs the command line; bad input is one line on stderr and exit code 2, failure 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals and names that are not UTF-8
    try:
        code = app(standalone_mode=False)
    except _UsageError as error:
        _fail(f"{error.format_message()} (see --help)", 2)
    except InputError as error:
        _fail(str(error), 2)
    except (LvdetError, OSError) as error:
        _fail(str(error), 1)
    except MemoryError:
        _fail("there is not enough memory", 1)
    except (KeyboardInterrupt, typer.Abort):
        _fail("interrupted", 130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(text: str, code: int) -> NoReturn:
    print(f"lvdet: error: {' '.join(text.split())}", file=sys.stderr)
    sys.exit(code)
