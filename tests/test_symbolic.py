"""Symbolic formulas against SymPy: values, text, what is folded and what has no value."""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import sympy
from thorough import one_in

from oco.compiler.ir.symbolic import HALF, ONE, UNDEFINED, Formula, Symbol
from oco.compiler.ir.symbolic_form import (
    call,
    exact,
    nearest_float,
    negative,
    power,
    product,
    quotient,
    substituted,
    total,
)
from oco.compiler.theory.settings import parse_formula, schedule_symbols

ROOT = Path(__file__).parent.parent
VALUES = {"t": Fraction(13, 4), "T": Fraction(101, 2), "m": Fraction(3, 8)}
NUMBERS = (1, 2, 3, 0.5, 0.25, 1.5, 8, 10, 0.1234567890123, 0.75)
EXPONENTS = (2, 0.5, -1, -0.5, 0.75, 3)
BINARY: dict[str, tuple[Callable[..., Formula], Callable[..., Any]]] = {
    "add": (lambda a, b: total((a, b)), lambda a, b: a + b),
    "sub": (lambda a, b: total((a, negative(b))), lambda a, b: a - b),
    "mul": (lambda a, b: product((a, b)), lambda a, b: a * b),
    "div": (quotient, lambda a, b: a / b),
    "min": (lambda a, b: call("min", a, b), sympy.Min),
    "max": (lambda a, b: call("max", a, b), sympy.Max),
}


def drawn(rng: random.Random, depth: int) -> tuple[Formula, Any]:
    """Formula, and what SymPy makes of it without our constructors."""
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.5:
            x = rng.choice(NUMBERS)
            return exact(x), sympy.Rational(str(x)) if len(repr(x)) <= 12 else sympy.Float(x, 30)
        name = rng.choice(list(VALUES))
        return Symbol(name), sympy.Symbol(name, positive=True)
    kind = rng.choice([*BINARY, "mul", "div", "add", "pow", "sqrt", "log", "exp"])
    f, s = drawn(rng, depth - 1)
    match kind:
        case "sqrt":
            return power(f, HALF), sympy.sqrt(s)
        case "log" | "exp":
            return call(kind, f), getattr(sympy, kind)(s)
        case "pow":
            e = rng.choice(EXPONENTS)
            return power(f, exact(e)), s ** sympy.Rational(str(e))
    ours, theirs = BINARY[kind]
    g, r = drawn(rng, depth - 1)
    return ours(f, g), theirs(s, r)


def sympy_value(expression: Any) -> complex:
    try:
        known = {sympy.Symbol(n, positive=True): sympy.Rational(x.numerator, x.denominator) for n, x in VALUES.items()}
        return complex(expression.subs(known).evalf(25))
    except (TypeError, ValueError):
        return complex("nan")


@pytest.mark.parametrize("seed", one_in(3, range(60)))
def test_formulas_have_the_value_that_sympy_gives(seed: int) -> None:
    try:
        f, s = drawn(random.Random(seed), 3)
    except ValueError:  # SymPy compares no complex numbers
        return
    value, expected = nearest_float(substituted(f, {n: exact(x) for n, x in VALUES.items()})), sympy_value(s)
    if value is None:
        assert abs(expected.imag) > 1e-15 or not math.isfinite(expected.real)
        return
    assert value == pytest.approx(expected.real, rel=1e-14, abs=1e-25) and abs(expected.imag) < 1e-20
    assert sympy_value(sympy.sympify(f)).real == pytest.approx(value, rel=1e-14, abs=1e-25)
    again = parse_formula(str(f), schedule_symbols())
    kept = nearest_float(substituted(again, {n: exact(x) for n, x in VALUES.items()}))
    assert kept == pytest.approx(value, rel=1e-14, abs=1e-25)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2 * T**(3/4) / log(1 + t)", "2*T**(3/4)/log(t + 1)"),
        ("1 / (2 * sqrt(t) * T)", "1/(2*T*sqrt(t))"),
        ("t / T / t", "1/T"),
        ("sqrt(8)", "2*sqrt(2)"),
        ("sqrt(1/2)", "sqrt(2)/2"),
        ("27**(2/3)", "9"),
        ("sqrt(T**2)", "T"),
        ("(1 - m) / 2", "1/2 - m/2"),
        ("t + 2 * t - 3 * t", "0"),
        ("2 * (t + 1) * T**-0.25", "(2*t + 2)/T**(1/4)"),
        ("max(0, t, -1)", "t"),
        ("min(2, 3, t)", "min(2, t)"),
        ("min(-1, t)", "-1"),
        ("floor(7 / 2) + ceiling(-7 / 2)", "0"),
        ("exp(log(t)) + log(exp(T))", "T + t"),
        ("0.1 + 0.2", "3/10"),
        ("-(t + 1)", "-t - 1"),
        ("T**(-1 * m)", "T**(-m)"),
    ],
)
def test_formulas_are_brought_to_one_form(text: str, shown: str) -> None:
    f = parse_formula(text, schedule_symbols())
    assert str(f) == shown
    assert f == parse_formula(shown, schedule_symbols())


@pytest.mark.parametrize("text", ["sqrt(-1)", "log(0)", "log(-2) * 0 + 1", "(-1)**0.5 - t"])
def test_what_is_no_real_number_is_undefined(text: str) -> None:
    assert parse_formula(text, schedule_symbols()) is UNDEFINED


def test_numbers_are_rounded_once() -> None:
    """A third of 0.1 written out, times 3: thirty digits, then the nearest float64."""
    f = product((exact(0.1234567890123), quotient(ONE, exact(3))))
    assert nearest_float(f) == float(Fraction(0.1234567890123) / 3)
    assert exact(Decimal("inf")) is UNDEFINED and exact(math.nan) is UNDEFINED
    assert exact(1e-9) == exact(Fraction(1, 10**9))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sqrt(9**250 * 9**250) / 9**250", 1.0),
        ("(" + " * ".join(["9**100"] * 40) + ")**(1/40) / 9**100", 1.0),
        (" * ".join(["1/9**100"] * 20), 0.0),
        ("floor(10**299 * 10**299) / 10**298", 1e300),
        ("10**299 * 10**299", None),
        ("(10**299)**(1/299)", 10.0),
    ],
)
def test_long_numbers_are_decimals(text: str, value: float | None) -> None:
    f = parse_formula(text, schedule_symbols())
    assert nearest_float(f) == (None if value is None else pytest.approx(value, rel=1e-15)) and len(str(f)) < 400


def test_plans_and_explanations_load_no_sympy() -> None:
    code = (
        "import oco, sys; m = oco.load('examples/tracking.oco'); plan = oco.compile(m); str(plan); plan.source();"
        "print('sympy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False"
