"""JAX decides as NumPy does: every algorithm on a model that it takes.

`pytest tests/test_jax_agree.py -m "" --agreement 10000` plays so many rounds, and prints the worst difference of each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_backends_agree import NAMES, models_of, plan_with, rounds_of
from thorough import corners

from oco.backends.learner import Learner
from oco.backends.play import can_play, play
from oco.backends.registry import backend, make_learner
from oco.compiler.algorithms import ALGORITHMS

pytest.importorskip("jax")
CORNERS = ("ofw", "scofw-tvc", "pacing", "two-point")
"""Linear minimisation, that with constraints, previous decisions in the data, and random draws; `test_jax.py` has projected steps."""


def decisions_of(learner: Learner) -> np.ndarray[Any, Any]:
    """Decision of the round, or its factors, as one vector."""
    return np.concatenate([np.ravel(d) for d in learner.decisions()])


def played(learner: Learner, rounds: list[dict[str, Any]]) -> list[np.ndarray[Any, Any]]:
    """Decisions of all rounds: in few calls of the program where it plays many rounds in one."""
    program = learner.compiled.program
    if can_play(learner) and not program.context and not learner.contract.delay:
        streams = {f.name: np.stack([r[f.name] for r in rounds]) for f in program.feedback}
        parts = play(learner, lambda start, stop: {n: a[start:stop] for n, a in streams.items()}, len(rounds))
        return [np.concatenate([np.ravel(d[k]) for d in p.decisions.values()]) for p in parts for k in range(p.rounds)]
    made = []
    for streams in rounds:
        learner.decide(**{n: streams[n] for n in program.context})
        made.append(decisions_of(learner) if not learner.contract.delay else np.ravel(learner.decide()))
        learner.observe(**{n: v for n, v in streams.items() if n not in program.context})
    return made


@pytest.mark.filterwarnings("ignore:the horizon of")
@pytest.mark.parametrize("algorithm", corners([a.name for a in ALGORITHMS], CORNERS))
def test_jax_decides_as_numpy(algorithm: str, request: pytest.FixtureRequest) -> None:
    count = request.config.getoption("--agreement")
    name = next(n for n in NAMES if n in models_of(algorithm, 1))
    plan, worst = plan_with(name, algorithm), 0.0
    rounds = list(rounds_of(plan, count))
    ours, theirs = (
        make_learner(backend(b).compile(plan.program, plan.contract), plan.contract, on_out_of_bounds="accept")
        for b in ("jax", "numpy")
    )
    for mine, expected in zip(played(ours, rounds), played(theirs, rounds), strict=True):
        worst = max(worst, float(np.abs(mine - expected).max()) / max(1.0, float(np.abs(expected).max())))
    print(f"| {algorithm} | {name} | {count} | {worst:.1e} |")
    assert worst <= 1e-9
