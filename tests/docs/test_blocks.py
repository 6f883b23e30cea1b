"""Every console and Python block of every page runs, and prints what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.blocks import blocks, pages
from docs.pending_pages import PENDING
from docs.run_page import commands, differences

RUNNING = [page for page in pages() if page not in PENDING and any(b.runs for b in blocks(page))]
LONG = [page for page in RUNNING if any(block.said("long") for block in blocks(page))]


@pytest.mark.parametrize("page", RUNNING)
def test_blocks_print_what_the_page_says(page: str, folder: Path) -> None:
    assert list(differences(page, folder)) == []


@pytest.mark.long
@pytest.mark.parametrize("page", LONG)
def test_long_blocks_print_what_the_page_says(page: str, folder: Path) -> None:
    assert list(differences(page, folder, long=True)) == []


@pytest.mark.parametrize("page", [page for page in pages() if page not in PENDING])
def test_comments_have_reasons_and_blocks_have_commands(page: str) -> None:
    for block in blocks(page):
        for word in ("not run", "shape", "first", "setup"):
            assert all(block.said(word)), f"{page}:{block.line}: <!-- {word} --> without a reason"
        if block.language == "console":
            assert list(commands(block.text)), f"{page}:{block.line}: no line begins with $"
        else:
            assert not block.text.startswith("$ "), f"{page}:{block.line}: mark it console"


def test_pending_pages_exist() -> None:
    assert set(PENDING) <= set(pages())
