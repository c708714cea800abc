"""Plans, algorithms, backends and settings (OCO7xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code

PLANS: dict[str, Code] = {}
