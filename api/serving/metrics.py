"""Metrics of a service in the text format of Prometheus (version 0.0.4)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from oco.dsl.diagnostics import OcoError
from oco.serving.calls import Action, Call, Reply

DURATIONS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Bounds of the histograms of times: half a millisecond is a call from memory, seconds are a disk that does not keep up."""
CALLS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Bounds of the histogram of calls in a transaction, up to `MOST_IN_BATCH`."""


class Histogram:
    """Counts of values up to each bound, and their sum."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: str = "") -> Iterator[str]:
        """Lines of the text format; `labels` without braces."""
        more, total = f"{labels}," if labels else "", 0
        for bound, count in zip((*map(repr, self.bounds), "+Inf"), self.counts):
            total += count
            yield f'{name}_bucket{{{more}le="{bound}"}} {total}'
        yield f"{name}_sum{_braces(labels)} {self.sum!r}"
        yield f"{name}_count{_braces(labels)} {total}"


class Metrics:
    """Counters of rounds, losses and violations of all learners of a service since it began, and times of its calls."""

    def __init__(self, labels: Sequence[str]) -> None:
        self.rounds = self.decisions = self.repeated = self.skipped = self.warnings = 0
        self.loss = 0.0
        self.violation = dict.fromkeys(labels, 0.0)
        self.broken = dict.fromkeys(labels, 0)
        self.errors: Counter[str] = Counter()
        self.seconds = {action: Histogram(DURATIONS) for action in Action}
        self.commits, self.batches = Histogram(DURATIONS), Histogram(CALLS)

    def refused(self, error: OcoError) -> None:
        """Count a request that was refused."""
        self.errors[error.code] += 1

    def answered(self, call: Call, answer: Reply | OcoError) -> None:
        """Count a call and what it recorded."""
        if isinstance(answer, OcoError):
            return
        self.warnings += len(answer.warnings)
        if not call.action.records:
            return
        self.repeated += not answer.new
        self.decisions += answer.new and call.action is Action.DECIDE
        self.skipped += answer.new and call.action is Action.SKIP
        if answer.new and call.action is Action.OBSERVE:
            self.rounds += 1
            self.loss += answer.loss or 0.0
            for label, amount in answer.violation.items():
                self.violation[label] += amount
                self.broken[label] += amount > 0

    def committed(self, seconds: float, calls: int) -> None:
        """Count a transaction of so many calls."""
        self.commits.add(seconds)
        self.batches.add(calls)

    def text(self, learners: int, regrets: Mapping[str, float]) -> str:
        """Text for Prometheus, with the number of learners and bounds of the regret by key."""
        return "\n".join(self._lines(learners, regrets)) + "\n"

    def _lines(self, learners: int, regrets: Mapping[str, float]) -> Iterator[str]:
        share = {label: count / max(self.rounds, 1) for label, count in self.broken.items()}
        yield from _metric("learners", "gauge", "Learners in the store.", {"": learners})
        yield from _metric("rounds_total", "counter", "Rounds that were observed.", {"": self.rounds})
        yield from _metric("decisions_total", "counter", "Decisions that were made.", {"": self.decisions})
        yield from _metric("skipped_total", "counter", "Rounds that were left out.", {"": self.skipped})
        yield from _metric("repeated_total", "counter", "Calls that were answered by a record.", {"": self.repeated})
        yield from _metric("loss", "gauge", "Sum of the losses.", {"": self.loss})
        by = "constraint"
        yield from _metric("violation_total", "counter", "Sum of the violations.", self.violation, by)
        yield from _metric("broken_rounds_total", "counter", "Rounds with a violation.", self.broken, by)
        yield from _metric("broken_share", "gauge", "Share of rounds with a violation.", share, by)
        yield from _metric("warnings_total", "counter", "Warnings of learners.", {"": self.warnings})
        yield from _metric("errors_total", "counter", "Requests that were refused, by code.", self.errors, "code")
        yield from _metric("certificate_regret", "gauge", "Proved bound of the static regret so far.", regrets, "key")
        yield from _head("request_seconds", "histogram", "Time from a request to its answer.")
        for action, histogram in self.seconds.items():
            yield from histogram.lines("oco_request_seconds", f'action="{action}"')
        for name, text, histogram in (
            ("commit_seconds", "Time of a transaction.", self.commits),
            ("commit_calls", "Calls of a transaction.", self.batches),
        ):
            yield from _head(name, "histogram", text)
            yield from histogram.lines(f"oco_{name}")


def _metric(name: str, kind: str, text: str, values: Mapping[str, float], label: str = "") -> Iterator[str]:
    yield from _head(name, kind, text)
    for key, value in values.items():
        labels = f'{label}="{_escaped(key)}"' if label else ""
        yield f"oco_{name}{_braces(labels)} {value!r}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP oco_{name} {text}"
    yield f"# TYPE oco_{name} {kind}"


def _braces(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
