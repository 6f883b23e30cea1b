"""Links and anchors of all pages resolve, as GitHub shows them, and the site asks no other host."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import pytest

from docs.blocks import ROOT, pages

_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
#: Pages that the site generates; docs/index.md and the like may link to them.
GENERATED = {
    "docs/reference/cli.md",
    "docs/reference/python.md",
    "docs/reference/outputs.md",
    "docs/tutorials/notebook.md",
}


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    found: set[str] = set()
    for heading in _HEADING.findall(text):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        repeated = re.compile(rf"{re.escape(anchor)}(-\d+)?")
        again = sum(repeated.fullmatch(one) is not None for one in found)
        found.add(f"{anchor}-{again}" if again else anchor)
    return found


@pytest.mark.parametrize("page", [*pages(), "CHANGELOG.md"])
def test_links_resolve(page: str) -> None:
    text = _FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))
    broken = []
    for link in _LINK.findall(text):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        if target in GENERATED:
            continue
        missing = not (ROOT / target).exists()
        if missing or (anchor and anchor not in anchors(ROOT / target)):
            broken.append(link)
    assert broken == []


def test_the_readme_is_one_screen() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_site_fetches_no_fonts() -> None:
    assert "font: false" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    styles = (ROOT / "docs" / "stylesheets" / "site.css").read_text(encoding="utf-8")
    assert "@import" not in styles
    assert "url(" not in styles
