"""Names and docstrings of the code: no words with another meaning in the field, a docstring for every public function."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sources import ROOT, nodes
from test_architecture import MODULES, NAMES, badly_begun, layer_of

from oco.compiler.ir.ops import OPS

BANNED = {
    "found": "the name of what is found",
    "said": "message, note",
    "told": "given",
    "mend": "fix, repair",
    "mended": "fixed, repaired",
    "mending": "repair",
    "settle": "resolve, complete",
    "settled": "resolved, converged",
    "unsettled": "open",
    "law": "distribution",
    "whole number": "integer",
    "whole numbers": "integers",
    "picture": "plot",
    "pictures": "plots",
    "reckoning": "monitor",
    "hearing": "using",
    "bend": "curvature, second derivative, smoothness",
    "bends": "curvatures, nonlinear terms",
    "twin": "form in CVXPY",
    "twins": "forms in CVXPY",
    "dearer": "costlier",
    "hindrance": "reason",
    "task": "spec, work",
    "worth": "value, loss and constraints",
    "excess": "violation, error",
    "glance": "record, check",
    "bent": "nonlinear, curved",
}
"""Words that no identifier of the product contains, and the words of the field."""
PROTOCOLS = ("init", "decide", "update", "begin", "step")
"""Methods that `Rule` and `Step` describe, of which each algorithm has its own."""
ROWS = tuple(f"oco.compiler.ir.{name}_rules" for name in ("type", "lane", "mark", "bound"))
"""Modules with a function for an operation of the step IR, which its row of `OPS` describes; so are methods of tracers."""
SHARED = {
    "Call": "node of a text, the expression that it means, and a request to a learner of a service",
    "Domain": "public face of a set, and the compiler's",
    "Fact": "public face of a fact, and the compiler's",
    "Facts": "public face of facts, and the compiler's",
    "Feedback": "kind of information in a model, its arrays in a learner, and its numbers in an emitted module",
    "Learner": "learner here, and in an emitted module",
    "Level": "precedence of operators in C, and in Python",
    "Plan": "public face of a plan, and the compiler's",
    "Slice": "node of a text, and of the expression that it means",
    "Stream": "statement of a model, and its row in an emitted module",
    "Text": "expression of C, and of Python",
}
"""Names of public classes that two modules define, with the reason why a reader is not misled."""

PARALLEL = {
    "backends": ("oco.backends.c99", "oco.backends.python", "oco.backends.xla", "oco.backends"),
    "api": ("oco", "oco.cli"),
}
"""Packages of a layer whose modules of one name do one thing: backends, each for its language, and commands, each for what it calls."""


def stored_names(walked: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Names that nodes give: of functions, classes, parameters, variables and attributes, with their lines."""
    for node in walked:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


@cache
def is_banned(name: str) -> bool:
    words = [w.lower() for w in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]
    return not BANNED.keys().isdisjoint([*words, *map(" ".join, pairwise(words))])


ANY_BANNED = re.compile("|".join(word.replace(" ", r"[\d_]*") for word in BANNED), re.IGNORECASE)
"""Letters without which a text has none of these names, so that its tree is not walked."""


def banned(walked: Iterable[ast.AST]) -> list[tuple[int, str]]:
    return [(line, name) for line, name in stored_names(walked) if is_banned(name)]


def test_names_are_words_of_the_field() -> None:
    suspects = [p for p in MODULES if ANY_BANNED.search(p.read_text())]
    wrong = {str(p.relative_to(ROOT)): names for p in suspects if (names := banned(nodes(p)))}
    wrong |= {str(p.relative_to(ROOT)): p.stem for p in MODULES if is_banned(p.stem)}
    assert not wrong, f"use these instead: {BANNED}"


@pytest.mark.parametrize(
    "text, name",
    [
        ("found = 1", "found"),
        ("self._found = 1", "_found"),
        ("def settle_all(): pass", "settle_all"),
        ("class LawOfStreams: pass", "LawOfStreams"),
        ("def f(best_picture): pass", "best_picture"),
        ("for said in x: pass", "said"),
        ("MOST_WHOLE_NUMBERS = WHOLE = NUMBERS = 1", "MOST_WHOLE_NUMBERS"),
        ("f(x := 1, law=2); told = 3", "told"),
    ],
)
def test_banned_names_are_seen(text: str, name: str) -> None:
    assert [n for _, n in banned(ast.walk(ast.parse(text)))] == [name]


