"""Words of the language as functions: atoms (`sum`, `log`), domains (`box`, `simplex`) and distributions (`poisson`,
`uniform`).

They are made from the tables of the language. Editors and type checkers read their signatures in `words.pyi`, which
`make stubs` writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oco.domains import DOMAIN_CONSTRUCTORS
from oco.dsl.functions import DISTRIBUTION_FUNCTIONS, FUNCTIONS

WORDS: dict[str, Callable[..., Any]] = {**FUNCTIONS, **DOMAIN_CONSTRUCTORS, **DISTRIBUTION_FUNCTIONS}

__all__ = sorted(WORDS)

globals().update(WORDS)
