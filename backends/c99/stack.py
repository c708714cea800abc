"""Stack that a function of an emitted source takes: the variables of its chain of calls, read off the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

_HEAD = re.compile(r"^(?:static |inline )*[\w ]+?\*?(\w+)\($|^(?:static |inline )*[\w ]+?\*?(\w+)\(.*\{$")
_DECLARED = re.compile(
    r"^\s+(?:const |static |volatile )*(double|float|int64_t|uint64_t|int|bool|unsigned char) (?!\()([^;]*);"
)
_ARRAY = re.compile(r"^\*?\s*\w+((?:\[\d+\])+)")
_CALLED = re.compile(r"\b(\w+)\(")
_SIZES = {"double": 8, "float": 4, "int64_t": 8, "uint64_t": 8, "int": 4, "bool": 1, "unsigned char": 1}
ARGUMENT = 16
"""Bytes of an argument: where it is passed, and where it is kept."""
FRAME = 96
"""Bytes of a frame beside its variables: the return address and the registers that are kept."""


def stack_bytes(lines: Iterable[str], function: str) -> int:
    """Estimated bytes of stack of a function with all that it calls; functions of libc and libm are left out."""
    bodies = _bodies(lines)

    @cache
    def deepest(name: str) -> int:
        body = bodies[name]
        called = {word for line in body for word in _CALLED.findall(line)} & bodies.keys() - {name}
        arguments = ARGUMENT * max((line.count(",") for line in body), default=0)
        return FRAME + arguments + sum(map(_declared, body)) + max(map(deepest, called), default=0)

    return deepest(function) if function in bodies else 0


def _bodies(lines: Iterable[str]) -> Mapping[str, list[str]]:
    """Lines of each function of a source, by name."""
    results: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        if line[:1] not in ("", " ", "}", "#", "/") and (match := _HEAD.match(line)):
            current = results.setdefault(match[1] or match[2], [])
            current.append(line)
        elif line.startswith("}"):
            current = None
        elif current is not None:
            current.append(line)
    return results


def _declared(line: str) -> int:
    """Bytes of the variables that a line declares; static ones take none."""
    match = _DECLARED.match(line)
    if match is None or line.lstrip().startswith("static"):
        return 0
    size = _SIZES[match[1]]
    parts = re.sub(r"\{[^}]*\}|\([^)]*\)", "", match[2]).split(",")
    return sum(size * _entries(part) for part in parts)


def _entries(declared: str) -> int:
    array = _ARRAY.match(declared.strip())
    count = 1
    for length in re.findall(r"\d+", array[1]) if array else ():
        count *= int(length)
    return count
