"""Regret and violation of every algorithm grow no faster than its theorem says; `python -m benchmarks.rates` has the full study."""

from __future__ import annotations

from itertools import cycle, product

import pytest
from law_rates import fitted, horizons_of, lives_of
from test_c99 import has_compiler
from thorough import corners, thorough

from oco.compiler.algorithms import ALGORITHMS, Algorithm

pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C compiler")
MARGIN = 0.05
SEQUENCES = ("coins", "pushed")
SLOW = ("pacing", "projection-free", "meta-frank-wolfe", "hedged")
"""Algorithms with lives of half a second and more."""

PROMISING = [a for a in ALGORITHMS if a.promises]


@pytest.mark.parametrize("every", [False, thorough(True)], ids=["some", "every"])
@pytest.mark.parametrize(
    "algorithm", corners(PROMISING, [a for a in PROMISING if a.name not in SLOW]), ids=lambda a: a.name
)
def test_regret_and_violation_grow_as_the_theorem_says(algorithm: Algorithm, every: bool) -> None:
    """20 seeds, T = 2^8 and 2^14 (2^8 and 2^12 where a round asks for more oracle calls then).

    Every life meets every sequence, or one life of each theorem meets one, by turns, up to T = 2^12.
    The lower confidence limit of each exponent is at most the theorem's exponent and the margin.
    """
    found = lives_of(algorithm.name, regions=every)
    assert found
    turn = SEQUENCES[:: 1 - 2 * (ALGORITHMS.index(algorithm) % 2)]
    for life, sequence in product(found, SEQUENCES) if every else zip(found, cycle(turn)):
        horizons = horizons_of(life) if every else horizons_of(life)[:5]
        for fit in fitted(life, sequence, (horizons[0], horizons[-1]), range(20)):
            assert fit.lower <= fit.theorem + MARGIN, f"{fit}; the theorem says T^{fit.theorem:.3f}"
