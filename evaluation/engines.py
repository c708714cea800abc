"""Engines that run a table of jobs: in this process, in processes on its cores, on a Ray cluster."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass
from oco.evaluation.sweep import Job, Outcome, SharesArrays, Work, reason

Array = np.ndarray[Any, Any]

CLIENT_PORT = 10001  # of a Ray client server, where the address says nothing else
SECONDS_TO_START = 4.0
"""Seconds until new processes have begun: they load this package and compile the model anew."""
SECONDS_TO_ANSWER = 5.0  # seconds that a cluster has to answer, before an error says that none does

ENDED = "its process ended before it was done"
"""Reason of a run whose worker was killed, as where memory ends."""


def here(work: Callable[[Job], Outcome], jobs: Sequence[Job]) -> Iterator[Outcome]:
    """Run the jobs one after another in this process."""
    yield from map(work, jobs)


@dataclass(frozen=True)
class Processes:
    """Engine on the cores of this machine, with a process for each of `workers` (None: all cores).

    When the consumer stops reading outcomes (Ctrl-C), unfinished runs are ended and left out.
    """

    workers: int | None = None

    @property
    def width(self) -> int:
        """Number of runs in progress at once."""
        return self.workers or os.cpu_count() or 1

    def __call__(self, work: Callable[[Job], Outcome], jobs: Sequence[Job]) -> Iterator[Outcome]:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor, as_completed
        from concurrent.futures.process import BrokenProcessPool

        context, others, done = multiprocessing.get_context("spawn"), set(multiprocessing.active_children()), False
        pool = ProcessPoolExecutor(self.workers, mp_context=context, initializer=_end_with_the_table)
        try:
            waiting = {pool.submit(work, job): job for job in jobs}
            for future in as_completed(waiting):
                try:
                    yield future.result()
                except BrokenProcessPool:
                    yield Outcome(waiting[future], error=ENDED)
            done = True
        finally:
            pool.shutdown(wait=done, cancel_futures=True)
            for worker in () if done else set(multiprocessing.active_children()) - others:
                worker.terminate()


@dataclass(frozen=True)
class Automatic:
    """Engine that runs jobs in this process for as long as processes on the cores, which have to start first, would end no sooner."""

    @property
    def width(self) -> int:
        """Number of runs in progress at once."""
        return 1

    def __call__(self, work: Callable[[Job], Outcome], jobs: Sequence[Job]) -> Iterator[Outcome]:
        cores = Processes()
        for done, job in enumerate(jobs, 1):
            outcome = work(job)
            yield outcome
            once = SECONDS_TO_START if done == 1 else 0.0  # the first one compiles the model, as a process would
            alone = max(0.0, outcome.seconds - once) * (len(jobs) - done)
            if SECONDS_TO_START + alone / cores.width < alone:
                yield from cores(work, jobs[done:])
                return


def _end_with_the_table() -> None:
    """Prepare a worker: Ctrl-C ends it at once, where Python would count it as the failure of one run and begin the
    next.

    So does the end of the parent process, which may be killed: a worker would wait for more jobs for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_after_parent, daemon=True).start()


def _end_after_parent() -> None:
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@dataclass(frozen=True)
class Ray:
    """Engine on a Ray cluster. Data goes to its object store once.

    With an `address`, the cluster there; with a number of `workers`, one that is started on this machine; with neither,
    the one that this process is already connected to, which is left running, or else the one that Ray finds
    (RAY_ADDRESS) or starts on all cores.

    Raises OCO909 where Ray is not installed or the cluster does not answer.
    """

    address: str | None = None
    workers: int | None = None

    def __call__(self, work: Callable[[Job], Outcome], jobs: Sequence[Job]) -> Iterator[Outcome]:
        with self.connected() as ray:
            remote, execute = ray.remote(_called), getattr(work, "execute", None)
            arrays = dict(execute.arrays()) if isinstance(execute, SharesArrays) else {}
            names, stored = list(arrays), [ray.put(np.asarray(a)) for a in arrays.values()]
            shared = ray.put(work)
            waiting = {remote.remote(shared, job, names, *stored): job for job in jobs}
            while waiting:
                ready, _ = ray.wait(list(waiting))
                for reference in ready:
                    job = waiting.pop(reference)
                    try:
                        yield ray.get(reference)
                    except ray.exceptions.RayTaskError as error:
                        yield Outcome(job, error=reason(error))
                    except ray.exceptions.RayError as error:
                        yield Outcome(job, error=f"{ENDED} ({type(error).__name__}: {error})")

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """Ray module, connected to a cluster; a cluster that was started here is ended on leaving."""
        try:
            import ray
        except ImportError:
            raise fail("OCO909", "ray is not installed") from None
        own = bool(self.address or self.workers) or not ray.is_initialized()
        if own:
            quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
            local = {"address": "local", "num_cpus": self.workers, "include_dashboard": False}
            place = {"address": self.address} if self.workers is None else local
            try:
                _must_answer(self.address)
                ray.init(**place, **quiet)
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                where = f"the Ray cluster at {self.address}" if self.address else "a Ray cluster"
                message = str(error).strip().partition("\n")[0]
                raise fail("OCO909", f"{where} does not answer ({type(error).__name__}: {message})") from error
        try:
            yield ray
        finally:
            if own:
                ray.shutdown()


def _must_answer(address: str | None) -> None:
    """Raise OSError where nothing listens at a ray:// address: Ray itself tries for half a minute."""
    place = urlsplit(address or "")
    if place.scheme == "ray":
        socket.create_connection((place.hostname, place.port or CLIENT_PORT), SECONDS_TO_ANSWER).close()


def _called(work: Callable[[Job], Outcome], job: Job, names: Sequence[str], *arrays: Array) -> Outcome:
    """Run a job in a worker of Ray, which hands over the arrays without a copy."""
    if isinstance(work, Work) and isinstance(work.execute, SharesArrays):
        work = Work(work.execute.over(dict(zip(names, arrays))))
    return work(job)
