"""Atoms, domains and backends own what they are: no other folder tests their names or keeps tables of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest
from sources import ROOT, nodes, parsed

from oco.backends import BACKENDS
from oco.compiler.ir.ops import OPS
from oco.dsl.atoms import ATOMS
from oco.dsl.domains import DOMAINS

FOLDERS = ("dsl", "compiler", "backends", "evaluation", "api")
MODULES = [str(p.relative_to(ROOT)) for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*.py"))]
OWN = ("dsl/atoms/", "dsl/domains.py", "compiler/domains/")
OWN_NAMES = frozenset(ATOMS) - frozenset(OPS)
"""Names that atoms do not share with operations of the step IR, of which the backends keep tables."""
OTHER_WORDS = {
    "dsl/checks.py": "names of other languages",
    "compiler/theory/settings.py": "the language of formulas, which has operators but no atoms",
}


def literals(node: ast.AST) -> set[str]:
    """The strings in a literal, or in a collection or pattern of them."""
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def ends_in(node: ast.AST, word: str) -> bool:
    """Whether it is `word`, or an attribute of that name."""
    return getattr(node, "attr", getattr(node, "id", None)) == word


def walk(text: str) -> list[ast.AST]:
    return [*ast.walk(parsed(text))]


def name_tests(walked: Iterable[ast.AST]) -> Iterator[str]:
    """Comparisons, patterns and look-ups by the name of an atom or the kind of a domain."""
    for node in walked:
        match node:
            case ast.Compare(left=left, comparators=others):
                parts = [left, *others]
                atom = any(ends_in(p, "atom") for p in parts) and not any(ends_in(p, "ATOMS") for p in parts)
                kind = any(ends_in(p, "kind") for p in parts) and any(literals(p) & DOMAINS.keys() for p in parts)
                wrong = atom or kind
            case ast.Match(subject=subject, cases=cases):
                named = set().union(*(literals(case.pattern) for case in cases))
                wrong = ends_in(subject, "atom") or (ends_in(subject, "kind") and bool(named & DOMAINS.keys()))
            case ast.MatchClass(kwd_attrs=names, kwd_patterns=patterns):
                wrong = any(n == "atom" and literals(p) for n, p in zip(names, patterns))
            case ast.Subscript(value=table, slice=key):
                wrong = ends_in(key, "atom") and not ends_in(table, "ATOMS")
            case ast.Call(func=ast.Attribute(attr="get" | "startswith" | "endswith"), args=[key, *_]):
                wrong = ends_in(key, "atom") or ends_in(node.func.value, "atom")  # type: ignore[attr-defined]
            case _:
                wrong = False
        if wrong:
            yield f"line {getattr(node, 'lineno', '?')}: {ast.unparse(node)[:100]}"


def name_tables(walked: Iterable[ast.AST]) -> Iterator[str]:
    """Collections with several names of atoms, or of domains."""
    for node in walked:
        match node:
            case ast.Tuple(elts=keys) | ast.List(elts=keys) | ast.Set(elts=keys) | ast.Dict(keys=keys):
                named = {k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str)}
                if len(named & OWN_NAMES) > 1 or len(named & DOMAINS.keys()) > 1:
                    yield f"line {node.lineno}: {sorted(named)[:10]}"


def test_no_name_of_an_atom_or_a_domain_is_tested_outside_its_folder() -> None:
    for path in (m for m in MODULES if not m.startswith(OWN)):
        walked = nodes(ROOT / path)
        found = list(name_tests(walked))
        assert not found, f"{path}, {found}: ask the row of the atom, its form, or the domain"
        tables = [] if path in OTHER_WORDS else list(name_tables(walked))
        assert not tables, f"{path}, {tables}: make it a column of the atom, or a property of the domain"


@pytest.mark.parametrize(
    "text",
    [
        'node.atom == "norm1"',
        'node.atom in ("pos", "neg")',
        "node.atom in KINKED",
        "KINKED[node.atom]",
        "KINKED.get(node.atom)",
        'match node:\n    case Call(atom="abs"):\n        pass',
        'match node.atom:\n    case "abs":\n        pass',
        'domain.kind != "box"',
        'b.domain.kind in ("ball", "ellipsoid")',
        'match domain.kind:\n    case "simplex":\n        pass',
    ],
)
def test_name_tests_are_seen(text: str) -> None:
    assert list(name_tests(walk(text)))


@pytest.mark.parametrize("text", ['("norm1", "huber")', '{"hinge": 1, "pos": 2}', '{"ball", "simplex"}'])
def test_name_tables_are_seen(text: str) -> None:
    assert list(name_tables(walk(text)))


@pytest.mark.parametrize(
    "text", ["ATOMS[node.atom].form", "atom not in ATOMS", 'call("mul", x, y)', 'axis.kind == "own"']
)
def test_other_uses_of_names_are_free(text: str) -> None:
    assert not [*name_tests(walk(text)), *name_tables(walk(text))]


FOLDERS_OF_BACKENDS = ("backends/python/", "backends/c99/", "backends/xla/")
NO_BACKEND = [m for m in MODULES if m != "backends/__init__.py" and not m.startswith(FOLDERS_OF_BACKENDS)]
NAMING = ("backend", "target", "compiled", "find_backend", "registered", "BackendChoice", "title")
"""Functions that take the name of a backend, and variables and attributes that hold one."""


def backend_tests(walked: Iterable[ast.AST]) -> Iterator[str]:
    """Calls and comparisons with the name of a backend."""
    for node in walked:
        match node:
            case ast.Call(func=function, args=args, keywords=keywords):
                given = [*(args if any(ends_in(function, n) for n in NAMING) else ())]
                given += [k.value for k in keywords if k.arg in NAMING]
                wrong = any(isinstance(a, ast.Constant) and a.value in BACKENDS for a in given)
            case ast.Compare(left=left, comparators=others):
                parts = [left, *others]
                wrong = any(ends_in(p, n) for p in parts for n in NAMING) and any(
                    literals(p) & BACKENDS.keys() for p in parts
                )
            case ast.Match(subject=subject, cases=cases):
                named = set().union(*(literals(case.pattern) for case in cases))
                wrong = any(ends_in(subject, n) for n in NAMING) and bool(named & BACKENDS.keys())
            case ast.Subscript(value=table, slice=ast.Constant(value=str(key))):
                wrong = ends_in(table, "BACKENDS") and key in BACKENDS
            case _:
                wrong = False
        if wrong:
            yield f"line {getattr(node, 'lineno', '?')}: {ast.unparse(node)[:100]}"


def test_no_backend_is_named_outside_its_folder() -> None:
    for path in NO_BACKEND:
        found = list(backend_tests(nodes(ROOT / path)))
        assert not found, f"{path}, {found}: ask the row of the registry, or the backend"


@pytest.mark.parametrize(
    "text",
    [
        'backend("c")',
        'plan.compiled("numpy")',
        'plan.run(backend="c")',
        'plan.target == "c"',
        'learner.compiled.backend in ("c", "jax")',
        'match plan.target:\n    case "numpy":\n        pass',
        'BACKENDS["c"]',
    ],
)
def test_names_of_backends_are_seen(text: str) -> None:
    assert list(backend_tests(walk(text)))
