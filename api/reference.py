"""Text of `docs/api.md`: the public names of `oco`, and the methods of the objects that they give."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import oco
from oco.backends.feedback import Feedback
from oco.backends.fleet import Fleet
from oco.backends.learner import Learner
from oco.backends.portable import PUBLIC as OF_LEARNER
from oco.dsl.atoms import ATOMS
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.evaluation.report.trace import Trace
from oco.facts import Facts
from oco.plan import PUBLIC as OF_PLAN
from oco.plan import Plan

TITLE = """# The Python interface

Written by `make stubs` from the docstrings. [The language](../grammar/language.md) has a page of its own.
"""
OBJECTS = (Plan, Facts, Learner, Feedback, Fleet, Trace)
"""Classes of the objects that functions of `oco` give."""
LISTED: Mapping[type, Collection[str]] = {Plan: OF_PLAN, Learner: OF_LEARNER}
"""Members that `dir` lists of an object of a class; of other classes it lists all."""
KINDS = (property, cached_property, staticmethod, classmethod)
"""Members that are described beside functions."""


def reference() -> str:
    """Return the page as Markdown."""
    words: dict[str, Collection[str]] = {
        "Functions of the language": ATOMS,
        "Domains": DOMAINS,
        "Distributions": DISTRIBUTIONS,
    }
    of_tables = {name for table in words.values() for name in table}
    own = [name for name in oco.__all__ if name not in of_tables]
    parts = [TITLE, "## Functions and classes\n", *(_entry(name, getattr(oco, name)) for name in own)]
    parts += ["## Objects that they give\n", *(_entry(cls.__name__, cls) for cls in OBJECTS)]
    for title, table in words.items():
        parts += [f"## {title}\n", *(_entry(n, getattr(oco, n)) for n in oco.__all__ if n in table)]
    return "\n".join(parts)


def _entry(name: str, value: Any) -> str:
    """Section of a name: a heading, its docstring, and its public members where it is a class."""
    heading = f"### `{name}{_signature(value)}`\n"
    members = [f"* `{n}{_signature(m)}`: {_first(m)}" for n, m in _members(value)] if inspect.isclass(value) else []
    return "\n".join([heading, _shown(inspect.getdoc(value) or ""), "", *members, *([""] if members else [])])


def _shown(doc: str) -> str:
    """Docstring in Markdown: paragraphs with tables of parameters keep their lines."""
    parts = doc.split("\n\n")
    return "\n\n".join(f"```\n{part}\n```" if _is_table(part) else " ".join(part.split()) for part in parts)


def _is_table(part: str) -> bool:
    """True for a paragraph that lists parameters in columns."""
    return any("  " in line.strip() for line in part.splitlines())


def _first(member: Any) -> str:
    """First paragraph of the docstring of a member."""
    inner = getattr(member, "func", member) if isinstance(member, cached_property) else member
    return " ".join((inspect.getdoc(inner) or "").split("\n\n")[0].split())


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class, with those that it inherits from our classes, as far as `dir` lists them."""
    seen: dict[str, Any] = {}
    for base in reversed([b for b in cls.__mro__ if b.__module__.startswith("oco")]):
        own = ((n, m) for n, m in vars(base).items() if inspect.isfunction(m) or isinstance(m, KINDS))
        seen |= {n: m for n, m in own if not n.startswith("_")}
    yield from sorted((n, m) for n, m in seen.items() if n in LISTED.get(cls, seen))


def _signature(value: Any) -> str:
    """Parameters by name, without their types; nothing for properties and classes."""
    inner = getattr(value, "__func__", value)
    if inspect.isclass(value) or not callable(inner):
        return ""
    return f"({', '.join(_parameters(inspect.signature(inner).parameters.values()))})"


def _parameters(parameters: Iterable[inspect.Parameter]) -> Iterator[str]:
    keywords = False
    for p in parameters:
        if p.name in ("self", "cls"):
            continue
        if p.kind is p.VAR_POSITIONAL or p.kind is p.VAR_KEYWORD:
            keywords = True
            yield f"{'*' if p.kind is p.VAR_POSITIONAL else '**'}{p.name}"
            continue
        if p.kind is p.KEYWORD_ONLY and not keywords:
            keywords = True
            yield "*"
        yield p.name if p.default is p.empty else f"{p.name}={p.default!r}"


if __name__ == "__main__":
    print(reference(), end="")
