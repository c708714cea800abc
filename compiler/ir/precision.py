"""Programs in single precision: tolerances of double precision become those of the shorter numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.ir.program import Block, DType, Literal, Operand, Program
from oco.compiler.ir.rewrite import map_functions

BITS = {"float64": 53, "float32": 24}
"""Binary digits of a number by the name of its precision."""
SINGLE_LOW, SINGLE_HIGH = 1e-36, 1e37
"""Least and greatest sizes of numbers in a program of single precision; what is beyond them guards a division or stands for infinity."""


class Tolerance(float):
    """Number that stands for the rounding of double precision, such as 1e-14; products and powers of tolerances are tolerances.

    A number of p bits rounds by u = 2^-p, so that a tolerance u^a of double precision is 2^(-24 a) in single precision.
    """

    __slots__ = ()

    def __mul__(self, other: float) -> Tolerance:
        result: Tolerance = _tolerance(super().__mul__(other))
        return result

    def __rmul__(self, other: float) -> Tolerance:
        result: Tolerance = _tolerance(super().__rmul__(other))
        return result

    def __truediv__(self, other: float) -> Tolerance:
        result: Tolerance = _tolerance(super().__truediv__(other))
        return result

    def __pow__(self, other: float) -> Tolerance:  # type: ignore[override]
        result: Tolerance = _tolerance(super().__pow__(other))
        return result

    @property
    def single(self) -> float:
        """Tolerance of single precision."""
        return math.copysign(abs(float(self)) ** (BITS["float32"] / BITS["float64"]), self) if self else 0.0


def _tolerance(value: Any) -> Any:
    return value if value is NotImplemented else Tolerance(value)


def in_single(program: Program) -> Program:
    """Program whose numbers fit single precision: tolerances are those of float, and what float cannot hold is at its limits."""
    constants = tuple(
        replace(g, value=_within(g.value)) if g.var.type.dtype is DType.FLOAT else g for g in program.constants
    )
    return map_functions(replace(program, constants=constants), lambda f: replace(f, body=_block(f.body)))


def _block(block: Block) -> Block:
    equations = tuple(e.having(tuple(map(_operand, e.args)), tuple(map(_block, e.blocks))) for e in block.equations)
    return Block(block.params, equations, tuple(map(_operand, block.results)))


def _operand(operand: Operand) -> Operand:
    if not isinstance(operand, Literal) or operand.type.dtype is not DType.FLOAT:
        return operand
    value = operand.value.single if isinstance(operand.value, Tolerance) else operand.value
    return Literal(float(_within(np.float64(value))), operand.type)


def _within(values: Any) -> Any:
    """Finite numbers at sizes between `SINGLE_LOW` and `SINGLE_HIGH`; zero and infinities stay."""
    sizes = np.abs(values)
    kept = np.copysign(np.clip(sizes, SINGLE_LOW, SINGLE_HIGH), values)
    return np.where((values == 0) | ~np.isfinite(values), values, kept)
