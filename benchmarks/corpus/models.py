"""Models of many fields, as someone would write them who has read the reference alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

MODELS: Mapping[str, Path] = {p.stem: p for p in sorted((Path(__file__).parent / "models").glob("*.oco"))}
"""Files by name."""
