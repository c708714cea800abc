"""Data and the learner (OCO8xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code

DATA: dict[str, Code] = {}
