"""Curvature and constraints (OCO5xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code

CONSTRAINTS: dict[str, Code] = {}
