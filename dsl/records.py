"""Data classes whose methods are written when they are first used.

Python 3.11 compiles the text of up to six methods of a data class while its module is imported, half a millisecond in all: a fifth of the
time of a short command, which makes objects of half of its classes, and compares, hashes or shows those of a few.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, init=True, repr=True, eq=True, frozen=False, slots=False):
        """Class that `dataclasses.dataclass` makes of these options, which is what type checkers take it for."""

        def made(cls):
            return _record(cls, {"__init__": init, "__repr__": repr, "__eq__": eq}, frozen, slots)

        return made if cls is None else made(cls)


def _record(cls: type[Any], asked: dict[str, bool], frozen: bool, slots: bool) -> Any:
    """Data class with methods that wait to be written in the place of those that are asked for and that it does not define itself."""
    own = cls.__dict__
    hashed = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
    names = [name for name, wanted in asked.items() if wanted and name not in own]
    cls.__doc__ = cls.__doc__ or cls.__name__  # else it is the signature, which takes as long as the methods
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    if asked["__eq__"] and not hashed:
        if frozen:
            names.append("__hash__")
        else:
            made.__hash__ = None
    for name in names:
        setattr(made, name, _Unwritten(made, name, frozen))
    if frozen:
        made.__setattr__, made.__delattr__ = _set, _delete
    if frozen and slots:
        made.__getstate__, made.__setstate__ = _state, _set_state
    return made


class _Unwritten:
    """Method of a data class that is written when it is first asked for, in the place of this."""

    def __init__(self, owner: type, name: str, frozen: bool) -> None:
        self.owner, self.name, self.frozen = owner, name, frozen

    def __get__(self, instance: object, kind: type) -> Any:
        method = _initializer(self.owner, self.frozen) if self.name == "__init__" else _method(self.owner, self.name)
        setattr(self.owner, self.name, method)
        return method.__get__(instance, kind)


def _method(cls: Any, name: str) -> Any:
    """Method that `dataclasses` writes for these fields, by which nothing is set."""
    if name == "__repr__":
        same = [(f.name, f.type, copy(f)) for f in fields(cls)]
        return dataclasses.make_dataclass(cls.__name__, same, init=False, frozen=True).__dict__[name]
    of_hash = name == "__hash__"
    compared = [f.name for f in fields(cls) if (f.compare if not of_hash or f.hash is None else f.hash)]
    values: Any = attrgetter(*compared) if len(compared) > 1 else _few(compared)

    def __hash__(self: Any) -> int:
        return hash(values(self))

    def __eq__(self: Any, other: object) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    result = __hash__ if of_hash else __eq__
    result.__qualname__ = f"{cls.__qualname__}.{name}"
    return result


def _few(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Value of an attribute as a tuple, which `attrgetter` makes of several alone; the empty one without names."""
    if not names:
        return lambda self: ()
    value = attrgetter(*names)
    return lambda self: (value(self),)


# `__init__` as `dataclasses` writes it, without two more methods and a class for each.


class _Factory:
    """Default of a parameter whose value a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _initializer(cls: Any, frozen: bool) -> Any:
    """Method `__init__` that sets the fields, and calls `__post_init__` where there is one."""
    every = list(enumerate(fields(cls)))
    own: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    lines = [_setting(cls, k, f, own, frozen) for k, f in every if f.init or _has_default(f)]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    taken = [f for _, f in every if f.init]
    named = [f"_{k}" for k, f in every if f.init and f.kw_only]
    parameters = ["self", *(f"_{k}" for k, f in every if f.init and not f.kw_only), *(["*", *named] if named else [])]
    body = "".join(f"\n  {line}" for line in lines) or "\n  pass"
    text = f"def write({', '.join(own)}):\n def __init__({', '.join(parameters)}):{body}\n return __init__"
    write = _renamed(_compiled(text), {f"_{k}": f.name for k, f in every})
    result: Any = FunctionType(write, vars(sys.modules[cls.__module__]))(**own)
    result.__qualname__ = f"{cls.__qualname__}.__init__"
    result.__annotations__ = {f.name: f.type for f in taken} | {"return": None}
    result.__defaults__ = tuple(_default(f) for f in taken if _has_default(f) and not f.kw_only)
    result.__kwdefaults__ = {f.name: _default(f) for f in taken if _has_default(f) and f.kw_only}
    return result


@cache
def _compiled(text: str) -> CodeType:
    """Code of the function that a text defines: the k-th field is `_k` there, so that most classes share theirs."""
    return next(part for part in compile(text, "<record>", "exec").co_consts if isinstance(part, CodeType))


def _renamed(code: CodeType, names: dict[str, str]) -> CodeType:
    """Code with other names, and with these in functions within it."""

    def part(const: Any) -> Any:
        if isinstance(const, CodeType):
            return _renamed(const, names)
        return names.get(const, const) if isinstance(const, str) else const

    variables, others = (tuple(names.get(n, n) for n in own) for own in (code.co_varnames, code.co_names))
    return code.replace(co_varnames=variables, co_names=others, co_consts=tuple(map(part, code.co_consts)))


def _has_default(f: Field[Any]) -> bool:
    return f.default is not MISSING or f.default_factory is not MISSING


def _default(f: Field[Any]) -> Any:
    """Default of the parameter of a field."""
    return f.default if f.default_factory is MISSING else _FACTORY


def _setting(cls: type, k: int, f: Field[Any], own: dict[str, Any], frozen: bool) -> str:
    """Line that sets the k-th field; what it reads is added to `own`."""
    value, default = f"_{k}", f"_of_{k}"
    if f.default_factory is not MISSING:
        own[default] = f.default_factory
        value = f"{default}() if {value} is _FACTORY else {value}" if f.init else f"{default}()"
    elif not f.init:
        own[default] = f.default
        value = default
    if not frozen:
        return f"self._{k} = {value}"
    if isinstance(slot := cls.__dict__.get(f.name), MemberDescriptorType):  # in three fifths of the time
        own[f"_set_{k}"] = slot.__set__
        return f"_set_{k}(self, {value})"
    return f"_set(self, '_{k}', {value})"


# What frozen classes share.


def _set(self: Any, name: str, value: object) -> None:
    _check(self, name, "assign to")
    object.__setattr__(self, name, value)


def _delete(self: Any, name: str) -> None:
    _check(self, name, "delete")
    object.__delattr__(self, name)


def _check(self: Any, name: str, what: str) -> None:
    """Raises FrozenInstanceError for every name of a data class, and for its fields in a class derived from one."""
    kind = type(self)
    if "__dataclass_fields__" in kind.__dict__ or name in kind.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot {what} field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in fields(self)]


def _set_state(self: Any, values: list[Any]) -> None:
    for f, value in zip(fields(self), values, strict=True):
        object.__setattr__(self, f.name, value)
