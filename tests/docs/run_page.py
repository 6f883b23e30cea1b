"""Runs the blocks of a page in a folder, one after another."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.blocks import Block, blocks
from docs.expected_output import literal, same, same_value


def differences(page: str, folder: Path, *, long: bool = False) -> Iterator[str]:
    """Where what is printed differs from the page. The current folder has to be `folder`."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = blocks(page)
    for place, block in enumerate(found):
        if not block.runs or (block.said("long") and not long):
            continue
        where = f"{page}:{block.line}"
        for command in block.said("first"):
            code, printed = _shell(command, folder)
            assert code == 0, f"{where}: {command}\n{printed}"
        for statements in block.said("setup"):
            exec(compile(statements, where, "exec"), names)
        if block.language == "console":
            yield from _console(block, folder, where)
        else:
            after = found[place + 1] if place + 1 < len(found) else None
            output = after if after and after.follows and after.language in ("", "text") else None
            yield from _python(block, output, names, where)


def _console(block: Block, folder: Path, where: str) -> Iterator[str]:
    for command, expected in commands(block.text):
        _, printed = _shell(command, folder)
        if not same(expected, printed, shape=bool(block.said("shape"))):
            yield f"{where}: $ {command}\nthe page says\n{expected}\nit printed\n{printed}"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    command, expected = "", []
    going_on = False
    for line in text.splitlines():
        if going_on:
            command += "\n" + line
        elif line.startswith("$ "):
            if command:
                yield command, "\n".join(expected)
            command, expected = line[2:], []
        else:
            expected.append(line)
            continue
        going_on = command.endswith("\\")
    if command:
        yield command, "\n".join(expected)


def _shell(command: str, folder: Path) -> tuple[int, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def _python(block: Block, output: Block | None, names: dict[str, Any], where: str) -> Iterator[str]:
    lines = block.text.splitlines()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for node in ast.parse(block.text).body:
            code = ast.Module([node], []) if not isinstance(node, ast.Expr) else node.value
            if isinstance(code, ast.Module):
                exec(compile(code, where, "exec"), names)
                continue
            value = eval(compile(ast.Expression(code), where, "eval"), names)
            _, sign, comment = lines[(node.end_lineno or 1) - 1][
                node.end_col_offset or 0 :
            ].partition("#")
            there, expected = literal(comment) if sign else (False, None)
            if there and not same_value(expected, value):
                yield f"{where}: {ast.unparse(node)} is {value!r}, the page says {comment.strip()}"
    shape = bool(block.said("shape"))
    if output is not None and not same(output.text, printed.getvalue(), shape=shape):
        yield f"{where}: the page says\n{output.text}\nit printed\n{printed.getvalue()}"
