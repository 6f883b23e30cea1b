"""The arguments of the verbs that run without typer."""

from __future__ import annotations

import argparse
import textwrap
from typing import NoReturn

from lvdet.errors import InputError


class ArgumentParser(argparse.ArgumentParser):
    """argparse in the manner of the other verbs: what makes no sense is an `InputError` of one
    line, and help ends with examples.

        parser = ArgumentParser("train", "Train a detector.", EXAMPLES)
        parser.add_argument("config", metavar="CONFIG", type=Path, help="…")
        options = parser.parse_args(arguments)
    """

    def __init__(self, verb: str, description: str, examples: str) -> None:
        """examples: "Examples:" and lines that begin with two blanks; shown as they are."""
        super().__init__(
            prog=f"lvdet {verb}",
            description=textwrap.fill(description, 80),
            epilog=examples.removeprefix("\b\n"),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see --help)")
