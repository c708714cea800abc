"""Large matrices as few outer products: decisions that would be larger as whole arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from oco.compiler.ir.program import Program
from oco.compiler.lowering.storage import FACTORS
from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Factors:
    """Matrix X = diagonal I + U diag(s) V' with U of shape (m, k), s (k,) and V (n, k). `numpy.asarray` and `dense`
    write it out.
    """

    U: Array
    s: Array
    V: Array
    diagonal: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """Shape (m, n)."""
        return len(self.U), len(self.V)

    @property
    def ndim(self) -> int:
        """Number of axes, 2."""
        return 2

    @property
    def nbytes(self) -> int:
        """Bytes of the factors."""
        return int(self.U.nbytes + self.s.nbytes + self.V.nbytes)

    def entries(self, rows: Any, columns: Any) -> Array:
        """Entries X[rows, columns]: indices pair by broadcasting."""
        i, j = np.broadcast_arrays(np.asarray(rows), np.asarray(columns))
        result = np.asarray(np.einsum("...k,k,...k->...", self.U[i], self.s, self.V[j]))
        return np.asarray(result + self.diagonal * (i == j)) if self.diagonal else result

    def dense(self) -> Array:
        """Matrix X as an array of shape (m, n)."""
        result = np.asarray((self.U * self.s) @ self.V.T)
        if self.diagonal:
            np.fill_diagonal(result, result.diagonal() + self.diagonal)
        return result

    def used(self) -> Factors:
        """Copy without terms of weight zero; it shares no memory."""
        kept = self.s != 0
        return Factors(self.U[:, kept], self.s[kept], self.V[:, kept], float(self.diagonal))

    def distance(self, other: Factors) -> float:
        """Frobenius distance |X - Y|_F, to half the digits of |X|."""
        U, V = np.hstack([self.U, other.U]), np.hstack([self.V, other.V])
        s, a = np.append(self.s, -other.s), self.diagonal - other.diagonal
        square = s @ ((U.T @ U) * (V.T @ V)) @ s + a * (
            2 * (s @ np.einsum("ik,ik->k", U, V)) + a * len(U) if a else 0.0
        )
        return float(np.sqrt(max(square, 0.0)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.dense() if dtype is None else self.dense().astype(dtype)

    def __repr__(self) -> str:
        m, n = self.shape
        return f"Factors({m} x {n}, {int(np.count_nonzero(self.s))} terms)"

    @classmethod
    def of(cls, x: Any, terms: int, identity: bool = False) -> Factors:
        """Factors of a matrix of at most that rank, with orthonormal columns; the least eigenvalue times the identity
        is subtracted first where that is kept apart.

        Raises OCO846 where the rank is larger.
        """
        diagonal = size = 0.0
        if isinstance(x, cls) and (identity or not x.diagonal):
            diagonal = x.diagonal
            (A, a), (B, b) = np.linalg.qr(x.U), np.linalg.qr(x.V)
            core, s, coret = np.linalg.svd((a * x.s) @ b.T)
            U, V = A @ core, B @ coret.T
        else:
            whole = np.array(x, dtype=np.float64)
            if identity:
                values = np.linalg.eigvalsh((whole + whole.T) / 2)
                diagonal, size = float(values[0]), float(abs(values).max())
                np.fill_diagonal(whole, whole.diagonal() - diagonal)
            U, s, vt = np.linalg.svd(whole, full_matrices=False)
            V = vt.T
        used = int(np.sum(s > np.finfo(float).eps * len(s) * max(np.max(s, initial=0.0), size)))
        if used > terms:
            beside = " beside a multiple of the identity" if identity else ""
            raise fail(
                "OCO846",
                f"the start has rank {used}{beside}; decisions of this size are kept as {terms} outer products",
            )
        order = np.argsort(-s, kind="stable")[:used]
        room = ((0, 0), (0, terms - used))
        return cls(np.pad(U[:, order], room), np.pad(s[order], room[1]), np.pad(V[:, order], room), diagonal)

    @property
    def parts(self) -> tuple[Any, ...]:
        """Fields in the order of `FACTORS`."""
        return self.U, self.s, self.V, self.diagonal


def names_of(program: Program) -> tuple[str, ...]:
    """Names of the decisions, in the order of the model."""
    names = {f"{name}_{part}": name for name in program.factored for part in FACTORS}
    return tuple(dict.fromkeys(names.get(f.name, f.name) for f in program.decision))


def decisions_of(program: Program, values: Sequence[Any]) -> dict[str, Any]:
    """Decisions by name from the fields of the program."""
    return _joined(program, {f.name: np.array(v) for f, v in zip(program.decision, values)})


def points_of(program: Program, values: Sequence[Any]) -> tuple[Any, ...]:
    """Copy of the decisions in the order of the model: arrays, and the terms in use of those kept as factors."""
    result = _joined(program, {f.name: v for f, v in zip(program.decision, values)})
    return tuple(x.used() if isinstance(x, Factors) else np.array(x) for x in result.values())


def distance(a: Sequence[Any], b: Sequence[Any]) -> float:
    """Euclidean distance of two points of a product of sets."""
    parts = [x.distance(y) if isinstance(x, Factors) else float(np.linalg.norm(np.ravel(x - y))) for x, y in zip(a, b)]
    return math.hypot(*parts)


def _joined(program: Program, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: Factors(*_present(fields, name)) if name in program.factored else fields[name]
        for name in names_of(program)
    }


def part_names(name: str) -> tuple[str, ...]:
    """Names of the fields that a decision kept as factors may have."""
    return tuple(f"{name}_{part}" for part in FACTORS)


def _present(fields: Mapping[str, Any], name: str) -> list[Any]:
    return [fields[f] for f in part_names(name) if f in fields]


def fields_of(program: Program, given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the program from decisions by name, as far as they are given."""
    types = {f.name: f.type for f in program.decision}
    results: dict[str, Any] = {}
    for name, value in given.items():
        if name in program.factored:
            kept = [f for f in part_names(name) if f in types]
            results |= dict(zip(kept, Factors.of(value, types[kept[1]].shape[0], len(kept) == len(FACTORS)).parts))
        else:
            results[name] = value
    return results


def factors_over_rounds(recorded: Mapping[str, Array], names: Sequence[str]) -> dict[str, Any]:
    """Decisions by name from recorded fields, the round first: an array, or one `Factors` a round (views, nothing is copied)."""
    results: dict[str, Any] = {}
    for name in names:
        if name in recorded:
            results[name] = recorded[name]
        elif parts := _present(recorded, name):
            results[name] = tuple(Factors(*rows) for rows in zip(*parts, strict=True))
    return results
