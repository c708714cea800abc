"""Many rounds in one call: `lax.scan` over blocks of rounds of one size, so that a program is compiled for one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from oco.backends.base import Recorded
from oco.backends.contract import Contract, Range
from oco.compiler.ir.program import Field, Program
from oco.compiler.ir.verifier import KINDS

Array = np.ndarray[Any, Any]
State = tuple[Any, ...]
BLOCK = 256
"""Rounds of a block: a call takes some hundred microseconds, and a block of few rounds is padded to this."""
Round = Callable[[Any, Any, Any], tuple[State, Any]]


class WholeRuns:
    """`Compiled.run` of a program: plays rounds until the first whose input is not within its range, or after which the state would not be
    finite.

    play_round  the round of the emitted text
    """

    def __init__(self, program: Program, contract: Contract | None, play_round: Round) -> None:
        self._program = program
        ranges = {} if contract is None else contract.ranges
        most = np.finfo(np.float64).max
        each = [ranges.get(f.name, Range()) for f in program.revealed]
        self._bounds = [(np.maximum(r.lower, -most), np.minimum(r.upper, most)) for r in each]
        self._block = jax.jit(_block_of(program, play_round), static_argnames="kept")

    def __call__(
        self, state: Sequence[Any], inputs: Sequence[Any], draws: Sequence[Any], rounds: int, keep: Collection[str]
    ) -> Recorded:
        """Play rounds, as `Compiled` says."""
        arrays = _arrays([*inputs, *draws], [*self._program.revealed, *self._program.draws], rounds)
        within = self._until_wrong(arrays, rounds)
        now, done, parts = tuple(state), 0, list[Mapping[str, Any]]()
        kept = tuple(sorted(keep))
        with jax.enable_x64(True):
            while done < within:
                count = min(BLOCK, within - done)
                part = [_padded(a[done : done + count]) for a in arrays]
                split = len(self._program.revealed)
                now, played, record = self._block(now, part[:split], part[split:], count, kept=kept)
                own = int(played)
                parts.append({name: np.asarray(a)[:own] for name, a in record.items()})
                done += own
                if own < count:
                    break
        after = tuple(np.asarray(value)[()] for value in now)
        return Recorded(done, after, self._joined(parts, kept))

    def _until_wrong(self, arrays: Sequence[Array], rounds: int) -> int:
        """Number of the rounds before the first with an entry outside the range of its input."""
        good = np.ones(rounds, dtype=bool)
        for array, (low, high) in zip(arrays, self._bounds):
            good &= ((low <= array) & (array <= high)).reshape(rounds, -1).all(axis=1)
        return rounds if good.all() else int(np.argmin(good))

    def _joined(self, parts: Sequence[Mapping[str, Array]], kept: Sequence[str]) -> dict[str, Array]:
        if parts:
            return {name: np.concatenate([part[name] for part in parts]) for name in kept}
        assert self._program.measure is not None
        shapes = [r.type.shape for r in self._program.measure.body.results]
        empty = dict(zip(("loss", "constraints", "equalities"), shapes))
        empty["decisions"] = (sum(int(np.prod(f.type.shape)) for f in self._program.decision),)
        empty |= {f"after_{f.name}": f.type.shape for f in self._program.state}
        return {name: np.empty((0, *empty[name])) for name in kept}


def _arrays(values: Sequence[Any], fields: Sequence[Field], rounds: int) -> list[Array]:
    return [
        np.asarray(value, dtype=KINDS[f.type.dtype]).reshape(rounds, *f.type.shape)
        for value, f in zip(values, fields, strict=True)
    ]


def _padded(array: Array) -> Array:
    """Rounds of a block, its last one again where there are fewer."""
    missing = BLOCK - len(array)
    return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)]) if missing else array


def all_finite(values: Sequence[Any]) -> Any:
    """True where all numbers of these arrays are finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(v)) for v in values]))


def _block_of(program: Program, play_round: Round) -> Callable[..., Any]:
    """Function that plays a block: the state after it, how many rounds were played, and what was recorded of all."""
    names = [f.name for f in program.state]

    def block(state: State, inputs: Any, draws: Any, count: Any, kept: tuple[str, ...]) -> Any:
        def turn(carried: Any, of_round: Any) -> Any:
            k, inputs, draws = of_round

            def play(state: State) -> Any:
                after, (decided, loss, constraints, equalities) = play_round(state, inputs, draws)
                good = all_finite([*after, *decided])
                state = tuple(jnp.where(good, new, old) for new, old in zip(after, state))
                record = {"loss": loss, "constraints": constraints, "equalities": equalities}
                if "decisions" in kept:
                    record["decisions"] = jnp.concatenate([jnp.ravel(d) for d in decided])
                record |= {f"after_{name}": value for name, value in zip(names, state)}
                return (state, good), (good, {name: record[name] for name in kept})

            def rest(state: State) -> Any:
                _, (_, record) = jax.eval_shape(play, state)
                empty = {name: jnp.zeros(a.shape, a.dtype) for name, a in record.items()}
                return (state, jnp.asarray(False)), (jnp.asarray(False), empty)

            state, alive = carried
            return lax.cond(alive & (k < count), play, rest, state)

        begin = tuple(map(jnp.asarray, state)), jnp.asarray(True)
        (state, _), (alive, record) = lax.scan(turn, begin, (jnp.arange(BLOCK), inputs, draws))
        return state, jnp.sum(alive), record

    return block
