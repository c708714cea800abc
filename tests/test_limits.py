"""Limits of work and size: each stands in the file of its owner, with the reason beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from sources import parsed
from test_architecture import MODULES, ROOT

NAMES = re.compile(
    r"_?((MOST|LEAST|LARGEST|LONGEST|DEEPEST|FEWEST|MAX|MANY|STEPS|ITERATIONS|TRIES|SECONDS|DEPTH|PASSES)(_[A-Z_]+)?"
    r"|[A-Z_]+_(LIMIT|STEPS|SECONDS|ROUNDS|ENTRIES|TRIES|PASSES))"
)
"""Names of constants that say how much is done, taken or shown."""


def is_numeric(value: ast.expr) -> bool:
    """True for a number, or an expression or tuple of numbers."""
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop, ast.Name, ast.expr_context)
    parts = list(ast.walk(value))
    numbers = [n for n in parts if isinstance(n, ast.Constant) and isinstance(n.value, int | float)]
    return bool(numbers) and all(isinstance(n, kinds) for n in parts)


def limits(text: str) -> Iterator[tuple[str, bool]]:
    """Names of limits in a module, and whether a comment or a docstring stands beside each."""
    lines, body = text.splitlines(), parsed(text).body
    for k, node in enumerate(body):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or not is_numeric(node.value):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        after = body[k + 1] if k + 1 < len(body) else None
        described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        described |= "#" in lines[(node.end_lineno or 1) - 1] or lines[node.lineno - 2].startswith("#")
        for name in (n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)):
            if NAMES.fullmatch(name):
                yield name, described


@pytest.mark.parametrize("folder", ["dsl", "compiler", "backends", "evaluation", "api"])
def test_every_limit_has_a_reason(folder: str) -> None:
    texts = {path.relative_to(ROOT): path.read_text() for path in MODULES if path.relative_to(ROOT).parts[0] == folder}
    wrong = [f"{path}: {name}" for path, text in texts.items() for name, described in limits(text) if not described]
    assert not wrong, "say beside each of these what it protects"


def test_limits_are_seen() -> None:
    text = '''
MOST_STEPS = 3
A = 1
# So many.
MAX_ROWS: int = 2**3
LONGEST, SHORTEST = 1, 2  # both
TRIES = 4
"""Of a file."""
LARGEST = Extreme(1)
FIRST_ROUNDS = (1, 2)
'''
    seen = [("MOST_STEPS", False), ("MAX_ROWS", True), ("LONGEST", True), ("TRIES", True), ("FIRST_ROUNDS", False)]
    assert list(limits(text)) == seen
