"""Numbers that documents quote and that no machine changes: `python benchmarks/counts.py` works them out and writes them in place.

tests/test_documents.py holds that they are those of the tree. Times are no counts: each page says which command measures them.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import oco

ROOT = Path(__file__).parent.parent
TRACKING, JOBS = ROOT / "examples" / "tracking.oco", ROOT / "examples" / "job_scheduling.oco"
PRICES = ROOT / "examples" / "data" / "nyiso_2017-05.csv"


@dataclass(frozen=True)
class Quote:
    """A passage of a document; `{}` stands for each number, `counts` works them out in this order."""

    file: str
    passage: str
    counts: Callable[[], tuple[int, ...]]

    @property
    def pattern(self) -> re.Pattern[str]:
        """The passage with any numbers, wherever lines end."""
        words = (re.escape(part) for part in self.passage.format(*["@@"] * self.passage.count("{}")).split())
        return re.compile(r"\s+".join(words).replace("@@", r"([\d,.]*\d)"))

    def quoted(self, text: str) -> tuple[int, ...]:
        """Numbers that stand in the text. ValueError where the passage is not there exactly once."""
        (numbers,) = self.pattern.findall(text)
        return tuple(round(float(n.replace(",", ""))) for n in ([numbers] if isinstance(numbers, str) else numbers))

    def written(self, text: str) -> str:
        """The text with the numbers of today. One that stands there with more digits stays where it rounds to today's."""
        (match,) = self.pattern.finditer(text)
        for k, number in reversed(list(enumerate(self.counts(), start=1))):
            if self.quoted(text)[k - 1] != number:
                text = text[: match.start(k)] + f"{number:,}" + text[match.end(k) :]
        return text


def source_lines() -> tuple[int, ...]:
    """Lines of C of coldq on examples/tracking.oco, for `paper` and for `optimal` settings."""
    model = oco.load(TRACKING)
    plans = (oco.compile(model, algorithm="coldq", settings=kind) for kind in ("paper", "optimal"))
    return tuple(len(plan.source("c").splitlines()) for plan in plans)


@cache
def played(*words: str, prices: str = "[-1000, 3000]") -> tuple[int, ...]:
    """Loss, hard violation and rounds that break the constraint, of examples/job_scheduling.oco on the prices of May 2017."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / JOBS.name
        text = JOBS.read_text(encoding="utf-8")
        assert text.count("[-1000, 3000]") == 1
        model.write_text(text.replace("[-1000, 3000]", prices), encoding="utf-8")
        less = ("--comparators", "none", "--baselines", "none")  # they change none of these numbers
        command = [sys.executable, "-m", "oco", "run", str(model), "--data", str(PRICES), "--json", *less, *words]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    (run,) = json.loads(done.stdout)["runs"]
    violation: Mapping[str, float] = run["violation"][0]
    return tuple(map(round, (run["loss"], violation["hard"], violation["rounds"])))


QUOTES = (
    Quote("docs/speed.md", "| lines of C for tracking, settings `paper` and `optimal` | {}, {} |", source_lines),
    Quote(
        "docs/choosing.md",
        "the papers' settings of `coldq` cost less ({}) and break the constraint more ({} jobs in {} rounds).",
        lambda: played("--algorithms", "coldq", "--settings", "paper"),
    ),
    Quote(
        "docs/choosing.md",
        "(`price[10] in [-132, 711]`) the default costs {} and delays {} jobs in {} rounds.",
        lambda: played(prices="[-132, 711]"),
    ),
    Quote("README.md", "\njob_scheduling lost {} in 744 rounds", lambda: played()[:1]),
    Quote("README.md", "\nviolation, summed {} ", lambda: played()[1:2]),
    Quote("README.md", "\nrounds broken {} (", lambda: played()[2:]),
)


def main() -> None:
    for quote in QUOTES:
        path = ROOT / quote.file
        path.write_text(quote.written(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"{quote.file}: {quote.passage.strip()[:60]} ... {quote.quoted(path.read_text(encoding='utf-8'))}")


if __name__ == "__main__":
    main()
