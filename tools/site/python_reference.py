"""The reference of the Python interface, from signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import lvdet

_HEAD = """\
# Python

Generated from the docstrings of `lvdet.__all__`. Wherever annotations or detections are expected,
tables and paths of files are both accepted.
"""
_PARAMETERS = re.compile(r"^\*{0,2}\w+(?:, \w+)*: ")
_LINE = 92


def page() -> str:
    """The page, as Markdown."""
    functions, classes, errors = _kinds()
    parts = [_HEAD]
    for title, names in (("Functions", functions), ("Classes", classes), ("Errors", errors)):
        parts.append(f"## {title}\n")
        parts.append(", ".join(f"[`{name}`](#lvdet{name.lower()})" for name in names) + "\n")
        for name in names:
            parts.extend(_entry(name, getattr(lvdet, name)))
    parts.append(
        f"## lvdet.\\_\\_version\\_\\_\n\nThe installed version, such as `{lvdet.__version__}`.\n"
    )
    return "\n".join(parts)


def _kinds() -> tuple[list[str], list[str], list[str]]:
    functions: list[str] = []
    classes: list[str] = []
    errors: list[str] = []
    for name in lvdet.__all__:
        value = getattr(lvdet, name)
        if inspect.isclass(value):
            (errors if issubclass(value, Exception) else classes).append(name)
        elif callable(value):
            functions.append(name)
    return functions, classes, errors


def _entry(name: str, value: Any) -> Iterator[str]:
    yield f"### lvdet.{name}\n"
    if not (inspect.isclass(value) and issubclass(value, Exception)):
        yield f"```python\n{_signature(f'lvdet.{name}', value)}\n```\n"
    yield _text(inspect.getdoc(value) or "")
    if not inspect.isclass(value):
        return
    for method, function in _members(value):
        if isinstance(function, property):
            yield f"**`.{method}`** {_text(inspect.getdoc(function) or '')}"
        else:
            yield f"```python\n{_signature(f'.{method}', function)}\n```\n"
            yield _text(inspect.getdoc(function) or "")


def _members(cls: type[Any]) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that lvdet itself defines, with a docstring."""
    for name in sorted({name for base in cls.__mro__ for name in vars(base)}):
        if name.startswith("_"):
            continue
        home = next(base for base in cls.__mro__ if name in vars(base))
        value = inspect.getattr_static(cls, name)
        bound = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        described = isinstance(bound, property) or inspect.isfunction(bound)
        if home.__module__.startswith("lvdet") and described and inspect.getdoc(bound):
            yield name, bound


def _signature(name: str, value: Callable[..., Any]) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    parts: list[str] = []
    keyword_only = False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            keyword_only = True
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        parts.append(_parameter(parameter))
    returned = signature.return_annotation
    plain = inspect.isclass(value) or returned is signature.empty
    arrow = "" if plain else f" -> {_annotation(returned)}"
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= _LINE:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){arrow}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    text = stars + parameter.name
    annotated = parameter.annotation is not parameter.empty
    if annotated:
        text += f": {_annotation(parameter.annotation)}"
    if parameter.default is not parameter.empty:
        default = repr(parameter.default)
        default = "..." if default.startswith("<") else default
        text += f" = {default}" if annotated else f"={default}"
    return text


def _annotation(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def _text(docstring: str) -> str:
    """A docstring as Markdown: `name: what it is` becomes a list."""
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", docstring.strip()):
        lines = paragraph.splitlines()
        if all(line.startswith("    ") for line in lines):
            code = "\n".join(line[4:] for line in lines)
            parts.append(f"```python\n{code}\n```")
            continue
        plain: list[str] = []
        items: list[str] = []
        for line in lines:
            if _PARAMETERS.match(line):
                names, _, text = line.partition(": ")
                items.append(f"- **`{names}`**: {text.strip()}")
            elif items and line.startswith(" "):
                items[-1] += " " + line.strip()
            elif items:
                items.append(f"\n{line.strip()}")
            else:
                plain.append(line.strip())
        if plain:
            parts.append(" ".join(plain))
        if items:
            parts.append("\n".join(items))
    return "\n\n".join(parts) + "\n"
