"""Functions that an emitted module includes where it calls them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oco.backends.python.arithmetic import larger, ratio, root, smaller
from oco.backends.python.leaving import until_done
from oco.backends.python.selection import weighted_quantile
from oco.backends.python.templates import MEANINGS

HELPERS: tuple[Callable[..., Any], ...] = (ratio, root, larger, smaller, weighted_quantile, until_done, *MEANINGS)
