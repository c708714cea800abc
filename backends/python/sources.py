"""Modules of this folder as text of emitted ones."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from importlib.resources import files
from typing import Any


def imports(names: Sequence[str], read: Set[str]) -> list[str]:
    """Imports of these modules, and of the rule, that a text uses which reads these names; without this package."""
    used = read | {"np"}
    nodes = [node for name in names for node in _tree(name).body]
    plain = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names} | {"base64", "math", "zlib"}
    listed: dict[str, set[str]] = {}
    for node in nodes:
        module = node.module if isinstance(node, ast.ImportFrom) else None
        if (
            isinstance(node, ast.ImportFrom)
            and module is not None
            and module.split(".")[0] not in ("oco", "__future__")
        ):
            listed.setdefault(module, set()).update({a.name for a in node.names} & used)
    froms = [f"from {module} import {', '.join(sorted(own))}" for module, own in sorted(listed.items()) if own]
    standard = [*(f"import {m}" for m in sorted(plain & used)), *froms]
    return ["from __future__ import annotations", "", *standard, "", "import numpy as np"]


@cache
def definitions(names: Sequence[str], in_turn: bool = False) -> str:
    """Functions, classes and constants of these modules; `in_turn`: what has the name `Learner` there is of learners in turn."""
    return "\n".join(line for name in names for line in _definitions(name, in_turn)) + "\n"


def _definitions(name: str, in_turn: bool) -> Iterator[str]:
    text, tree = _source(name), _tree(name)
    if in_turn and name != "standalone_file":
        text = _renamed(text, {"Learner": "LearnerInTurn", "LateFeedbackLearner": "Learner"})
        tree = ast.parse(text)
    rows = text.splitlines()
    kept = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef | ast.Assign | ast.If)]
    for node, before in zip(kept, [None, *kept]):
        yield from () if isinstance(node, ast.Assign) and isinstance(before, ast.Assign) else ("", "")
        yield from rows[node.lineno - 1 : node.end_lineno]


@cache
def helper_lines(defined: Callable[..., Any]) -> tuple[str, ...]:
    """Definition of a function or a class, verbatim."""
    return ("", "", *inspect.getsource(defined).splitlines())


@cache
def _tree(name: str) -> ast.Module:
    return ast.parse(_source(name))


@cache
def _source(name: str) -> str:
    return files("oco.backends.python").joinpath(f"{name}.py").read_text(encoding="utf-8")


def _renamed(text: str, names: Mapping[str, str]) -> str:
    """Source with other names in the place of these; strings stay as they are."""
    lines = text.splitlines(keepends=True)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for token in reversed([t for t in tokens if t.type == tokenize.NAME and t.string in names]):
        (row, start), (_, stop) = token.start, token.end
        line = lines[row - 1]
        lines[row - 1] = line[:start] + names[token.string] + line[stop:]
    return "".join(lines)
