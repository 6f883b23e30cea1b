"""Names a framework that is not installed in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(adapter: str, package: str, install: str) -> Iterator[None]:
    """Imports inside of this block need `package`; without it, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise ModuleNotFoundError(
            f"lvdet.integrations.{adapter} needs {package}: {install}", name=package
        ) from None
