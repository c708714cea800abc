"""Names: what is declared, where and how often (OCO2xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code

NAMES: dict[str, Code] = {}
