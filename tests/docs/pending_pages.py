"""Pages whose blocks are not run yet, and why. It should be empty."""

from __future__ import annotations

PENDING: dict[str, str] = {}
