"""Group commit: calls that come while a batch is written make the next batch, and all of them wait for one synchronization of the disk."""

from __future__ import annotations

import time
from concurrent.futures import Future
from queue import Empty, Full, Queue
from threading import Lock, Thread
from typing import TYPE_CHECKING

from oco.dsl.diagnostics import OcoError, fail
from oco.serving.calls import Call, Reply

if TYPE_CHECKING:
    from oco.serving.metrics import Metrics
    from oco.serving.store import Store

Waiting = tuple[Call, "Future[Reply]"]
MOST_IN_BATCH = 1000
"""Calls of one transaction: more would make the first of them wait long."""
MOST_WAITING = 10_000
"""Calls that wait for a transaction before further ones are refused."""


class GroupCommits:
    """Thread that owns a store, and gives each call its answer once what it recorded is on the disk."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self.store, self.metrics = store, metrics
        self._queue: Queue[Waiting | None] = Queue(MOST_WAITING)
        self._turn = Lock()
        self._closed = False
        self._thread = Thread(target=self._run, name="oco-commits", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """True while calls are answered."""
        return self._thread.is_alive() and not self._closed

    def submit(self, call: Call, wait: bool = False) -> Future[Reply]:
        """Reply to come. Raises OCO665 while too many calls wait, unless this one may wait too, and after `close`."""
        future: Future[Reply] = Future()
        with self._turn:
            if self._closed:
                raise fail("OCO665", "the service is going down", hint="call again once it is back: nothing is lost")
            if not wait:
                try:
                    self._queue.put_nowait((call, future))
                except Full:
                    raise fail(
                        "OCO665", f"{MOST_WAITING:,} calls are waiting", hint="call again a little later"
                    ) from None
                return future
        self._queue.put((call, future))
        return future

    def close(self) -> None:
        """Answer all calls that wait, then close the store."""
        with self._turn:
            first, self._closed = not self._closed, True
        if first:
            self._queue.put(None)
        self._thread.join()
        self.store.close()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch: list[Waiting] = [first]
            last = False
            while len(batch) < MOST_IN_BATCH and not last:
                try:
                    following = self._queue.get_nowait()
                except Empty:
                    break
                if following is None:
                    last = True
                else:
                    batch.append(following)
            self._commit(batch)
            if last:
                return

    def _commit(self, batch: list[Waiting]) -> None:
        """One transaction. A call that fails by a bug of ours must not take the others with it: then each has its own."""
        began = time.perf_counter()
        try:
            answers = self.store.apply([call for call, _ in batch])
        except OcoError as error:
            for _, future in batch:
                _give(future, error)
        except Exception as error:  # a bug
            if len(batch) == 1:
                _give(batch[0][1], error)
                return
            for one in batch:
                self._commit([one])
        else:
            self.metrics.committed(time.perf_counter() - began, len(batch))
            for (call, future), answer in zip(batch, answers):
                self.metrics.answered(call, answer)
                _give(future, answer)


def _give(future: Future[Reply], answer: Reply | Exception) -> None:
    """Give an answer, or an error, to who waits; nothing where nobody does any more."""
    if future.set_running_or_notify_cancel():
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
