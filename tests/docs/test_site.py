"""The site builds without a warning, and its pages ask no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.blocks import ROOT

_FETCHED = re.compile(
    r"<(?:script|img|iframe|link rel=\"?stylesheet)[^>]*(?:src|href)=\"?(https?:[^\"> ]+)"
)


@pytest.mark.long
def test_the_site_builds_and_is_offline(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="`make docs` installs mkdocs-material")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert _FETCHED.findall(page.read_text(encoding="utf-8")) == [], page
