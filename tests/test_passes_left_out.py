"""Every pass of the IR can be left out: interpreter, NumPy and C then give the same, on every domain and with every algorithm.

Each case leaves out one pass of each kind, another than the case before; the thorough cases leave out all in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from domain_cases import Case, points
from ir_programs import same_bits
from test_backends_agree import MODELS, applicable, model_of, plan_with, rounds_of
from test_c99 import build, needs_compiler
from test_domains_c import CHOSEN, operations
from thorough import corners, one_in

import oco
from oco.backends.c99.module import emit
from oco.backends.python.backend import NumpyBackend
from oco.compiler.algorithms import ALGORITHMS
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.passes import CALLS, LOOPS, PASSES, lower, optimize, shorten
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer
from oco.compiler.proximal.known_step import carried_field

Array = np.ndarray[Any, Any]
Step = Callable[[str, Sequence[Any]], Sequence[Any]]
WITHOUT = [*((p,) for p in PASSES), tuple(PASSES)]
IN_LOOPS = [*((p,) for p in LOOPS), tuple(LOOPS)]
IN_CALLS = [*((p,) for p in CALLS), tuple(CALLS)]
SLOW = ("cut-spectrahedron", "box-row-equal", "birkhoff-one")
"""Sets with the operations of `cut-ball`, `box-row` and `birkhoff`, in more of them."""
QUIET = (
    "-Wno-error=unused-function",  # what is not used stays where `dead-code` is left out
    "-Wno-error=unused-variable",
    "-Wno-error=unused-but-set-variable",
    "-Wno-error=unused-const-variable",
    "-Wno-tautological-compare",
    "-Wno-type-limits",
    "-O0",
)


def stepping(compiled: Any) -> Step:
    return lambda function, args: getattr(compiled, function)(*args)


def interpreting(program: Program) -> Step:
    return lambda function, args: interpret(program, function, args)


def agree(traced: Program, path: Callable[[Step], Array], room: float, turn: int, folder: Path, every: bool) -> None:
    """The path of a program by the interpreter, before any pass, is that of every backend whatever is left out.

    `turn` chooses what is left out of each kind; `every`: all of it, one after another.
    """

    def of(kind: Sequence[Any]) -> Sequence[Any]:
        return kind if every else [kind[turn % len(kind)]]

    pairs = of([((), skip) for skip in IN_LOOPS] + [(skip, IN_LOOPS[-1] if len(skip) > 1 else ()) for skip in WITHOUT])
    programs = {s: optimize(traced, s, check_each=True) for s in {(), *of(WITHOUT), *(skip for skip, _ in pairs)}}
    for skip in of(IN_CALLS):
        shorten(programs[()], skip, check_each=True)
    for skip in of(IN_LOOPS):
        lower(programs[()], skip, check_each=True)
    with np.errstate(all="ignore"):
        meant = path(interpreting(traced))
        room *= max(1.0, float(np.abs(meant).max()))
        for skip in of(WITHOUT):
            assert same_bits(path(interpreting(programs[skip])), meant), f"interpreter without {skip}"
            found = path(stepping(NumpyBackend().compile(programs[skip])))
            assert np.abs(found - meant).max() <= room, f"NumPy without {skip}"
        for skip in of(IN_CALLS):
            found = path(stepping(NumpyBackend(skip=skip).compile(programs[()])))
            assert np.abs(found - meant).max() <= room, f"NumPy without {skip}"
    variants = [replace(programs[skip], name=f"variant{k}") for k, (skip, _) in enumerate(pairs)]
    for program, native in zip(variants, build(variants, folder, *QUIET, without=[left for _, left in pairs])):
        assert np.abs(path(stepping(native)) - meant).max() <= room, f"C: {program.name} of {pairs}"


each_kind = pytest.mark.parametrize(
    "every", [pytest.param(False, id="one"), pytest.param(True, id="all", marks=pytest.mark.thorough)]
)


@needs_compiler
@each_kind
@pytest.mark.parametrize("case", corners(CHOSEN, [c for c in CHOSEN if c.name not in SLOW][::2]), ids=lambda c: c.name)
def test_domains_without_passes(case: Case, every: bool, tmp_path: Path) -> None:
    """What a domain offers, at a point near it."""
    rng, d = np.random.default_rng(5), case.at(1.0)
    traced = operations(d)
    around, inside = points(d, rng, 3)[3:4], d.sample(rng, 1)[0]
    state = [1, *(np.zeros(f.type.shape) for f in traced.state[1:])]

    def path(step: Step) -> Array:
        return np.array(
            [np.concatenate([np.ravel(x) for x in step("update", [*state, v, inside])[1:]]) for v in around]
        )

    agree(traced, path, 100 * case.tolerance, CHOSEN.index(case), tmp_path, every)


@needs_compiler
@pytest.mark.filterwarnings("ignore:the horizon of")
@each_kind
@pytest.mark.parametrize("algorithm", one_in(2, [a.name for a in ALGORITHMS]))
def test_algorithms_without_passes(algorithm: str, every: bool, tmp_path: Path) -> None:
    """The decisions of some rounds, of the last model that the algorithm takes."""
    models = [name for name in MODELS if algorithm in applicable(name)]
    if not models:
        return  # an example alone, which `tests/test_backends_agree.py` plays
    plan = plan_with(models[-1], algorithm)
    rng, program = np.random.default_rng(0), plan.traced
    state_names = [f.name for f in program.state]
    rounds = []
    for streams in rounds_of(plan, 3):
        left = {f.name: rng.random(f.type.shape) for f in program.feedback if f.name not in streams}
        rounds.append((streams | left, [rng.random(f.type.shape) for f in program.draws]))

    def path(step: Step) -> Array:
        state, found = step("init", [plan.contract.start[f.name] for f in program.decision]), []
        for values, drawn in rounds:
            kept = {
                f.name: state_names.index(carried_field(f.name))
                for f in program.feedback
                if carried_field(f.name) in state_names
            }
            values = values | {n: state[i] for n, i in kept.items()}  # what a round leaves to the next, as a run has it
            found.append(np.concatenate([np.ravel(x) for x in step("decide", [*state, *drawn])]))
            state = step("update", [*state, *(values[f.name] for f in program.feedback), *drawn])
        return np.array(found)

    agree(program, path, 1e-12, [a.name for a in ALGORITHMS].index(algorithm) // 2, tmp_path, every)


def test_c_has_dead_code_where_its_pass_is_left_out() -> None:
    """`emit` runs no pass that cannot be left out."""
    plan = oco.compile(model_of("tracking"), algorithm="coldq")
    program = optimize(plan.traced, ("dead-code",))
    lines = [len(emit(program, plan.contract, skip).code.splitlines()) for skip in ((), ("dead-code",))]
    assert lines[0] < lines[1]
    assert emit(program, plan.contract).code == emit(optimize(plan.traced), plan.contract).code


@needs_compiler
def test_an_array_in_several_shapes(tmp_path: Path) -> None:
    """Shapes of shapes, of what is computed and of what has no entries: C reads the entries where they lie."""
    t = Tracer("shapes")

    def update(state: Mapping[str, Any], seen: Mapping[str, Any], drawn: Mapping[str, Any]) -> Mapping[str, Any]:
        twice = t.reshape(t.reshape(seen["v"] * 2.0, (2, 6)), (4, 3))
        none = t.reshape(t.reshape(seen["none"] + 1.0, (3, 0)), (0, 2))
        return {"x": t.reshape(t.transpose(twice), (12,)) + t.reshape(twice, (12,)) + t.sum(none)}

    made = trace_program(
        t,
        decision=[Field("x", Type(DType.FLOAT, (12,)))],
        feedback=[Field("v", Type(DType.FLOAT, (3, 4))), Field("none", Type(DType.FLOAT, (0, 3)))],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=update,
    )
    v = np.arange(12.0).reshape(3, 4) ** 2

    def path(step: Step) -> Array:
        return np.array(step("update", [1, np.zeros(12), v, np.zeros((0, 3))])[1])

    assert np.array_equal(path(interpreting(made)), 2 * (v.reshape(4, 3).T.ravel() + v.ravel()))
    agree(made, path, 0.0, 0, tmp_path, every=True)
