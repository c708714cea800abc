"""Syntax: the text cannot be read (OCO1xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code

SYNTAX: dict[str, Code] = {}
