"""Tests with frameworks that `make test` does not install: `make test-frameworks` runs them."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Elsewhere not even their imports are tried."""
    selected = config.option.markexpr
    return True if not selected or "not frameworks" in selected else None
