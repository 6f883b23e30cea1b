"""The notebook runs, and prints what is stored in it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from docs.blocks import ROOT
from docs.expected_output import same

sys.path.insert(0, str(ROOT / "tools" / "site"))

import notebook


def test_the_notebook_prints_what_it_stores(folder: Path) -> None:
    content = json.loads(notebook.NOTEBOOK.read_text(encoding="utf-8"))
    printed = notebook.run(content)
    for expected, output in zip(notebook.stored(content), printed, strict=True):
        assert same(expected, output), output
    assert (folder / "report.html").stat().st_size > 1_000_000
    assert notebook.NOTEBOOK.stat().st_size < 50_000
