"""Mutants of a file: one small change of the kind that a slip would make.

Comparisons and their boundaries, arithmetic operators, constants by one, conditions turned round, values returned, and
statements left out. Docstrings, annotations, error messages and what is only imported are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

_COMPARED = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_COMPUTED = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "/",
    ast.Mod: "*",
    ast.Pow: "*",
    ast.MatMult: "+",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.LShift: ">>",
    ast.RShift: "<<",
}


class Mutant(NamedTuple):
    """A change of one place: the characters from ``start`` to ``end`` of the file become ``text``."""

    function: str
    line: int
    start: int
    end: int
    text: str
    kind: str

    def apply(self, source: str) -> str:
        """The file with the change."""
        return source[: self.start] + self.text + source[self.end :]


class _Finder(ast.NodeVisitor):
    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[Mutant] = []
        self._names: list[str] = []
        lines = source.splitlines(keepends=True)
        self._begins = [0]
        for line in lines:
            self._begins.append(self._begins[-1] + len(line))
        self._lines = lines

    def _at(self, line: int, column: int) -> int:
        """Characters before a place; ast counts columns in bytes."""
        return self._begins[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _add(self, node: ast.AST, start: int, end: int, text: str, kind: str) -> None:
        function = ".".join(self._names)
        self.found.append(Mutant(function, node.lineno, start, end, text, kind))

    def _between(self, left: ast.AST, right: ast.AST, text: str, kind: str) -> None:
        """Change the operator, which stands between two operands, brackets aside."""
        start, end = self._span(left)[1], self._span(right)[0]
        written = self.source[start:end]
        operator = written.strip(") \n\t\\").rstrip("( \n\t\\")
        if not operator or "#" in written:
            return
        begin = start + written.index(operator)
        self._add(left, begin, begin + len(operator), text, kind)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._names.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self._names.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._names.append(node.name)
        for part in [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body]:
            self.visit(part)
        self._names.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._remove(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self._remove(node)
            self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if any(isinstance(target, ast.Subscript | ast.Attribute) for target in node.targets):
            self._remove(node)
        if self._names or not all(isinstance(t, ast.Name) and t.id.startswith("__") for t in node.targets):
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._remove(node)
        if type(node.op) in _COMPUTED:
            self._between(node.target, node.value, _COMPUTED[type(node.op)] + "=", "arithmetic")
        self.visit(node.value)

    def _remove(self, node: ast.stmt) -> None:
        self._add(node, *self._span(node), "pass", "statement left out")

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            self._between(left, right, _COMPARED[type(operator)], "comparison")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        of_text = any(isinstance(side, ast.JoinedStr) for side in (node.left, node.right)) or any(
            isinstance(side, ast.Constant) and isinstance(side.value, str) for side in (node.left, node.right)
        )
        if type(node.op) in _COMPUTED and not of_text:
            self._between(node.left, node.right, _COMPUTED[type(node.op)], "arithmetic")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        other = "or" if isinstance(node.op, ast.And) else "and"
        self._between(node.values[0], node.values[1], other, "condition")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start, end = self._span(node)
        operand = self.source[self._span(node.operand)[0] : end]
        if isinstance(node.op, ast.Not):
            self._add(node, start, end, f"bool({operand})", "condition")
        elif isinstance(node.op, ast.USub):
            self._add(node, start, end, operand, "arithmetic")
        self.generic_visit(node)

    def _turned(self, test: ast.expr) -> None:
        if not isinstance(test, ast.Compare | ast.UnaryOp | ast.BoolOp):
            start, end = self._span(test)
            self._add(test, start, end, f"(not ({self.source[start:end]}))", "condition")

    def visit_If(self, node: ast.If) -> None:
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self._turned(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._turned(node.test)
        self.generic_visit(node)

    visit_While = visit_If

    def visit_Constant(self, node: ast.Constant) -> None:
        start, end = self._span(node)
        if isinstance(node.value, bool):
            self._add(node, start, end, str(not node.value), "constant")
        elif isinstance(node.value, int | float):
            self._add(node, start, end, f"({self.source[start:end]} + 1)", "constant")
            self._add(node, start, end, f"({self.source[start:end]} - 1)", "constant")

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """What a sentence says is for the tests of sentences."""

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        start, end = self._span(node.value)
        if not isinstance(node.value, ast.Constant):
            self._add(node, start, end, "None", "value returned")
        self.visit(node.value)


def mutants(source: str) -> Iterator[Mutant]:
    """All mutants of a file, in the order of the file; a few of them cannot be read (``Mutant.apply``)."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    yield from sorted(finder.found, key=lambda mutant: (mutant.start, mutant.end, mutant.text))
