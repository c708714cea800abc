"""Numbers at the ends of what the computer holds, against every algorithm: a finite decision inside the domain, or a clear error."""

from __future__ import annotations

from functools import cache
from itertools import islice, product

import numpy as np
import pytest
from driving import plan_of as choice_for
from survival import plan_of
from thorough import corners, one_in, thorough

import oco
from oco.backends.learner import Learner
from oco.compiler.algorithms import ALGORITHMS
from oco.dsl.diagnostics import OcoError
from oco.plan import Plan

ROUNDS = 60

BODY = """\
model numbers
horizon T = 1000
decision x[3] in {domain}
stream c[3] {distribution}in [-{size}, {size}]
stream need {distribution}in [0, 1]
minimize {loss}
{constraints}
{feedback}
"""
CONSTRAINTS = "subject to\n    cap: x[0] + x[1] - need - 0.5 <= 0  {when}"
SHARE = "subject to\n    share: x[0] - 0.5 * x[1] - 0.1 * need == 0  on average"
SHAPES = [
    {"domain": domain, "loss": loss, "constraints": constraints, "feedback": feedback, "distribution": ""}
    for domain in ("simplex", "ball(1)")
    for loss in ("c @ x", "c @ x + sum_squares(x)")
    for constraints in (CONSTRAINTS.format(when="each round"), "")
    for feedback in ("", "feedback bandit")
]
SHAPES.append({"domain": "simplex", "loss": "c @ x", "constraints": SHARE, "feedback": "", "distribution": "iid "})
FIXED = "subject to\n    cap: x[0] + x[1] - 0.5 <= 0  on average"
SHAPES.append({"domain": "simplex", "loss": "c @ x", "constraints": FIXED, "feedback": "", "distribution": ""})


@cache
def found(algorithm: str, size: str) -> Plan | None:
    """A plan of the algorithm, for the first shape of a model that it takes; all algorithms share the facts of a shape."""
    for shape in SHAPES:
        text = BODY.format(**shape, size=size)
        try:
            plan = Plan.of(choice_for(text, algorithm))
            return plan if plan.program else None
        except OcoError:
            continue
    return None


CASES = {
    "plain": lambda t, rng, size: (rng.uniform(-size, size, 3), rng.uniform()),
    "zeros": lambda t, rng, size: (np.zeros(3), 0.0),
    "minus zeros": lambda t, rng, size: (np.full(3, -0.0), -0.0),
    "denormals": lambda t, rng, size: (rng.choice([-5e-324, 5e-324, 1e-310], 3), 5e-324),
    "ties": lambda t, rng, size: (np.full(3, size), 1.0),
    "the same for ever": lambda t, rng, size: (np.array([-size, size, size]), 1.0),
    "one jump": lambda t, rng, size: (np.full(3, size if t > 30 else -size), float(t % 2)),
    "an empty round": lambda t, rng, size: (rng.uniform(-size, size, 3), 0.0 if t == 20 else 1.0),
    "tiny beside large": lambda t, rng, size: (np.array([size, 1e-300, -size]), 1e-300),
    "ties of two": lambda t, rng, size: (np.array([size, size, -size])[np.roll([0, 1, 2], t)], 0.5),
    "denormals and the largest by turns": lambda t, rng, size: (np.full(3, 5e-324 if t % 2 else size), float(t % 2)),
    "one entry": lambda t, rng, size: (np.eye(3)[t % 3] * size, 0.0),
    "powers of ten": lambda t, rng, size: (
        size * 10.0 ** -rng.uniform(0, 320, 3) * rng.choice([-1, 1], 3),
        rng.uniform(),
    ),
    "a sum that cancels": lambda t, rng, size: (np.array([size, -size, size * 1e-16]), 1.0 - 1e-16),
    "nothing, then much": lambda t, rng, size: (np.full(3, 0.0 if t < 50 else size), 0.0),
    "flips": lambda t, rng, size: (np.full(3, size * (-1) ** t), float(t % 2)),
}


def play(plan: Plan, learner: Learner, values: dict[str, np.ndarray | float]) -> np.ndarray:
    from oco.evaluation.revealed import Revealed

    x = learner.decide()
    if plan.canonical.feedback.value != "full":
        *_, values = Revealed(plan.canonical)(x, values, learner.round)
    learner.observe(**values)
    return x


