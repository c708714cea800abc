"""Columns of large arrays: those that are alike, and the largest, against NumPy over whole arrays."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from oco.evaluation.report import columns
from oco.evaluation.report.columns import Column, largest


def spread(values):
    return values.std(axis=0)


@pytest.mark.parametrize("seed", range(5))
def test_columns_are_told_apart_and_ordered_as_by_whole_arrays(seed, monkeypatch):
    monkeypatch.setattr(columns, "ENTRIES", 40)
    rng = np.random.default_rng(seed)
    different = rng.integers(-2, 3, (20, 9)) * rng.choice([0.25, 1.0, 2.0**40], 9)
    whole = different[:, rng.integers(0, 9, 30)]
    parts = [whole[:, :11], whole[:, 11:11], whole[:, 11:]]
    found, count = largest(parts, spread, 4)
    distinct, first, alike = np.unique(whole, axis=1, return_index=True, return_counts=True)
    assert count == distinct.shape[1]
    best = sorted(-spread(whole)[first])[:4]
    places = [c.index + (0, 11, 11)[c.part] for c in found]
    assert places == sorted(places) and sorted(-spread(whole)[places]) == best
    of = dict(zip(first.tolist(), alike.tolist()))
    assert [c.count for c in found] == [of[k] for k in places]


def test_no_columns_and_signed_zeros():
    assert largest([], spread, 3) == ([], 0)
    assert largest([np.zeros((5, 0))], spread, 3) == ([], 0)
    assert largest([np.array([[0.0, -0.0, 1.0]])], spread, 1) == ([Column(0, 0, 2)], 2)


def test_large_arrays_are_not_copied():
    values = np.random.default_rng(0).normal(size=(80, 100_000))
    tracemalloc.start()
    largest([values], spread, 3)
    assert tracemalloc.get_traced_memory()[1] < values.nbytes / 2
    tracemalloc.stop()
