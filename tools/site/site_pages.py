"""The pages of the site that come from outside `docs`, and their links."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Files of the repository that are pages of the site, by their path there.
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "benchmarks.md",
    "README.md": "index.md",
}
_LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")


def site_path(path: str) -> str | None:
    """Where a file of the repository is on the site; None if it is not."""
    return PAGES.get(path) or (path[len("docs/") :] if path.startswith("docs/") else None)


def links_for_site(text: str, source: str, page: str) -> str:
    """A page's text, its links made for the site.

    source: path of the page in the repository
    page: its path on the site
    """

    def rewritten(link: re.Match[str]) -> str:
        opening, path, anchor, closing = link.groups()
        if ":" in path:
            return link.group()
        target = site_path(posixpath.normpath(posixpath.join(posixpath.dirname(source), path)))
        if target is None:
            return link.group()
        there = posixpath.relpath(target, posixpath.dirname(page) or ".")
        return f"{opening}{there}{anchor or ''}{closing}"

    return _LINK.sub(rewritten, text)
