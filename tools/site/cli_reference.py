"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from lvdet.cli.app import VERBS, _app

_HEAD = """\
# Command line

Generated from the commands. `lvdet VERB --help` prints the same.

Exit codes: 0 success, 1 failure, 2 invalid input or usage, 3 a requested check failed
([which](../formats.md#errors)), 130 interrupted.
"""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its name: verbs, and the verbs of verbs after them."""
    top = get_command(_app(VERBS))
    assert hasattr(top, "commands")
    for verb in VERBS:
        command = top.commands[verb]
        yield f"lvdet {verb}", command
        for name, inner in getattr(command, "commands", {}).items():
            yield f"lvdet {verb} {name}", inner


def page() -> str:
    """The page, as Markdown."""
    parts = [_HEAD]
    for name, command in commands():
        parts.append(f"{'###' if name.count(' ') > 1 else '##'} {name}\n")
        parts.extend(_command(name, command))
    return "\n".join(parts)


def _command(name: str, command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{name} {usage}\n```\n"
    if command.help:
        yield _paragraphs(command.help) + "\n"
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    if arguments:
        yield "| argument | |\n|---|---|"
        yield from (_row(one, context) for one in arguments)
        yield ""
    if options and not getattr(command, "commands", None):
        yield "| option | |\n|---|---|"
        yield from (_row(one, context) for one in options if "--help" not in one.opts)
        yield ""
    if command.epilog:
        lines = command.epilog.replace("\b", "").strip().splitlines()
        examples = [line.strip() for line in lines if line.strip() != "Examples:"]
        yield "```sh\n" + "\n".join(examples) + "\n```\n"


def _row(parameter: Any, context: Any) -> str:
    if parameter.param_type_name == "argument":
        name = f"`{parameter.metavar or parameter.name.upper()}`"
        return f"| {name} | {_cell(parameter.help or '')} |"
    flags, text = parameter.get_help_record(context)
    return f"| `{_cell(flags)}` | {_cell(text)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _paragraphs(text: str) -> str:
    parts = re.split(r"\n\s*\n", text.replace("\b", "").strip())
    return "\n\n".join(" ".join(part.split()) for part in parts)
