"""Syntax trees of the product's files, each parsed once for all tests that look at it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

parsed = cache(ast.parse)
"""Syntax tree of a text."""

ROOT = Path(__file__).parent.parent


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file's tree, itself first: to walk it again would take a second for all files."""
    return tuple(ast.walk(parsed(path.read_text())))


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Statements directly in a node, and handlers and cases, which have statements in them."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        inner = getattr(tree, field, ())
        yield from inner if isinstance(inner, list) else ()
