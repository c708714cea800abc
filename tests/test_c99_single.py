"""Sources in float: compiled under strict flags, beside the source in double on the same rounds; tolerances, states, bindings."""

from __future__ import annotations

import ctypes
import importlib.util
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_c99 import STRICT, needs_compiler

import oco
from oco.backends.c99.library import linked, pieces
from oco.backends.c99.names import LIBRARY
from oco.backends.c99.single import FUNCTIONS, in_floats
from oco.cli import main
from oco.compiler.ir.precision import SINGLE_HIGH, SINGLE_LOW, Tolerance, in_single
from oco.compiler.ir.program import Literal
from oco.compiler.ir.rewrite import all_functions, equations_of
from oco.dsl.diagnostics import OcoError

EXAMPLES = Path(__file__).parent.parent / "examples"
KINKED = """
model desk
horizon T = 300
decision x[3] in box(0, 1)
stream price[3] in [-1, 1]
stream need in [0, 1]
stream place in 0..2
minimize price @ x + x[place]
subject to
    cap: sum(x) - 0.5 * sum(log(1 + 3 * x)) <= need  each round
"""
AVERAGE = """
model pace
horizon T = 300
decision x[5] in ball(1)
stream a[5] in [-1, 1]
minimize a @ x
subject to
    cap: norm2(x - a) <= 2  on average
"""
WITHIN = {"desk": 2e-3, "pace": 1e-4}
"""Greatest differences of decisions between float and double, as shares of the widths of their sets."""


@cache
def plan_of(text: str) -> Any:
    return oco.compile(oco.parse(text), "coldq" if text == KINKED else "mirror-descent", settings="paper")


