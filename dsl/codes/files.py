"""Files and the command line (OCO9xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code

FILES: dict[str, Code] = {}
