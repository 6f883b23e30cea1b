"""A short description of a table and its size: one line at a prompt, a small table in a
notebook."""

from __future__ import annotations

from collections.abc import Mapping


def describe_line(table: object, *facts: str) -> str:
    """`Name(fact, fact)`, without empty facts or line breaks."""
    shown = ", ".join(" ".join(fact.split()) for fact in facts if fact)
    return f"{type(table).__name__}({shown})"


def describe_html(table: object, facts: Mapping[str, object]) -> str:
    """A table of facts under the name of the class; all text is escaped."""
    from html import escape

    lines = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(_shown(value))}</td></tr>"
        for name, value in facts.items()
    )
    return f"<table><caption>{type(table).__name__}</caption><tbody>{lines}</tbody></table>"


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """ "1 image", "2 images"."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
