"""Data classes of `oco.dsl.records` do what those of `dataclasses` do."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

import oco
from oco.dsl import records

PACKAGES = ("api", "backends", "compiler", "dsl", "evaluation")
ROOT = Path(oco.__file__).parent.parent
Decorator = Callable[..., Any]


def decorated(dataclass: Decorator, **options: bool) -> Any:
    """Class with a field of each kind, and one that inherits from it."""

    @dataclass(**options)
    class Base:
        x: int
        seen: ClassVar[list[int]] = []
        y: float = 0.5
        many: list[int] = field(default_factory=list)
        hidden: str = field(default="h", repr=False, compare=False)
        span: str = field(kw_only=True, default="s")
        total: float = field(init=False, default=0.0)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.x + self.y)

    @dataclass(**options)
    class Derived(Base):
        z: tuple[int, ...] = ()

    return Derived


OPTIONS: list[dict[str, bool]] = [
    {},
    {"frozen": True},
    {"eq": False},
    {"frozen": True, "eq": False},
    {"frozen": True, "slots": True},
    {"frozen": True, "eq": False, "repr": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_objects_are_those_of_dataclasses(options: dict[str, bool]) -> None:
    ours, theirs = decorated(records.dataclass, **options), decorated(dataclasses.dataclass, **options)
    assert inspect.signature(ours.__init__).__str__() == inspect.signature(theirs.__init__).__str__()
    assert ours.__match_args__ == theirs.__match_args__
    given: list[tuple[tuple[Any, ...], dict[str, Any]]] = [((1,), {}), ((1, 2.0, [3], "a", (4,)), {"span": "t"})]
    for args, named in given:
        a, b = ours(*args, **named), theirs(*args, **named)
        assert [getattr(a, f.name) for f in fields(a)] == [getattr(b, f.name) for f in fields(b)]
        assert (repr(a) == repr(b)) == options.get("repr", True)
        assert (a == ours(*args, **named)) == (b == theirs(*args, **named))
        assert a != ours(7) and a != b
        assert fields(replace(a, x=5)) == fields(a) and replace(a, x=5).total == 5 + a.y
    assert ours(1).many is not ours(1).many
    for wrong in ((), (1, 2, 3, 4, 5, 6, 7)):
        with pytest.raises(TypeError) as mine:
            ours(*wrong)
        with pytest.raises(TypeError) as known:
            theirs(*wrong)
        assert str(mine.value) == str(known.value)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_is_frozen_stays(options: dict[str, bool]) -> None:
    kind = decorated(records.dataclass, **options)
    a = kind(1)
    if not options.get("frozen"):
        a.x = 3
        assert a.x == 3
        return
    for name in ("x", "z", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(a, name, 1)
        with pytest.raises(FrozenInstanceError):
            delattr(a, name)
    assert a.x == 1 and copy.copy(a) is not a and fields(copy.deepcopy(a)) == fields(a) and copy.deepcopy(a).x == 1


def test_hashes_are_of_the_compared_fields() -> None:
    @records.dataclass(frozen=True)
    class Pair:
        a: int
        b: str = field(compare=False)

    @records.dataclass
    class Changing:
        a: int

    @records.dataclass(frozen=True)
    class Own:
        a: int

        def __hash__(self) -> int:
            return 5

        def __repr__(self) -> str:
            return "own"

    assert hash(Pair(1, "x")) == hash(Pair(1, "y")) == hash((1,))
    assert (hash(Own(1)), repr(Own(1))) == (5, "own") and Own(1) == Own(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(Changing(1))


def test_a_derived_class_may_have_more_attributes() -> None:
    class Named(decorated(records.dataclass, frozen=True)):  # type: ignore[misc]
        pass

    named = Named(1)
    named.more = 2
    assert named.more == 2
    with pytest.raises(FrozenInstanceError):
        named.x = 2


def test_slots_travel_between_processes() -> None:
    from oco.compiler.ir.program import DType, Type

    sent = Type(DType.FLOAT, (2,))
    assert pickle.loads(pickle.dumps(sent)) == sent and copy.deepcopy(sent) == sent


def test_the_package_has_no_others() -> None:
    """Each would take half a millisecond of every command that imports it."""
    for path in (p for folder in PACKAGES for p in (ROOT / folder).rglob("*.py") if p.name != "records.py"):
        if "dataclasses" not in (text := path.read_text()):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
                assert "dataclass" not in {a.name for a in node.names}, f"{path}: take it from oco.dsl.records"
