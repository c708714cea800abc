"""Steps of multipliers within their bounds: Newton's step where it fits, and ascent along a cut of it where it does not."""

from __future__ import annotations

import numpy as np
import pytest

from oco.compiler.ir.interpret import as_numpy
from oco.compiler.ir.program import DType, Type
from oco.compiler.proximal.cut_ascent import LEAST_SHARE, RISES, cut_ascent


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_step_stays_within_its_room_and_rises_as_far_as_a_common_cut(n: int) -> None:
    vector = Type(DType.FLOAT, (n,))

    def given(t, g, newton, room):
        return cut_ascent(t, g, newton, room, t.sum(g * newton))

    of, rng, fitted = as_numpy("cut", given, vector, vector, vector), np.random.default_rng(n), 0
    for _ in range(300):
        M, g = rng.normal(size=(n, n)), rng.normal(size=n) * rng.choice([0, 1], n, p=[0.1, 0.9])
        newton = np.linalg.solve(M @ M.T + 0.1 * np.eye(n), g)
        room = np.sign(newton) * rng.exponential(1.0, n) * rng.choice([0, 1, 5], n, p=[0.1, 0.5, 0.4]) * np.abs(newton)
        (step,) = of(g, newton, room)
        assert (np.abs(step) <= np.abs(room)).all() and (step * newton >= 0).all()
        if (np.abs(newton) <= np.abs(room)).all():
            fitted += 1
            np.testing.assert_array_equal(step, newton)
            continue
        moving = newton != 0
        share = min(1.0, np.min(np.abs(room[moving] / newton[moving])))
        assert g @ step >= min(share, RISES * max(share, LEAST_SHARE)) * (g @ newton) * (1 - 1e-12)
        if n == 1:
            np.testing.assert_array_equal(step, room)
    assert 0 < fitted < 300
