"""The table of operations: each one's meaning against results worked out by hand, its types, and its Python."""

from __future__ import annotations

import numpy as np
import pytest
from ir_programs import CASES, Case, as_python, random_program, same_bits, type_of

from oco.backends.python.templates import STATEMENTS, TEMPLATES
from oco.compiler.ir.interpret import run_function
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.trace import Tracer


def traced(case: Case):
    t = Tracer("case")
    params = [(f"a{k}", type_of(a)) for k, a in enumerate(case.args)]
    return t, t.function("f", lambda *vs: t.apply(case.op, *vs, **case.attrs), params)


def close(found, expected) -> bool:
    """Within two units in the last place, and of the expected kind and shape."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return False
    return np.allclose(found, expected, rtol=5e-16, atol=0, equal_nan=True)


def test_every_operation_has_a_case_a_template_and_no_more():
    assert {c.op for c in CASES} == set(OPS)
    assert set(TEMPLATES) | set(STATEMENTS) == set(OPS)
    assert not set(TEMPLATES) & set(STATEMENTS)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.op)
def test_meaning(case):
    t, function = traced(case)
    results = run_function(function, case.args, t.functions, t.constants)
    assert [type_of(r) for r in results] == [r.type for r in function.body.results]
    if case.op == "svd":
        u, s, vt = results
        assert close(s, case.expected) and np.allclose(u * s @ vt, case.args[0])
    elif case.op == "eigh":
        w, v = results
        assert close(w, case.expected) and np.allclose(v * w @ v.T, case.args[0])
    elif case.op == "entries":
        assert all(close(a, b) for a, b in zip(results, np.ravel(case.expected), strict=True))
    else:
        assert close(results[0], case.expected)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.op)
def test_emitted_python_gives_the_same_bits(case):
    t, function = traced(case)
    expected = run_function(function, case.args, t.functions, t.constants)
    with np.errstate(all="ignore"):
        found = as_python(t, function)(*(a[()] for a in map(np.asarray, case.args)))
    found = found if isinstance(found, tuple) and len(expected) > 1 else (found,)
    assert all(same_bits(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("block", range(10))
def test_random_programs_give_the_same_bits_in_python(block):
    for seed in range(30 * block, 30 * block + 30):
        t, function, args = random_program(seed)
        expected = run_function(function, args, t.functions, t.constants)
        with np.errstate(all="ignore"):
            found = as_python(t, function)(*(a[()] for a in args))
        assert all(same_bits(a, b) for a, b in zip(found, expected, strict=True)), f"seed {seed}"
