"""Domains and distributions (OCO4xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code

DOMAIN_CODES: dict[str, Code] = {}
