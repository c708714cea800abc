"""Guarantees under attack: a quick slice of `python -m benchmarks.guarantees`, and the attack's own power on steps broken on purpose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
import pytest
from test_c99 import has_compiler
from thorough import corners, thorough

from benchmarks.guarantees.attacks import attacked
from benchmarks.guarantees.cases import Case, case
from benchmarks.guarantees.page import rows_of_page
from benchmarks.guarantees.shapes import SHAPES
from oco.compiler.algorithms import ALGORITHMS, Algorithm
from oco.compiler.theory.guarantees import Guarantee

pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C compiler")
ROUNDS = 16
PROMISING = [a for a in ALGORITHMS if a.promises]
EXPECTED = [a for a in PROMISING if all(t.expected for t in a.theorems)]
"""Algorithms whose promises hold in the mean alone, which `tests/test_worst_sequences.py` leaves out."""
BRIEF = [a for a in [*PROMISING[::2], *EXPECTED] if a.name != "hedged"]
"""`hedged` takes as long as all others, and is attacked in `tests/test_worst_sequences.py` too."""


@pytest.mark.parametrize("both", [False, thorough(True)], ids=["one", "both"])
@pytest.mark.parametrize("algorithm", corners(PROMISING, BRIEF), ids=lambda a: a.name)
def test_no_attack_exceeds_a_promise(algorithm: Algorithm, both: bool) -> None:
    """The first and the last shape of each algorithm, or by turns one of them, 16 rounds, short climbs; a mean may be above by three
    standard errors.
    """
    of, ends = partial(case, algorithm.name, rounds=ROUNDS), (SHAPES, list(reversed(SHAPES)))
    turns = ends if both else [ends[ALGORITHMS.index(algorithm) % 2]]
    attacks = {c.shape: c for shapes in turns for c in islice(filter(None, map(of, shapes)), 1)}
    assert attacks, f"no shape has a theorem of {algorithm.name}"
    for c in attacks.values():
        for measure, worst in attacked(c, seeds=2, steps=4 if both else 1).items():
            assert worst.share is None or worst.share <= 1 + 1e-9 + 3 * worst.error, (c.shape, measure, worst)


@pytest.mark.parametrize("step", [3, thorough(1)])
def test_the_page_has_every_algorithm_and_shape(step: int) -> None:
    """The table has one row for each algorithm on each shape where a theorem applies, and no ratio above 1."""
    rows, shapes = rows_of_page(), list(SHAPES)[::step]
    expected = [(a.name, shape) for a in ALGORITHMS for shape in shapes if case(a.name, shape) is not None]
    assert [row for row in rows if row[1] in shapes] == expected
    assert {s for _, s in rows} == set(SHAPES) and len(SHAPES) >= 6
    assert not any("exceeded" in r for r in rows.values())


@dataclass(frozen=True, eq=False)
class Infeasibility(Case):
    """A learner with settings that its theorem does not allow, held to the promise of the sound one."""

    sound: Case | None = None

    @property
    def promise(self) -> Guarantee:
        assert self.sound is not None
        return self.sound.promise


def broken(algorithm: str, shape: str, settings: dict[str, str]) -> Infeasibility:
    sound, other = case(algorithm, shape), case(algorithm, shape, settings=settings)
    assert sound is not None and other is not None
    return Infeasibility(algorithm, shape, other.plan, sound.judge, sound)


@pytest.mark.parametrize(
    ("algorithm", "shape", "settings", "measure"),
    [
        ("ogd", "box, linear, moving", {"eta": "1e-6"}, "regret"),  # it stands still
        ("ogd", "nuclear ball", {"eta": "100"}, "regret"),  # it jumps from end to end
        ("yu-neely", "simplex, linear", {"gamma": "1e-6"}, "violation"),  # constraints weigh nothing
    ],
)
def test_a_broken_step_is_caught(algorithm: str, shape: str, settings: dict[str, str], measure: str) -> None:
    worst = attacked(broken(algorithm, shape, settings), seeds=2, steps=0)[measure]
    assert worst.share is not None and worst.share > 1


def test_regret_against_a_closed_form() -> None:
    """Linear losses without constraints on the box: the best fixed decision loses the l1 norm of the summed c."""
    c = case("ogd", "box, linear, moving")
    assert c is not None
    streams = c.random(np.random.default_rng(0))
    regret, violation, _ = c.measured(streams, 0)
    loss, _, _ = c.play(streams, 0)
    assert regret == pytest.approx(loss.sum() + np.abs(streams["c"].sum(axis=0)).sum(), abs=1e-6) and violation == 0