def inside(plan: Plan, x: np.ndarray, slack: float) -> bool:
    return bool(np.isfinite(x).all()) and plan.canonical.blocks[0].domain.contains(x, tolerance=slack)


def outside(t: int, size: float) -> tuple[np.ndarray, float]:
    """Round 20 has constraints that nothing satisfies, round 40 a loss beyond its bounds: data that is accepted all the same."""
    return np.full(3, 3 * size if t == 40 else -size), -7.0 if t == 20 else 1.0


@pytest.mark.parametrize("algorithm", one_in(2, [a.name for a in ALGORITHMS]))
def test_a_round_that_nothing_satisfies_leaves_a_decision_in_the_domain(algorithm):
    plan = found(algorithm, "1")
    if plan is None:
        return  # see `needs_more` below
    learner = plan.learner(seed=1, backend="numpy", on_out_of_bounds="accept")
    for t in range(1, ROUNDS + 1):
        c, need = outside(t, 1.0)
        assert inside(plan, play(plan, learner, {"c": c, "need": need}), 1e-7), t


SIZES, NAMES = ("1", "1e300", "1e-300"), [a.name for a in ALGORITHMS]
BY_TURNS = [(name, SIZES[k % 3]) for k, name in enumerate(NAMES)]


@pytest.mark.parametrize("every", [False, thorough(True)], ids=["some", "every"])
@pytest.mark.parametrize(("algorithm", "size"), corners(product(NAMES, SIZES), BY_TURNS[1::2]))
def test_every_algorithm_stays_finite_and_inside(algorithm, size, every):
    """In every case of numbers, or in every fourth one: algorithms and sizes take turns."""
    plan, turn = found(algorithm, size), (NAMES.index(algorithm) + SIZES.index(size)) % 4
    if plan is None:
        assert size != "1" or needs_more(algorithm), f"no model of this test suits {algorithm}"
        return  # the size itself is refused, in an OcoError: settings that overflow are no settings
    for name, case in islice(CASES.items(), 0 if every else turn, None, 1 if every else 4):
        rng, learner = np.random.default_rng(0), plan.learner(seed=1, backend="numpy")
        with np.errstate(all="ignore"):
            for t in range(1, ROUNDS + 1):
                c, need = case(t, rng, float(size))
                try:
                    x = play(plan, learner, {"c": c, "need": need})
                except OcoError as error:
                    assert error.message, name
                    break
                assert inside(plan, x, 1e-7), (name, t, x)


def needs_more(algorithm: str) -> bool:
    """Algorithms whose theorems ask for equalities, matrices or known laws: they have tests of their own."""
    with pytest.raises(OcoError) as caught:
        assert plan_of(f"{BODY.format(**SHAPES[0], size='1')}using {algorithm}\n").program
    return bool(caught.value.message)


def test_a_nan_in_an_entry_that_nothing_reads_is_refused_all_the_same():
    """What is not read today may be read after an upgrade; a state never depends on which."""
    plan = plan_of(
        "model m\nhorizon T = 9\ndecision x[2] in box(0, 1)\nstream c[3] in [0, 1]\nminimize c[0] * x[0] + c[1] * x[1]\n"
    )
    learner = plan.learner()
    before = repr(learner.state())
    with pytest.raises(OcoError, match=r"c\[2\] is nan"):
        learner.observe(c=[0.5, 0.5, np.nan])
    assert repr(learner.state()) == before


def test_weights_do_not_overflow_after_many_equal_rounds():
    """Exponential weights of a loss that is always the same reach one vertex, not infinity."""
    text = BODY.format(
        domain="simplex",
        loss="c @ x",
        constraints="",
        feedback="",
        distribution="",
        size="1",
    )
    plan = plan_of(f"{text}using oeg with eta = 50\n")
    learner = plan.learner(backend="numpy")
    for _ in range(2900):
        learner.decide()
        learner.observe(c=[1.0, -1.0, 0.5], need=0.0)
    x = learner.decide()
    assert np.allclose(x, [0, 1, 0], atol=1e-9) and all(np.isfinite(v).all() for v in learner.values.values())
    learner.observe(c=[-1.0, 1.0, 0.5], need=0.0)
    assert inside(plan, learner.decide(), 1e-9)


def test_scale_of_the_model_is_the_limit_and_not_of_the_data():
    with pytest.raises(OcoError):
        oco.compile(oco.parse(BODY.format(**SHAPES[0], size="1e308").replace("[-1e308", "[-1e309") + "using coldq\n"))
