"""Example program that shows the use of an emitted learner in C."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from oco.backends.c99.constants import array_lines
from oco.backends.c99.expressions import C_TYPES
from oco.backends.c99.flags import command
from oco.backends.c99.interface import Named
from oco.backends.c99.module import CSource
from oco.backends.c99.single import WIDE, in_floats
from oco.backends.contract import Contract, Range
from oco.compiler.ir.program import DType, Program, Type

ROUNDS = 3
WRITTEN_OUT = 10_000
"""Numbers of an input that are written out; longer inputs are computed at run time."""

_DRAWN = {"uniform": Range(0.0, 1.0), "normal": Range(-2.0, 2.0)}
"""Ranges of the numbers for the rule's own random arrays."""


def example_main(program: Program, source: CSource, contract: Contract) -> str:
    """Program that plays a few rounds on made-up data and prints the decisions."""
    text = "\n".join(_lines(program, source, contract)) + "\n"
    return in_floats(text) if source.interface.arithmetic.single else text


def _lines(program: Program, source: CSource, contract: Contract) -> Iterator[str]:
    name, interface = source.name, source.interface
    yield f"/* How {name} is used:"
    yield f" * {command(f'{name}.c', f'{name}_example.c', fused=interface.arithmetic.fused)}"
    yield " * `--precision fast` writes a quicker one, and last digits differ from those of `oco run`. */"
    yield f'#include "{name}.h"'
    yield ""
    yield "#include <stdio.h>"
    yield ""
    rng = np.random.default_rng(0)
    for n in (*interface.inputs, *interface.draws):
        if _is_long(n):
            yield f"static {C_TYPES[n.type.dtype]} {n.name}_data[{ROUNDS * n.size}];"
            continue
        values = np.stack([made_up(rng, n, contract) for _ in range(ROUNDS)])
        yield from array_lines(f"{n.name}_data", Type(n.type.dtype, values.shape), values)
    yield ""
    yield "int main(void) {"
    yield f"    static {name} learner;"
    yield f"    {name}_init(&learner, {', '.join('NULL' for _ in interface.decisions)});"
    for d in interface.decisions:
        yield f"    static {d.declared(d.name)};"
    for n in filter(_is_long, (*interface.inputs, *interface.draws)):
        yield f"    for (int i = 0; i < {ROUNDS * n.size}; ++i) {{"
        yield f"        {n.name}_data[i] = {_spread(n, contract)};"
        yield "    }"
    yield f"    for (int t = 0; t < {ROUNDS}; ++t) {{"
    draws = [_argument(n) for n in interface.draws]
    outs = [d.name if d.type.shape else f"&{d.name}" for d in interface.decisions]
    if program.prepare is not None:
        known = [_argument(n) for n in interface.known]
        yield f"        if ({name}_prepare({', '.join(['&learner', *known])}) != 0) {{"
        yield "            return 1;"
        yield "        }"
    yield f"        if ({name}_decide(&learner, {', '.join([*draws, *outs])}) != 0) {{"
    yield "            return 1;"
    yield "        }"
    first = interface.decisions[0]
    shown = first.field.name[:60]  # a string of C has 4,095 characters at most
    value = f"{first.name}{'[0]' if first.type.shape else ''}"
    value = f"({WIDE}){value}" if interface.arithmetic.single else value
    yield f'        printf("round %d: {shown} begins with %.9g\\n", t + 1, {value});'
    given = [_argument(n) for n in (*interface.inputs, *interface.draws)]
    observe, given = ("observe", given) if source.ring is None else ("observe_round", ["t + 1", *given])
    yield f"        if ({name}_{observe}({', '.join(['&learner', *given])}) != 0) {{"
    yield "            return 1;"
    yield "        }"
    yield "    }"
    yield "    return 0;"
    yield "}"


def _argument(n: Named) -> str:
    return f"{n.name}_data + t * {n.size}" if n.type.shape else f"{n.name}_data[t]"


def _is_long(n: Named) -> bool:
    return ROUNDS * n.size > WRITTEN_OUT


def _spread(n: Named, contract: Contract) -> str:
    """Entry i of a long input, within the bounds of all of its entries."""
    lower, upper = _within(n, contract)
    low, high = float(np.max(lower)), float(np.min(upper))
    if n.type.dtype is DType.INT:
        return f"{math.ceil(low)} + i % {max(1, math.floor(high) - math.ceil(low) + 1)}"
    return f"{low!r} + {max(high - low, 0.0)!r} * (double)(i % 97) / 97.0"


def _within(n: Named, contract: Contract) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of each entry, without numbers too large to read."""
    r = _DRAWN.get(contract.distributions.get(n.field.name, "")) or contract.ranges.get(n.field.name, Range())
    lower = np.broadcast_to(np.clip(r.lower, -1e3, 1e3), n.type.shape)
    return lower, np.maximum(np.broadcast_to(np.clip(r.upper, -1e3, 1e3), n.type.shape), lower)


def made_up(rng: np.random.Generator, n: Named, contract: Contract) -> np.ndarray:
    """Data within the bounds that the model states, and random numbers of the rule's own."""
    drawn = np.asarray(rng.uniform(*_within(n, contract)))
    return np.floor(drawn).astype(np.int64) if n.type.dtype is DType.INT else drawn
