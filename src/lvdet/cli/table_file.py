"""Tables as Markdown or LaTeX files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lvdet.rendering.table_text import Layout


def write_layouts(layouts: Sequence[Layout], path: Path) -> None:
    """Writes LaTeX where the file ends in .tex, else Markdown."""
    from lvdet.rendering.table_text import latex, markdown

    write_text((latex if path.suffix.lower() == ".tex" else markdown)(layouts), path)


def write_text(text: str, path: Path) -> None:
    """Writes text, whole or not at all."""
    from lvdet.files.writing import write_text as write

    write(text, path)
