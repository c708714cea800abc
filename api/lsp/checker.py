"""Checks in a process of their own, so that an editor never waits for one, and that a hostile document ends that process alone."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import field

from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.records import dataclass
from oco.lsp.checked import Checked

SECONDS = 20.0
"""Wall-clock time of a check, after which its process is ended."""
MEMORY = 4 * 2**30
"""Address space of the process, in bytes, where the operating system limits it."""
LONGEST_LINE = 2**26
"""Bytes of a result that are read."""


@dataclass
class Checker:
    """Process that checks one document after another; begun when it is first needed, and anew after it ended.

    seconds  limit on the wall-clock time of a check
    memory   limit on address space, in bytes
    """

    seconds: float = SECONDS
    memory: int = MEMORY
    _process: asyncio.subprocess.Process | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def check(self, text: str, name: str, folder: str | None) -> Checked:
        """Result of a check. Where the process was ended at a limit, a warning that says so."""
        async with self._turn:
            try:
                return await asyncio.wait_for(self._answer(text, name, folder), self.seconds)
            except (TimeoutError, ConnectionError, ValueError, asyncio.IncompleteReadError):
                await self.close()
        words = f"the check was ended: it took longer than {self.seconds:g} s, or more memory than {self.memory / 2**30:.3g} GB"
        warning = Diagnostic("OCO136", words, None, "`oco check` in a terminal has no such limits", Severity.WARNING)
        return Checked((warning.as_data(),))

    async def begin(self) -> asyncio.subprocess.Process:
        """Process that answers."""
        if self._process is None or self._process.returncode is not None:
            pipe = asyncio.subprocess.PIPE
            command = [sys.executable, "-m", "oco.lsp.checking", str(self.memory)]
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL, limit=LONGEST_LINE
            )
        return self._process

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()

    async def _answer(self, text: str, name: str, folder: str | None) -> Checked:
        process = await self.begin()
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"text": text, "name": name, "folder": folder}).encode() + b"\n")
        await process.stdin.drain()
        line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError
        return Checked.from_data(json.loads(line))
