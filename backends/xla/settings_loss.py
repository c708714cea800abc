"""Cost of a run as a function of settings that JAX differentiates, maps and compiles.

A run is a scan over its rounds, whose loops end when they have converged: JAX takes derivatives through them forwards only. There are few
settings and one cost, so forward derivatives are the quick ones; the rule below gives them to `jax.grad` and to `jax.jvp`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from oco.backends.gradients import Prices, RecordedInputs
from oco.backends.xla.executed import executed
from oco.backends.xla.module import differentiable_text
from oco.compiler.ir.program import Program
from oco.dsl.diagnostics import fail

Numbers = Mapping[str, Any]


class DifferentiableLoss:
    """Cost of the run of a program over recorded inputs; `settings` are numbers of the start, by name, and `prefix` what fields of the
    program have before their names.
    """

    def __init__(
        self, program: Program, recorded: RecordedInputs, settings: Mapping[str, float], prefix: str, prices: Prices
    ) -> None:
        self._settings = dict(settings)
        run = jax.jit(_run_of(program, recorded.start, prefix, prices))
        rounds = tuple(map(np.asarray, recorded.inputs)), tuple(map(np.asarray, recorded.draws))

        def cost(numbers: Numbers) -> Any:
            return run(numbers, *rounds)

        def slopes(numbers: Numbers) -> Any:
            value, along = jax.linearize(cost, numbers)
            basis = jnp.eye(len(numbers))
            each = jax.vmap(lambda row: along(dict(zip(numbers, row))))(basis)
            return value, dict(zip(numbers, each))

        self._slopes = jax.jit(slopes)
        self._cost = jax.custom_jvp(cost)
        self._cost.defjvp(self._derivative)

    @property
    def settings(self) -> Mapping[str, float]:
        """Settings where the plan has them, by name."""
        return dict(self._settings)

    def __call__(self, settings: Numbers) -> Any:
        """Cost of the run with these settings, as an array of JAX: of 32 bits where the process has not enabled 64."""
        given = self._filled(settings)
        kind = jnp.result_type(float)
        with jax.enable_x64(True):
            result = self._cost({name: lax.convert_element_type(x, jnp.float64) for name, x in given.items()})
            return lax.convert_element_type(result, kind)

    def value_and_slopes(self, settings: Mapping[str, float]) -> tuple[float, dict[str, float]]:
        """Cost, and its derivative in each setting, as floats of 64 bits."""
        given = self._filled(settings)
        with jax.enable_x64(True):
            value, slopes = self._slopes({name: jnp.asarray(float(x)) for name, x in given.items()})
            return float(value), {name: float(slopes[name]) for name in settings}

    def _filled(self, settings: Numbers) -> dict[str, Any]:
        """Settings with those of the plan where they are left out. Raises OCO874 for a name that is none of them."""
        if unknown := [name for name in settings if name not in self._settings]:
            known = ", ".join(self._settings)
            raise fail("OCO874", f"{unknown[0]!r} is no setting that is free here", hint=f"free here: {known}")
        return {**self._settings, **settings}

    def _derivative(self, primals: Any, tangents: Any) -> Any:
        (numbers,), (along,) = primals, tangents
        value, slopes = self._slopes(numbers)
        return value, sum(slopes[name] * along[name] for name in numbers)


def _run_of(
    program: Program, start: Mapping[str, Any], prefix: str, prices: Prices
) -> Callable[[Numbers, Any, Any], Any]:
    """Function of settings, inputs and draws, the round first, that gives the cost."""
    made = executed(differentiable_text(program), f"{program.name}, differentiated")
    init, play_round = made["init"], made["play_round"]
    names = [f.name for f in program.decision]

    def run(settings: Numbers, inputs: Any, draws: Any) -> Any:
        known = {**start, **{prefix + name: x for name, x in settings.items()}}
        first = init(*(jnp.asarray(known[name]) for name in names))

        def turn(state: Any, of_round: Any) -> Any:
            after, (_, loss, constraints, equalities) = play_round(state, *of_round)
            return after, (loss, constraints, equalities)

        begin = tuple(jnp.asarray(a) for a in first)
        _, (loss, g, h) = lax.scan(turn, begin, (inputs, draws))
        loss, g, h = (a[prices.start :] for a in (loss, g, h))
        violation = jnp.where(prices.hard, jnp.maximum(g, 0.0).sum(axis=0), jnp.maximum(g.sum(axis=0), 0.0))
        return loss.sum() + violation @ prices.constraints + jnp.abs(h.sum(axis=0)) @ prices.equalities

    return run
