"""Facts and warnings (OCO6xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code

FACTS: dict[str, Code] = {}
