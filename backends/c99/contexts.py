"""Contexts of a learner in C, which compiled code and Python take in turns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from oco.backends.known import Contexts
from oco.compiler.ir.program import Field
from oco.compiler.ir.verifier import KINDS

Array = np.ndarray[Any, Any]
Known = tuple[int, dict[str, Array]]


class NativeContexts(Contexts):
    """Contexts in memory that the extension shares.

    entries  of all contexts, side by side in words of eight bytes
    before   fields of the struct as they were before the contexts were taken, as arrays over its memory
    quick    the extension, whose `known` is the round that the entries are of; 0 of none
    """

    def __init__(
        self, known: Sequence[Field], decisive: bool, entries: Array, before: Sequence[Array], quick: Any
    ) -> None:
        ends = np.cumsum([0, *(math.prod(f.type.shape) for f in known)])
        parts = [entries[a:b] for a, b in pairwise(ends)]
        self._views: dict[str, Array] = {
            f.name: p.view(KINDS[f.type.dtype]).reshape(f.type.shape) for f, p in zip(known, parts)
        }
        self._fields, self._quick = before, quick
        super().__init__([f.name for f in known], decisive)

    @property
    def _now(self) -> Known | None:
        """Round whose contexts were taken, with them, in C or in Python."""
        round = int(self._quick.known)
        return (round, {name: view.copy()[()] for name, view in self._views.items()}) if round else None

    @_now.setter
    def _now(self, known: Known | None) -> None:
        values: Mapping[str, Array] = {} if known is None else known[1]
        for name, value in values.items():
            self._views[name][...] = value
        # last, so that an interruption before it leaves no values half written
        self._quick.known = 0 if known is None else known[0]

    @property
    def _before(self) -> tuple[Any, ...]:
        """State before the contexts were taken."""
        return tuple(v.copy()[()] for v in self._fields)

    @_before.setter
    def _before(self, state: tuple[Any, ...]) -> None:
        for view, value in zip(self._fields, state):
            view[...] = value
