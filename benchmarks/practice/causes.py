"""Causes of the targets that the default misses, by problem."""

from __future__ import annotations

from collections.abc import Mapping

CAUSES: Mapping[str, str] = {}
