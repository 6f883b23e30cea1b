"""What tests of reading in pieces share."""

from __future__ import annotations

import pytest

from files.record_files import small


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read, and written, a few rows at a time."""
    small(monkeypatch)
