"""C beside NumPy on every example, as the plan that it compiles to by default, on the rounds that its header names.

`pytest tests/test_examples_agree.py -s` prints the largest difference of each.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from driving import example
from test_c99 import needs_compiler
from thorough import corners, thorough

import oco
from oco.cli.options import data_of
from oco.cli.stated import stated_options

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.oco"))
ROUNDS, FEW = 100, {"ratings": 2, "matrix_completion": 20}
WEIGHED = ("warehouse", "pacing", "dispatch", "staffing", "caching")
"""Examples whose weights on rules of practice are compared too: rules that lose alike in the first rounds share the weight."""
SAME = 1e-9
"""Largest difference of an entry of a decision, as a share of the largest entry where that is more than one."""


WEIGHTS = [(path, "hedged") for path in EXAMPLES if path.stem in WEIGHED]
CASES = [*((path, None) for path in EXAMPLES), *WEIGHTS]
KEPT = ("blind_pricing", "datacenter", "job_scheduling", "matrix_completion")
"""An example of each kind of algorithm; `test_backends_agree` has every algorithm, `test_examples_known` others of these, and
`test_stored_value` what `battery` has beside them, which takes seconds to compile.
"""


@needs_compiler
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("most", [40, thorough(ROUNDS)])
@pytest.mark.parametrize(
    ("path", "algorithm"),
    corners(CASES, [(path, None) for path in EXAMPLES if path.stem in KEPT]),
    ids=[f"{p.stem}{'-' + a if a else ''}" for p, a in CASES],
)
def test_c_decides_as_numpy_does(path: Path, algorithm: str | None, most: int) -> None:
    stated, model = stated_options(path), oco.load(path)
    rounds = min(FEW.get(path.stem, most), stated.rounds or most)
    data = data_of(model, stated.data, mapping=stated.mapping, rounds=rounds)
    plan = example(path.stem, algorithm)
    ours, theirs = (plan.run(data, backend=backend, seed=0).decisions for backend in ("numpy", "c"))
    pairs = [(ours[n], theirs[n]) for n in ours] if isinstance(ours, dict) else [(ours, theirs)]
    worst = max(float(np.max(np.abs(a - b))) / max(1.0, float(np.max(np.abs(a)))) for a, b in pairs)
    print(f"{path.stem} ({plan.algorithm}, {rounds} rounds): {worst:.1e}")
    assert worst <= SAME
