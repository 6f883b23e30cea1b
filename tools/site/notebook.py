"""Runs a notebook's cells without Jupyter, and stores what they print.

    python tools/site/notebook.py [FOLDER]

runs docs/tutorial.ipynb in FOLDER, which holds `demo` (by default the current folder), and writes
the outputs into the notebook.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).resolve().parents[2] / "docs" / "tutorial.ipynb"


def run(notebook: dict[str, Any]) -> list[str]:
    """What each code cell prints, with the representation of a last expression, in order."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [
        run_cell("".join(cell["source"]), names)
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def run_cell(source: str, names: dict[str, Any]) -> str:
    """Runs one cell in a namespace; what it prints."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
            if value is not None:
                print(repr(value))
    return printed.getvalue()


def stored(notebook: dict[str, Any]) -> list[str]:
    """The outputs that the notebook holds, one text per code cell."""
    return [
        "".join(line for output in cell["outputs"] for line in output["text"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def store(notebook: dict[str, Any], outputs: list[str]) -> None:
    """Puts outputs into the notebook."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, (cell, text) in enumerate(zip(cells, outputs, strict=True), 1):
        stream = {
            "name": "stdout",
            "output_type": "stream",
            "text": text.splitlines(keepends=True),
        }
        cell["outputs"] = [stream] if text else []
        cell["execution_count"] = number


def main(arguments: list[str]) -> None:
    """Runs the notebook and writes it with its outputs."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    os.chdir(arguments[0] if arguments else ".")
    store(notebook, run(notebook))
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