def binding(plan: Any, folder: Path, precision: str) -> Any:
    """Learner of the emitted binding, of a library under the strictest flags."""
    plan.write(folder, backend="c", precision=precision)
    name = plan.model.name
    flags = [*STRICT, *(["-Wdouble-promotion"] if precision == "float32" else [])]
    command = ["cc", *flags, "-O1", "-shared", "-fPIC", f"{name}.c", "-o", f"lib{name}.so", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    done = subprocess.run(["cc", *flags, "-c", f"{name}_example.c"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    spec = importlib.util.spec_from_file_location(f"{name}_{precision}", folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Learner()


def drawn(text: str, rounds: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    if "place" in text:
        return [
            {"price": rng.uniform(-1, 1, 3), "need": rng.uniform(), "place": int(rng.integers(3))}
            for _ in range(rounds)
        ]
    return [{"a": rng.uniform(-1, 1, 5)} for _ in range(rounds)]


@needs_compiler
@pytest.mark.parametrize("text", [KINKED, AVERAGE], ids=["desk", "pace"])
def test_float_decides_nearly_as_double_does(text: str, tmp_path: Path) -> None:
    plan = plan_of(text)
    short, long = (binding(plan, tmp_path / p, p) for p in ("float32", "float64"))
    worst = 0.0
    for row in drawn(text, 300):
        ours, theirs = short.decide(), long.decide()
        worst = max(worst, *(np.abs(np.subtract(ours[n], theirs[n])).max() for n in theirs))
        (f, g, _), (true_f, true_g, _) = short.measure(ours, **row), long.measure(theirs, **row)
        assert abs(f - true_f) <= 0.02 * (1 + abs(true_f)) and np.allclose(g, true_g, atol=0.02)
        short.observe(**row)
        long.observe(**row)
    assert 0 < worst <= WITHIN[plan.model.name]
    assert short.version == f"{long.version.rpartition(' ')[0]} {short.version.split()[-2].rstrip(',')}, float"


@needs_compiler
def test_a_state_in_float_goes_on_bit_for_bit_and_is_no_other_learner_s(tmp_path: Path) -> None:
    plan = plan_of(KINKED)
    short, long = (binding(plan, tmp_path / p, p) for p in ("float32", "float64"))
    rows = drawn(KINKED, 20)
    for row in rows[:10]:
        short.decide()
        short.observe(**row)
    kept = short.save()
    size = int(
        re.search(r"A learner: ([\d,]+) bytes", (tmp_path / "float32" / "desk.h").read_text())[1].replace(",", "")
    )  # type: ignore[index]
    assert short._function("sizeof")() == size < long._function("sizeof")()
    other = binding(plan, tmp_path / "again", "float32")
    other.load(kept)
    for row in rows[10:]:
        assert other.decide() == short.decide()
        other.observe(**row)
        short.observe(**row)
    assert other.save() == short.save()
    with pytest.raises(ValueError, match="no whole state") as caught:
        long.load(kept)
    assert caught.value.code == 4  # another learner
    numbers = np.frombuffer(kept, "<f8").copy()
    for wrong in (1e300, np.nan, np.inf):  # the checksum is of the numbers before
        numbers[5] = wrong
        with pytest.raises(ValueError, match="no whole state"):
            other.load(numbers.tobytes())


@needs_compiler
@pytest.mark.skipif(shutil.which("cargo") is None, reason="no Rust")
def test_the_binding_for_rust_has_floats(tmp_path: Path) -> None:
    plan_of(KINKED).write(tmp_path, backend="c", precision="float32")
    text = (tmp_path / "desk.rs").read_text()
    assert "f64" not in text and "&[f32]" in text and "memory: Vec<u64>" in text
    done = subprocess.run(["cargo", "build", "--quiet", "--offline"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr


def test_the_header_says_what_the_numbers_are() -> None:
    files = plan_of(KINKED).files("c", "float32")
    assert "Numbers are float (24 binary digits" in files["desk.h"] and "double" not in files["desk_example.c"].replace(
        "(double)", ""
    )
    code = re.sub(r"/\*.*?\*/", "", files["desk.c"], flags=re.DOTALL)
    assert not re.search(r"\b\d+\.\d+(?:e[+-]?\d+)?(?![\d.ef])", code), "a literal of double"
    assert plan_of(KINKED).files("c")["desk.c"] == plan_of(KINKED).files("c", "float64")["desk.c"]


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_who_writes_no_floats_says_so(precision: str) -> None:
    with pytest.raises(OcoError) as caught:
        plan_of(AVERAGE).files("numpy", precision)
    assert caught.value.code == "OCO740"
    assert ('backend "c"' in caught.value.hint) == (precision == "float32")


def test_the_command_writes_floats(tmp_path: Path) -> None:
    (tmp_path / "pace.oco").write_text(AVERAGE)
    arguments = [
        "compile",
        str(tmp_path / "pace.oco"),
        "--backend",
        "c",
        "--precision",
        "float32",
        "-o",
        str(tmp_path / "out"),
    ]
    assert main(arguments) == 0
    assert "static const float" in (tmp_path / "out" / "pace.c").read_text()


def test_tolerances_are_of_the_precision() -> None:
    """A share u^a of the rounding of double is that of float; products and powers of tolerances are tolerances."""
    assert Tolerance(2.0**-53).single == pytest.approx(2.0**-24)
    square = Tolerance(1e-12) ** 2
    assert isinstance(square, Tolerance) and square.single == pytest.approx(Tolerance(1e-12).single ** 2)
    assert isinstance(4 * square / 25, Tolerance) and float(4 * square / 25) == 4 * 1e-12**2 / 25
    program = in_single(plan_of(KINKED).program)
    numbers = [
        abs(float(a.value))
        for f in all_functions(program)
        for e in equations_of(f.body)
        for a in e.args
        if isinstance(a, Literal) and isinstance(a.value, float)
    ]
    assert numbers and all(v == 0 or not np.isfinite(v) or SINGLE_LOW <= v <= SINGLE_HIGH for v in numbers)
    assert not [v for v in numbers if 1e-30 < v < 1e-12 and v not in (SINGLE_LOW,) and (v**0.5) < 1e-7]


def test_tokens_are_replaced_outside_comments_and_strings() -> None:
    text = (
        '/* double 1.0 */ const double x = fabs(1.5) + 0x1p-3 + 2; "double 1.0" wide_double y = DBL_MAX; /* a\n1.0 */'
    )
    wanted = '/* double 1.0 */ const float x = fabsf(1.5f) + 0.125f + 2; "double 1.0" double y = FLT_MAX; /* a\n1.0 */'
    assert in_floats(text) == wanted


def test_functions_of_libm_in_the_library_have_twins_for_floats() -> None:
    """One that stayed a function of doubles would round what it gives: the double next to a float is that float."""
    text = re.sub(r"/\*.*?\*/", "", "\n".join(piece.text for piece in pieces()), flags=re.DOTALL)
    called = set(re.findall(r"(?<![@\w])(\w+)\(", text)) & {name for name in LIBRARY if f"{name}f" in LIBRARY}
    assert {"nextafter", "sqrt"} <= called <= FUNCTIONS


@needs_compiler
def test_quantiles_of_tied_floats_are_those_of_sorting(tmp_path: Path) -> None:
    """Of more entries than a sample, most of which share their key: passes go on to the floats beside it, and end."""
    head = ["#include <math.h>", "#include <stdint.h>", "#include <string.h>"]
    call = "double of_all(const double *k, const double *w, double a, double *s, int n) { return @weighted_quantile(k, w, a, s, n); }"
    source, made = tmp_path / "q.c", tmp_path / "q.so"
    source.write_text(in_floats("\n".join([*head, *linked([call], "q")])))
    subprocess.run(["cc", *STRICT, "-O1", "-shared", "-fPIC", str(source), "-o", str(made), "-lm"], check=True)
    quantile = ctypes.CDLL(str(made)).of_all
    quantile.restype = ctypes.c_float
    rng, n = np.random.default_rng(0), 300
    space = np.zeros(2 * n, np.float32)
    for share in (0.02, 0.5, 0.98):
        keys = np.where(rng.random(n) < share, rng.standard_normal(n), 0.1).astype(np.float32)
        weights = rng.integers(0, 4, n).astype(np.float32)
        order = np.argsort(keys)
        for amount in range(1, int(weights.sum()), 7):
            found = quantile(
                *(ctypes.c_void_p(v.ctypes.data) for v in (keys, weights)),
                ctypes.c_float(amount),
                ctypes.c_void_p(space.ctypes.data),
                n,
            )
            assert found == keys[order][np.searchsorted(np.cumsum(weights[order]), amount)], (share, amount)
