"""Earlier finds: minimised models with the law that they broke, as files that are replayed.

A header says it in comments: `# law: NAME`, `# seed: N`, `# params: JSON` for params that the text leaves open, and `# open: WHY` where
the law is still broken. While it is, the same kind of failure elsewhere is excused; when it is mended, nothing is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fuzz.case import Case, Law, Refused, Violation
from fuzz.clock import OutOfTime, within
from fuzz.reading import tree_of
from fuzz.typed import Tree

import oco

FOLDER = Path(__file__).parent / "corpus"
LONGEST = 60.0
"""Seconds that a law may take on one file."""
HEADER = re.compile(r"^# (law|seed|params|open): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Kept:
    """A file of the corpus: the law, the seed of its random choices, and why it is still broken, "" where it is not."""

    path: Path
    law: str
    seed: int
    open: str

    def case(self, effort: float = 1.0) -> Case:
        text = self.path.read_text(encoding="utf-8")
        given = {n: np.array(v) for n, v in json.loads(dict(HEADER.findall(text)).get("params", "{}")).items()}
        return Case(tree_of(oco.parse(text, params=given or None)), self.seed, effort)


def kept() -> Iterator[Kept]:
    """The files that name a law; the others are texts for the fuzzer of texts."""
    for path in sorted(FOLDER.glob("*.oco")):
        said = dict(HEADER.findall(path.read_text(encoding="utf-8", errors="replace")))
        if "law" in said:
            yield Kept(path, said["law"], int(said.get("seed", "0")), said.get("open", ""))


def excused(laws: Mapping[str, Law]) -> frozenset[str]:
    """The kinds of failure that are known to be open, each shown by a file on which it still happens."""
    found = set()
    for one in kept():
        if one.open and one.law in laws:
            try:
                with within(LONGEST):
                    laws[one.law](one.case())
            except Violation as violation:
                found.add(violation.kind)
            except (Refused, OutOfTime):
                continue
    return frozenset(found)


def written(tree: Tree, law: str, seed: int, kind: str, message: str, folder: Path = FOLDER) -> Path:
    """The file that keeps a model on which a law failed."""
    folder.mkdir(exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "_", f"{law} {kind}".lower()).strip("_")[:60]
    path = folder / f"{slug}.oco"
    lines = [f"# law: {law}", f"# seed: {seed}"]
    if tree.given:
        lines.append(f"# params: {json.dumps({n: v.tolist() for n, v in tree.given.items()})}")
    lines.append(f"# {message.splitlines()[0][:130]}")
    path.write_text("\n".join(lines) + f"\n{tree.text}", encoding="utf-8")
    return path
