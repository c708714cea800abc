"""The table of what is known before the decision names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "known.md").read_text(encoding="utf-8")


def test_every_feature_of_the_table_has_its_test() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "tests/" in line]
    assert len(rows) >= 38
    for row in rows:
        (file, name), *more = re.findall(r"`(tests/test_\w+\.py)::(test_\w+)`", row)
        assert not more and f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), row
