"""The command line: one file a verb. A verb parses, makes one library call and prints.

The verbs in `BARE` run where there is nothing but PyTorch, straight from the source tree: argparse
reads their arguments. typer has all others.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from lvdet.errors import InputError, LvdetError

#: Verbs that need neither typer nor the compiled core, and what they do.
BARE = {
    "train": "Train a large-vocabulary detector from a config file, or go on with a run.",
    "predict": "Run a trained detector over images, with the best K detections of each class.",
    "synth": "Make a long-tail set of images with exact masks, in the format of LVIS.",
}


def main() -> None:
    """Runs the command line; bad input is one line on stderr and exit code 2, failure 1."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # for terminals and names that are not UTF-8
    try:
        code = _run(sys.argv[1:])
    except InputError as error:
        _fail(str(error), 2)
    except (LvdetError, OSError) as error:
        _fail(str(error), 1)
    except MemoryError:
        _fail("there is not enough memory", 1)
    except KeyboardInterrupt:
        _fail("interrupted", 130)
    sys.exit(code)


def _run(arguments: Sequence[str]) -> int:
    try:
        if arguments and arguments[0] in BARE:
            import_module(f"lvdet.cli.{arguments[0]}").run(list(arguments[1:]))
            return 0
        from lvdet.cli.app import run

        return run(arguments)
    except ImportError as error:
        if "_native" in str(error):  # of the package lvdet, which is there
            raise LvdetError(_missing("lvdet")) from None
        of_others = isinstance(error, ModuleNotFoundError) and not str(error.name).startswith(
            "lvdet"
        )
        if not of_others or error.name is None:
            raise
        raise LvdetError(_missing(error.name)) from None


def _missing(module: str) -> str:
    """What to say where a package is not installed."""
    package = module.partition(".")[0]
    if package in ("torch", "torchvision", "PIL"):
        return f"{package} is not installed: pip install torch torchvision pillow"
    what = "lvdet's compiled core" if package == "lvdet" else package
    return (
        f"{what} is not installed: on this machine only {', '.join(BARE)} work; "
        "pip install . in lvdet's folder for the rest"
    )


def _fail(text: str, code: int) -> NoReturn:
    print(f"lvdet: error: {' '.join(text.split())}", file=sys.stderr)
    sys.exit(code)
