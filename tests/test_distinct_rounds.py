"""Rounds that are told apart by hashes, against sorting whole rows."""

from __future__ import annotations

import numpy as np
import pytest

from oco.evaluation.baselines import resolve


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_the_different_rounds_of_arrays(seed: int, collide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is named once, at its first place; hashes that are all the same change nothing."""
    if collide:
        monkeypatch.setattr(resolve, "MULTIPLIER", np.uint64(0))
    rng = np.random.default_rng(seed)
    rounds = int(rng.integers(1, 60))
    arrays = [
        rng.integers(0, 3, (rounds, 2, 2)),
        np.broadcast_to(rng.normal(size=3), (rounds, 3)),
        rng.integers(0, 2, (rounds, seed % 3)).astype(float),
        rng.normal(size=rounds)[rng.integers(0, 2, rounds) if rounds > 1 else [0]],
    ]
    chosen, back = resolve.distinct(arrays)
    whole = np.concatenate([a.reshape(rounds, -1) for a in arrays], axis=1)
    _, places, which = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    assert sorted(chosen) == sorted(places)
    assert np.array_equal(chosen[back], places[np.ravel(which)])
