"""The base class of all results."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from lvdet.errors import InputError
from lvdet.files.writing import is_special, require_ending, write_json, write_text
from lvdet.rendering.table_text import Layout, html, latex, markdown, plain, text


class Result(ABC):
    """Values to compute with, tables to read, and the inputs they were computed from.

    inputs:   the files, their sizes and the options
    warnings: what a reader of the numbers should know, one sentence each
    """

    inputs: dict[str, Any]
    warnings: list[str]
    #: The formats that `save` writes, by ending.
    ENDINGS: ClassVar[tuple[str, ...]] = (".json", ".md", ".tex")

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values, None where undefined."""

    @abstractmethod
    def title(self) -> str:
        """What was computed, on one line."""

    @abstractmethod
    def layouts(self) -> list[Layout]:
        """The tables for readers."""

    def notes(self) -> list[str]:
        """Paragraphs below the tables."""
        return []

    def to_markdown(self) -> str:
        """The tables and notes as Markdown."""
        return "\n".join([markdown(self.layouts()), *self.notes()])

    def to_latex(self) -> str:
        """The tables for a paper, in the style of booktabs."""
        return latex(self.layouts())

    def to_csv(self) -> str:
        """One line per row, for results that have rows."""
        raise InputError(f"{type(self).__name__} cannot be written as CSV")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the result atomically, in the format of the extension."""
        ending = ".json" if is_special(path) else require_ending(path, self.ENDINGS)
        if ending == ".json":
            write_json(self.to_dict(), path)
        else:
            written = {".md": self.to_markdown, ".tex": self.to_latex, ".csv": self.to_csv}
            write_text(written[ending](), path)

    def __str__(self) -> str:
        return "\n\n".join([self.title(), text(self.layouts()), *self.notes()])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({plain(self.title())})"

    def _repr_html_(self) -> str:
        return html(self.title(), self.layouts(), self.notes())
