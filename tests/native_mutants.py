"""Small changes of a C++ file, each of which some test should notice."""

from __future__ import annotations

import re
from collections.abc import Iterator

from python_mutants import Mutant

#: Binary operators have spaces around them, which clang-format sees to; brackets of templates and
#: signs of pointers do not.
SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&",
    "+": "-", "-": "+", "*": "/", "/": "*", "%": "*", "&": "|", "|": "&", "<<": ">>", ">>": "<<",
    "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|=",
}  # fmt: skip
WORDS = {
    "true": "false", "false": "true", "continue;": "break;", "break;": "continue;",
    "std::min": "std::max", "std::max": "std::min",
}  # fmt: skip

TOKEN = re.compile(
    r"""(?P<operator>(?<=\s)(?:[<>=!+\-|&]=|&&|\|\||<<|>>|[<>+\-*/%&|])(?=\s))
      | (?P<count>\+\+|--)
      | (?P<word>\b(?:true|false|std::min|std::max)\b|\b(?:continue|break);)
      | (?P<number>(?<![\w.])\d+(?![\w.]))
      | (?P<negation>!(?=[\w(]))""",
    re.VERBOSE,
)
#: A whole statement that is an assignment or a call; not a declaration, which has a type before.
STATEMENT = re.compile(r"^\s*([\w.\->\[\]:]+(?: [+\-*/|&]?= [^;]+|\([^;]*\));)$")


def mutants(path: str, text: str) -> Iterator[Mutant]:
    """Every change of an operator, number or word, and every statement left out."""
    begin = 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        code = line.split("//")[0]
        if not line.startswith("#") and "static_assert" not in line:
            for start, end, after in changes(code):
                changed = text[: begin + start] + after + text[begin + end :]
                whole = code[:start] + after + code[end:]
                yield Mutant(path, number, code, whole, changed)
        begin += len(line)


def changes(code: str) -> Iterator[tuple[int, int, str]]:
    """Where something may be put, and what."""
    for token in TOKEN.finditer(code):
        found = token.group()
        if token["operator"] and found in SWAPS:
            yield (*token.span(), SWAPS[found])
        elif token["count"]:
            yield (*token.span(), "--" if found == "++" else "++")
        elif token["word"]:
            yield (*token.span(), WORDS[found])
        elif token["number"]:
            yield (*token.span(), str(int(found) + 1))
        elif token["negation"]:
            yield (*token.span(), "")
    if statement := STATEMENT.match(code.rstrip()):
        yield (*statement.span(1), ";")
