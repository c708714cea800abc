"""`python .ci/audit.py REPORT`: what pip-audit found (its JSON), in a few lines. Nothing is called free of faults that nobody looked at."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def lines(report: str) -> list[str]:
    """One line for each known vulnerability, and one that says how many packages were looked up."""
    try:
        packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return ["audit: nothing was audited: pip-audit gave no report"]
    known = [p for p in packages if "skip_reason" not in p]
    if not known:
        return [f"audit: nothing was audited: the registry that was asked knows none of {len(packages)} packages"]
    faulty = [p for p in known if p["vulns"]]
    found = [f"audit: {p['name']} {p['version']}: {', '.join(v['id'] for v in p['vulns'])}" for p in faulty]
    said = f"{len(faulty)} with known vulnerabilities" if faulty else "no known vulnerabilities in them"
    return [*found, f"audit: {len(known)} of {len(packages)} packages were looked up: {said}"]


if __name__ == "__main__":
    path = Path(sys.argv[1])
    print("\n".join(lines(path.read_text(encoding="utf-8") if path.exists() else "")))
