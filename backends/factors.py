"""Large matrices as few outer products: what a learner decides where the whole array would be larger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from oco.compiler.ir.program import Program
from oco.compiler.storage import FACTORS
from oco.dsl.diagnostics import fail

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Factors:
    """X = U diag(s) V' with U of shape (m, k), s (k,) and V (n, k). `numpy.asarray` and `dense` write it out."""

    U: Array
    s: Array
    V: Array

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.U), len(self.V)

    @property
    def ndim(self) -> int:
        return 2

    @property
    def nbytes(self) -> int:
        return int(self.U.nbytes + self.s.nbytes + self.V.nbytes)

    def entries(self, rows: Any, columns: Any) -> Array:
        """X[rows, columns]: places pair by broadcasting."""
        i, j = np.broadcast_arrays(np.asarray(rows), np.asarray(columns))
        return np.asarray(np.einsum("...k,k,...k->...", self.U[i], self.s, self.V[j]))

    def dense(self) -> Array:
        """X as an array of shape (m, n)."""
        return np.asarray((self.U * self.s) @ self.V.T)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.dense() if dtype is None else self.dense().astype(dtype)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"Factors({m} x {n}, {int(np.count_nonzero(self.s))} terms)"

    @classmethod
    def of(cls, x: Any, terms: int) -> Factors:
        """The factors of a matrix of at most that rank, with orthonormal columns. Raises OCO846 where its rank is larger."""
        if isinstance(x, cls):
            (A, a), (B, b) = np.linalg.qr(x.U), np.linalg.qr(x.V)
            core, s, coret = np.linalg.svd((a * x.s) @ b.T)
            U, V = A @ core, B @ coret.T
        else:
            U, s, vt = np.linalg.svd(np.asarray(x, dtype=np.float64), full_matrices=False)
            V = vt.T
        used = int(np.sum(s > np.finfo(float).eps * len(s) * np.max(s, initial=0.0)))
        if used > terms:
            raise fail(
                "OCO846", f"the start has rank {used}; decisions of this size are kept as {terms} outer products"
            )
        order = np.argsort(-s, kind="stable")[:used]
        room = ((0, 0), (0, terms - used))
        return cls(np.pad(U[:, order], room), np.pad(s[order], room[1]), np.pad(V[:, order], room))


def names_of(program: Program) -> tuple[str, ...]:
    """The decisions by name, in the order of the model."""
    names = {f"{name}_{part}": name for name in program.factored for part in FACTORS}
    return tuple(dict.fromkeys(names.get(f.name, f.name) for f in program.decision))


def decisions_of(program: Program, values: Sequence[Any]) -> dict[str, Any]:
    """Decisions by name from the fields of the program."""
    fields = {f.name: np.array(v) for f, v in zip(program.decision, values)}
    return {
        name: Factors(*(fields[f"{name}_{part}"] for part in FACTORS)) if name in program.factored else fields[name]
        for name in names_of(program)
    }


def fields_of(program: Program, given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the program from decisions by name, as far as they are given."""
    terms = {f.name: f.type.shape[-1] for f in program.decision if f.type.shape}
    found: dict[str, Any] = {}
    for name, value in given.items():
        if name in program.factored:
            x = Factors.of(value, terms[f"{name}_{FACTORS[1]}"])
            found |= dict(zip((f"{name}_{part}" for part in FACTORS), (x.U, x.s, x.V)))
        else:
            found[name] = value
    return found


def factors_over_rounds(recorded: Mapping[str, Array], names: Sequence[str]) -> dict[str, Any]:
    """Decisions by name from recorded fields, the round first: an array, or one `Factors` a round (views, nothing is copied)."""
    found: dict[str, Any] = {}
    for name in names:
        parts = [f"{name}_{part}" for part in FACTORS]
        if name in recorded:
            found[name] = recorded[name]
        elif parts[0] in recorded:
            found[name] = tuple(Factors(*rows) for rows in zip(*(recorded[p] for p in parts), strict=True))
    return found
