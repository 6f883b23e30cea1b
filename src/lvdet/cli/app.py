"""The application and its list of verbs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from lvdet.cli.report import pairs_apart
from lvdet.errors import InputError

# No verb has enough linear algebra to occupy a second thread, and idle BLAS threads spin.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

#: In the order of the help text; each is a module of this package.
VERBS = (
    "evaluate",
    "sweep",
    "audit",
    "rerank",
    "compare",
    "report",
    "calibrate",
    "check",
    "convert",
    "demo",
    "train",
    "predict",
    "synth",
    "experiment",
)
INTERRUPTED = 130
NO_COLOR = "--no-color"
#: What typer raises for an invalid command line; typer does not export it.
_UsageError: type[Any] = typer.BadParameter.__mro__[2]


def _top(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and build details, and exit.")
    ] = False,
    no_color: Annotated[
        bool, typer.Option(NO_COLOR, help="Print without colors, like NO_COLOR=1.")
    ] = False,
) -> None:
    if version:
        from lvdet.cli.build_details import build_details

        print(build_details())
    elif context.invoked_subcommand is None:
        print(context.get_help())


def _app(verbs: Iterable[str]) -> typer.Typer:
    app = typer.Typer(
        name="lvdet",
        help="Evaluate, calibrate, train and run large-vocabulary object detectors. Computes "
        "AP-Old, AP-Fixed and AP-Pool, from the paper by Dave et al. (arXiv:2102.01066).",
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_top)
    for verb in verbs:
        module = import_module(f"lvdet.cli.{verb}")
        if hasattr(module, "app"):  # it has subcommands
            app.add_typer(module.app, name=verb)
        else:
            app.command(verb, epilog=module.EXAMPLES)(module.run)
    return app


def _colored(arguments: Sequence[str]) -> list[str]:
    """The arguments without `--no-color`; sets NO_COLOR instead, which child processes inherit."""
    rest = [one for one in arguments if one != NO_COLOR]
    if len(rest) < len(arguments):
        os.environ["NO_COLOR"] = "1"
    return rest


def run(arguments: Sequence[str]) -> int:
    """Runs a command line (without the program name) and returns the exit code."""
    arguments = _colored(arguments)
    try:
        # Load only the verb that was called: building the others takes as long as reading a small
        # file.
        verbs = [verb for verb in VERBS if verb in arguments[:1]] or VERBS
        code = _app(verbs)(pairs_apart(arguments), standalone_mode=False)
    except _UsageError as error:
        raise InputError(f"{error.format_message()} (see --help)") from None
    except typer.Abort:
        raise KeyboardInterrupt from None
    if code == INTERRUPTED:  # how newer versions of typer report Ctrl-C
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0
