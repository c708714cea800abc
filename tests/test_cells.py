"""Ranges over cells have an axis for the cells and those of the expression, and hold its values."""

import numpy as np
import pytest

from oco.compiler.prover.ranges.cells import over_cells
from oco.dsl.atoms import ATOMS
from oco.dsl.build import applied
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Kind, Name
from oco.dsl.intervals import interval

AXES = sorted(name for name, row in ATOMS.items() if "axis" in row.options)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3)])
@pytest.mark.parametrize("atom", AXES)
def test_ranges_of_atoms_of_all_entries_have_their_shape_and_hold_their_values(
    atom: str, shape: tuple[int, ...]
) -> None:
    rng, count = np.random.default_rng(0), 5
    x = Name("x", Kind.DECISION, shape=shape)
    node = applied(atom, (x,), ())
    low = rng.uniform(0.1, 1.0, (count, *shape))
    high = low + rng.uniform(0.0, 0.5, low.shape)
    ranges = over_cells(node, {}, {"x": interval(low, high, low.shape)}, count)
    assert ranges.shape == (count, *known(node.shape))
    lo, hi = ranges.expanded()
    for cell, place in enumerate(rng.uniform(low, high)):
        value = evaluate(node, {"x": place})
        assert np.all(lo[cell] <= value + 1e-12) and np.all(value - 1e-12 <= hi[cell])