def test_names_that_contain_them_are_free() -> None:
    text = "foundation = lawn = amend = unlawful = 1\nclass Outlaw: pass\nprint(said.found)"
    assert not banned(ast.walk(ast.parse(text)))


def texts_of(folder: str) -> list[Path]:
    """Python files of a folder; of tests those that are no tests themselves."""
    return [p for p in sorted((ROOT / folder).rglob("*.py")) if not (folder == "tests" and p.name.startswith("test_"))]


@pytest.mark.parametrize("folder", ["benchmarks", "tests", "website"])
def test_docstrings_beside_the_product_begin_with_a_noun_or_a_verb(folder: str) -> None:
    assert not {str(p.relative_to(ROOT)): lines for p in texts_of(folder) if (lines := badly_begun(p.read_text()))}


def functions_of(owner: Any) -> Iterator[tuple[str, Any]]:
    """Public functions, methods and properties that a module or a class defines, by name."""
    for name, value in vars(owner).items():
        match value:
            case staticmethod() | classmethod():
                inner = value.__func__
            case property():
                inner = value.fget
            case cached_property():
                inner = value.func
            case _:
                inner = value
        if not name.startswith("_") and inspect.isfunction(inner) and inner.__name__ != "<lambda>":
            yield name, inner


def is_described(cls: type, name: str) -> bool:
    """True where the class, or one that it inherits from, has a docstring for the method or declares an attribute."""
    described = any(inner.__doc__ for base in cls.__mro__ for n, inner in functions_of(base) if n == name)
    return described or any(name in vars(base).get("__annotations__", {}) for base in cls.__mro__)


ABSENT = {name for name in NAMES if name.startswith("oco.backends.xla.") and importlib.util.find_spec("jax") is None}
"""Modules that cannot be imported here; `make jax` installs their package."""


def undocumented(module: ModuleType) -> Iterator[str]:
    """Public classes and functions of a module without a docstring; of methods, those without an inherited one."""
    for name, inner in functions_of(module):
        if inner.__module__ == module.__name__ and not inner.__doc__:
            yield name
    for name, cls in vars(module).items():
        if inspect.isclass(cls) and cls.__module__ == module.__name__ and not name.startswith("_"):
            if not cls.__doc__ or cls.__doc__.startswith(f"{name}("):  # that of a dataclass is its signature
                yield name
            yield from (f"{name}.{n}" for n, _ in functions_of(cls) if not is_described(cls, n))


def is_row(module: str, name: str) -> bool:
    """True for functions and methods that a row of the operations or a protocol describes."""
    last = name.split(".")[-1]
    operation = re.sub(r"_(lanes|marks|entries)$", "", last).rstrip("_")
    return last in PROTOCOLS or (module.startswith("oco.compiler.ir.") and (operation in OPS or module in ROWS))


def test_public_functions_have_docstrings() -> None:
    functions = ((name, f) for name in NAMES if name not in ABSENT for f in undocumented(importlib.import_module(name)))
    assert not [f"{name}.{f}" for name, f in functions if not is_row(name, f)]


def test_a_class_has_a_name_of_its_own() -> None:
    homes: dict[str, set[str]] = defaultdict(set)
    for module in NAMES.keys() - ABSENT:
        for name, cls in vars(importlib.import_module(module)).items():
            if inspect.isclass(cls) and cls.__module__ == module and not name.startswith("_"):
                homes[cls.__name__].add(module)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1}.keys() == SHARED.keys()


def test_a_module_has_a_name_of_its_own_in_its_layer() -> None:
    homes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for module in NAMES:
        package, _, last = module.rpartition(".")
        layer = layer_of(module).split(".")[0]
        if last not in ("base", "oco") and package not in PARALLEL.get(layer, ()):
            homes[layer, last].add(module)
    assert not [sorted(modules) for modules in homes.values() if len(modules) > 1]


def test_functions_without_docstrings_are_seen() -> None:
    text = """
from functools import cached_property
class A:
    def seen(self): "It."
    def other(self): "It."
class B(A):
    "A class."
    def seen(self): pass
    @property
    def missing(self): pass
    def _private(self): pass
def f(): pass
def _g(): pass
def h(): "It."
"""
    module = ModuleType("made")
    exec(compile(text, "made", "exec"), vars(module))
    assert sorted(undocumented(module)) == ["A", "B.missing", "f"]


def test_every_operation_is_described() -> None:
    assert not [name for name, row in OPS.items() if not row.doc]
