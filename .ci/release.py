"""`python .ci/release.py`: what is missing before this tree can be released, a line each; exit status 1 where anything is."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
RELEASE = re.compile(r"^## (\d\S*) - (\d{4}-\d{2}-\d{2})$", re.MULTILINE)


def faults(project: str, changelog: str, citation: str, tags: list[str]) -> list[str]:
    """Reasons against a release.

    project    text of pyproject.toml, whose version counts
    changelog  text of CHANGELOG.md: its first dated section must be of this version, `Unreleased` empty
    citation   text of CITATION.cff, with the same version and the date of the changelog
    tags       tags of the commit, among them `v` and the version
    """
    stated = tomllib.loads(project)["project"]
    version, found = str(stated["version"]), []
    first = RELEASE.search(changelog)
    if first is None or first[1] != version:
        found.append(f"CHANGELOG.md: the first dated section is not `## {version} - YYYY-MM-DD`")
    begun = changelog.partition("## Unreleased")[2].partition("\n## ")[0].strip()
    if begun:
        found.append("CHANGELOG.md: `Unreleased` has lines that belong to the release")
    if not re.search(rf"^version: {re.escape(version)}$", citation, re.MULTILINE):
        found.append(f"CITATION.cff: its version is not {version}")
    if first is not None and not re.search(rf"^date-released: {first[2]}$", citation, re.MULTILINE):
        found.append(f"CITATION.cff: `date-released: {first[2]}` is missing")
    if f"v{version}" not in tags:
        found.append(f"git: this commit has no tag v{version}")
    found += [f"pyproject.toml: {url} is a placeholder" for url in stated["urls"].values() if "oco.example" in url]
    return found


def main() -> int:
    names = ("pyproject.toml", "CHANGELOG.md", "CITATION.cff")
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in names]
    tags = subprocess.run(
        ["git", "tag", "--points-at", "HEAD"], cwd=ROOT, capture_output=True, text=True
    ).stdout.split()
    found = faults(*texts, tags)
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
