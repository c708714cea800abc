"""The engine of tables of runs that is used where none is named."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from oco.evaluation.engines import Automatic, Processes
from oco.evaluation.sweep import Job, Outcome


@pytest.mark.parametrize(("seconds", "elsewhere"), [(0.1, 0), (60.0, 2)])
def test_short_jobs_stay_in_this_process(seconds: float, elsewhere: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes start only where what is left takes longer than starting them."""
    sent: list[Job] = []

    def on_cores(self: Processes, work: Any, jobs: Sequence[Job]) -> Iterator[Outcome]:
        sent.extend(jobs)
        return map(work, jobs)

    monkeypatch.setattr(Processes, "width", 2)
    monkeypatch.setattr(Processes, "__call__", on_cores)
    jobs = [Job("coldq", seed) for seed in range(3)]
    found = [*Automatic()(lambda job: Outcome(job, seconds=seconds), jobs)]
    assert [outcome.job for outcome in found] == jobs and sent == jobs[3 - elsewhere :]


def test_one_core_needs_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Processes, "width", 1)
    monkeypatch.setattr(Processes, "__call__", lambda *given: pytest.fail("processes were started"))
    jobs = [Job("coldq", seed) for seed in range(3)]
    assert len([*Automatic()(lambda job: Outcome(job, seconds=1e3), jobs)]) == 3
