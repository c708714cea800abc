"""An operation that is added by its meaning, its row and its C runs in every backend, whose own tables do not know it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from test_c99 import needs_compiler

ADDED = '''"""Meaning of an operation, of which NumPy has no function."""

import numpy as np


def softsign(x, *, scale):
    """x / (scale + |x|), entry by entry."""
    return x / (scale + np.abs(x))
'''

CHECKED = """
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from softsign import softsign
from oco.dsl.primitives import PRIMITIVES

PRIMITIVES |= {"cbrt": np.cbrt, "softsign": softsign}
from oco.compiler.ir import ops

for row in (*ops._entrywise((ops.FLOAT,), None, 1, cbrt="cube root", softsign="x / (scale + |x|)"),):
    ops.OPS[row.name] = row if row.name == "cbrt" else replace(row, attrs=("scale",), infer=lambda t, a: row.infer(t, {}))
ops.POINTWISE |= {"cbrt", "softsign"}
from oco.backends.c99 import templates as c

c.TEMPLATES["cbrt"] = c._function("cbrt")
import ir_programs
from oco.backends.python import helpers, templates
from oco.backends.python.sources import helper_lines
from oco.compiler.ir.interpret import run_function
from oco.compiler.ir.trace import Tracer

x = np.array([-8.0, 0.0, 27.0])
for op, attrs in (("cbrt", {}), ("softsign", {"scale": 2.0})):
    t = Tracer("added")
    f = t.function("f", lambda v: t.apply(op, v, **attrs), [("x", ir_programs.type_of(x))])
    expected = run_function(f, [x], t.functions, t.constants)[0]
    assert np.allclose(expected, np.cbrt(x) if op == "cbrt" else x / (2 + abs(x)), rtol=1e-15), op
    assert ir_programs.same_bits(ir_programs.as_python(t, f)(x), expected), op
assert softsign in helpers.HELPERS and "return x / (scale + np.abs(x))" in "\\n".join(helper_lines(softsign))
assert not {"cbrt", "softsign"} & templates._SPELLED.keys()

from oco.backends.xla import templates as jax
from oco.backends.xla.functions import function_lines

t = Tracer("added")
f = t.function("f", lambda v: t.apply("cbrt", v), [("x", ir_programs.type_of(x))])
assert any("jnp.cbrt(x)" in line for line in function_lines(f)) and "softsign" not in jax.TEMPLATES

import test_c99

ir_programs.CASES = test_c99.CASES = (ir_programs.Case("cbrt", (x,), np.array([-2.0, 0.0, 3.0])),)
test_c99.test_operations(Path(sys.argv[1]))
"""


@needs_compiler
def test_operations_are_added_in_few_places(tmp_path: Path) -> None:
    """In a process of its own, before any backend's tables are made."""
    (tmp_path / "softsign.py").write_text(ADDED)
    (tmp_path / "checked.py").write_text(CHECKED)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "checked.py", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
