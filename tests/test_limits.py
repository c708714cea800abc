"""Limits of work and size: each stands in the file of its owner, with the reason beside it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from sources import parsed
from test_architecture import MODULES, ROOT

NAMES = re.compile(
    r"_?((MOST|LEAST|LARGEST|LONGEST|DEEPEST|FEWEST|MAX|MANY|USUAL|STEPS|ITERATIONS|TRIES|SECONDS|DEPTH|PASSES)(_[A-Z_]+)?"
    r"|[A-Z_]+_(LIMIT|STEPS|SECONDS|ROUNDS|ENTRIES|TRIES|PASSES))"
)
"""Names of constants that say how much is done, taken or shown."""


FOLDERS = ("dsl", "compiler", "backends", "evaluation", "api")
SIZES = re.compile(r"_?((MOST|LARGEST|LONGEST|DEEPEST|MAX|MANY)(_[A-Z_]+)?|[A-Z_]+_(LIMIT|ENTRIES))")
"""Names of constants that something may be larger than."""
READER = "oco.dsl.limits"
REFUSALS = ("fail", "OcoError", "Diagnostic", "Objection")
NO_REFUSAL = {
    "dsl/diagnostics.py raise_if_any": "mistakes beyond the limit are left out of a message",
    "dsl/text/parser.py parse_file": "as in `raise_if_any`",
    "dsl/text/headings.py _without_label": "words of a message",
    "compiler/domains/cut_sets.py _inner": "which of two ways to an inner point",
    "compiler/prover/ranges/cells.py _within": "ranges take the place of cells",
    "compiler/prover/ranges/cells.py _product": "ranges take the place of cells",
    "backends/learner.py _repaired": "rounds that a warning names",
    "evaluation/certified.py certificates": "which of two ways to the same certificates",
    "api/overflow_check.py check_overflow": "larger models are not rehearsed",
    "api/serving/commits.py submit": "calls that come faster than the disk takes them are to come again",
    "api/serving/piping.py _batch": "lines of one transaction",
}
"""Functions that compare with a size of their own and raise, or object, for another reason or without refusing a model."""


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


@pytest.mark.parametrize("folder", FOLDERS)
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


def is_refusal(node: ast.AST) -> bool:
    """True where an error is raised or an algorithm is objected to; not for objections about time, which fall to whoever names it."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in REFUSALS:
        return not any(k.arg == "slow" for k in node.keywords)
    return isinstance(node, ast.Raise) and node.exc is not None


def refusals(text: str) -> Iterator[str]:
    """Functions that compare with a size from elsewhere than the reader's limits, and refuse something."""
    if not any(map(SIZES.fullmatch, re.findall(r"\w+", text))):
        return
    tree = parsed(text)
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module == READER]
    known = {a.asname or a.name for n in imports for a in n.names}
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        inner = list(ast.walk(function))
        used = {m.id for n in inner if isinstance(n, ast.Compare) for m in ast.walk(n) if isinstance(m, ast.Name)}
        if any(map(SIZES.fullmatch, used - known)) and any(map(is_refusal, inner)):
            yield function.name


def test_sizes_that_refuse_are_those_of_the_reader() -> None:
    """Whatever a person may write is refused for its size by `dsl/limits.py` alone."""
    paths = {p: str(p.relative_to(ROOT)) for p in MODULES if p.relative_to(ROOT).parts[0] in FOLDERS}
    seen = {f"{name} {own}" for p, name in paths.items() if name != "dsl/limits.py" for own in refusals(p.read_text())}
    assert not seen - NO_REFUSAL.keys(), (
        "take the size from dsl/limits.py, with the memory or the stack that it protects"
    )
    assert not NO_REFUSAL.keys() - seen, "these refuse nothing any more"


def test_refusals_are_seen() -> None:
    text = """
from oco.dsl.limits import MOST_NUMBERS
def known(n):
    if n > MOST_NUMBERS: raise fail("OCO805", "too many")
def own(n):
    if n > MOST_ROWS: raise fail("OCO805", "too many")
def turned(n):
    if n <= MOST_ROWS: return None
    return Objection("too many")
def slow(n):
    return Objection("it takes long", slow=True) if n > MOST_ROWS else None
def other(n):
    return n > MOST_ROWS
"""
    assert list(refusals(text)) == ["own", "turned"]
