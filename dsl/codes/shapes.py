"""Shapes, types and indexing (OCO3xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code

SHAPES: dict[str, Code] = {}
