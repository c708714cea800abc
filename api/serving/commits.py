"""Group commit: calls that come while a batch is written make the next batch, and all of them wait for one synchronization of the disk.

Where answers need not wait for the disk (`Durability.SYSTEM`), it follows once a second.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING

from oco.backends.database import Durability
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.logs import logger
from oco.serving.calls import Call, Reply

if TYPE_CHECKING:
    from oco.serving.metrics import Metrics
    from oco.serving.store import Store

_log = logger(__name__)
Waiting = tuple[Call, "asyncio.Future[Reply]"]
MOST_IN_BATCH = 200
"""Calls of one transaction: their learners compute for 10 ms, in which no request is read."""
MOST_WAITING = 10_000
"""Calls that wait for a transaction before further ones are refused."""
BEHIND = 1.0
"""Seconds by which the disk is behind where answers do not wait for it: what a power cut may take."""


class GroupCommits:
    """Batches of calls of one event loop: each call gets its answer once what it recorded is as durable as the store promises.

    Learners compute on the loop, since a thread beside it would take turns with it at the interpreter; a thread waits for the disk.
    """

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self.store, self.metrics = store, metrics
        self._waiting: deque[Waiting] = deque()
        self._disk = ThreadPoolExecutor(1, "oco-disk")
        self._running: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def alive(self) -> bool:
        """True while calls are answered."""
        return not self._closed

    def submit(self, call: Call) -> asyncio.Future[Reply]:
        """Reply to come. Raises OCO665 while too many calls wait, and after `close`."""
        if self._closed:
            raise fail("OCO665", "the service is going down", hint="call again once it is back: nothing is lost")
        if len(self._waiting) >= MOST_WAITING:
            raise fail("OCO665", f"{MOST_WAITING:,} calls are waiting", hint="call again a little later")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()
        self._waiting.append((call, future))
        if self._running is None or self._running.done():
            self._running = loop.create_task(self._run())
        return future

    async def close(self) -> None:
        """Answer all calls that wait, then close the store."""
        self._closed = True
        if self._running is not None:
            await self._running
        if self._following is not None:
            self._following.cancel()  # closing the store puts all of it on the disk
        self._disk.shutdown()
        self.store.close()

    async def _run(self) -> None:
        while self._waiting:
            await self._commit([self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_IN_BATCH))])

    async def _commit(self, batch: list[Waiting]) -> None:
        """One transaction. A call that fails by a bug of ours must not take the others with it: then each has its own."""
        began = time.perf_counter()
        loop = asyncio.get_running_loop()
        try:
            with ExitStack() as transaction:
                answers = transaction.enter_context(self.store.batch([call for call, _ in batch]))
                if self.store.durability is Durability.DISK:
                    await loop.run_in_executor(self._disk, transaction.pop_all().close)
        except OcoError as error:
            for _, future in batch:
                _give(future, error)
        except Exception as error:  # a bug
            if len(batch) == 1:
                _give(batch[0][1], error)
                return
            for one in batch:
                await self._commit([one])
        else:
            if self.store.durability is Durability.SYSTEM and self._following is None:
                self._following = loop.create_task(self._follow())
            self.metrics.committed(time.perf_counter() - began, len(batch))
            for (call, future), answer in zip(batch, answers):
                self.metrics.answered(call, answer)
                _give(future, answer)

    async def _follow(self) -> None:
        """Put on the disk what was committed, a little later. A disk that fails then is an error in the metrics and the log."""
        await asyncio.sleep(BEHIND)
        self._following = None  # what is committed from here on may come too late for this synchronization
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk, self.store.synchronize)
        except OcoError as error:
            self.metrics.refused(error)
            _log.error("%s", error)


def _give(future: asyncio.Future[Reply], answer: Reply | Exception) -> None:
    """Give an answer, or an error, to who waits; nothing where nobody does any more."""
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
