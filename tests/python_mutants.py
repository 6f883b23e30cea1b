"""Small changes of a Python file, each of which some test should notice."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.LShift: ast.RShift,
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
Statement = ast.Assign | ast.AugAssign | ast.Expr | ast.Raise


@dataclass(frozen=True)
class Mutant:
    """A change of one place of a file."""

    path: str
    line: int
    before: str
    after: str
    text: str

    @property
    def changed(self) -> str:
        """The line with the change, or what is left out."""
        if self.after == "pass":
            return f"pass  # {shortened(self.before)}"
        return self.text.splitlines()[self.line - 1].strip()

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {shortened(self.before)} -> {shortened(self.after)}"


def shortened(code: str) -> str:
    return " ".join(code.split())[:90] or "(nothing)"


def mutants(path: str, text: str) -> Iterator[Mutant]:
    """Every change of every expression and statement. Types, docstrings and the words of messages
    stay: no number depends on them."""
    source = text.encode()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))

    for node in reached(ast.parse(text)):
        for after in changes(node):
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            changed = source[:begin] + after.encode() + source[end:]
            before = source[begin:end].decode()
            yield Mutant(path, node.lineno, before, after, changed.decode())


def reached(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run."""
    for name, value in ast.iter_fields(node):
        # A decorator or annotation is not what a test of a number runs.
        if name in ("annotation", "returns", "decorator_list", "bases", "type_comment"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.AnnAssign) and "TypeAlias" in ast.unparse(child.annotation):
                continue
            yield child
            yield from reached(child)


def changes(node: ast.AST) -> Iterator[str]:
    """What may stand in the place of a node."""
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            if type(operator) in SWAPS:
                other = copy.deepcopy(node)
                other.ops[at] = SWAPS[type(operator)]()  # type: ignore[call-overload]
                yield f"({ast.unparse(other)})"
    elif isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in SWAPS:
        other = copy.deepcopy(node)
        other.op = SWAPS[type(node.op)]()
        yield f"({ast.unparse(other)})"
    elif isinstance(node, ast.UnaryOp):
        yield f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.IfExp):
        other = copy.deepcopy(node)
        other.body, other.orelse = node.orelse, node.body
        yield f"({ast.unparse(other)})"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield repr(node.value + 1)
    elif isinstance(node, ast.Name) and node.id in NAMES:
        yield NAMES[node.id]
    elif isinstance(node, ast.Continue):
        yield "break"
    elif isinstance(node, ast.Return) and node.value is not None:
        yield "return None"
    elif isinstance(node, Statement) and not is_docstring(node):
        yield "pass"


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
