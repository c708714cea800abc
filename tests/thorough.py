"""Cases that are left to `make fuzz`: more of what the other cases of a test show."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def thorough(*values: Any) -> Any:
    """Case of `pytest.mark.parametrize` that runs with `-m thorough` alone."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def corners(cases: Iterable[Any], kept: Collection[Any]) -> list[Any]:
    """Cases of `pytest.mark.parametrize`, in order: those that are not kept are thorough. A tuple is the values of one case."""
    return [case if case in kept else thorough(*(case if isinstance(case, tuple) else (case,))) for case in cases]
