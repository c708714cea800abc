"""Commands on untrusted files, in a child process with limits of the operating system on time, memory and files."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from oco.dsl.diagnostics import fail
from oco.dsl.records import dataclass

MOST_FILES = 256
"""Files that the child may have open at once."""
LARGEST_FILE = 2**30
"""Bytes of a file that the child writes."""
CHILD = "import sys; from oco.cli.child import child; sys.exit(child(sys.argv[1:]))"
KEPT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TERM",
    "COLUMNS",
    "NO_COLOR",
    "TMPDIR",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "XDG_CACHE_HOME",
    "CC",
)
"""Variables of the environment that the child sees."""


@dataclass(frozen=True)
class CommandResult:
    """Result of an untrusted command: exit status, and texts on standard output and standard error ("" where not
    captured).
    """

    status: int
    output: str
    errors: str


@dataclass(frozen=True)
class Untrusted:
    """Runner of commands in child processes that the operating system ends at limits.

    seconds  limit on wall-clock time, and on processor time
    memory   limit on address space, in bytes

    Raises OcoError (OCO134) for limits that are not positive, and (OCO135) where the system has no such limits.
    """

    seconds: float = 30.0
    memory: int = 2 * 2**30

    def __post_init__(self) -> None:
        for name, value in (("seconds", self.seconds), ("memory", self.memory)):
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise fail(
                    "OCO134", f"{name} is a positive number, not {value!r:.60}", hint="seconds=30, memory=2 * 2**30"
                )
        try:
            import resource  # noqa: F401
        except ImportError:
            hint = "run the command in a container or a virtual machine with limits of its own"
            raise fail("OCO135", "this system has no limits on processes that Python can set", hint=hint) from None

    def run(self, words: Sequence[str], capture: bool = True, effort: float = 1.0) -> CommandResult:
        """Run `oco --effort EFFORT WORDS` in a child process; its output is captured, or goes where that of this
        process goes.

        Raises OcoError (OCO136) where the limits ended it.
        """
        import subprocess

        numbers = [str(self.seconds), str(int(self.memory)), "--effort", str(effort)]
        pipe = subprocess.PIPE if capture else None
        command = [sys.executable, "-c", CHILD, *numbers, *map(os.fspath, words)]
        with subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=_environment(),
            start_new_session=True,
            encoding="utf-8",
            errors="replace",
        ) as child:
            try:
                output, errors = child.communicate(timeout=self.seconds)
            except subprocess.TimeoutExpired:
                raise self._ended(words, f"took longer than {self.seconds:g} s") from None
            finally:
                _kill(child.pid)
        if child.returncode < 0:
            raise self._ended(words, _reason(-child.returncode))
        return CommandResult(child.returncode, output or "", errors or "")

    def check(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Facts of a model file, as `oco check --json` gives them.

        Raises OcoError (OCO136) where the limits ended the check, and where the model is refused, with its diagnostics
        as JSON.
        """
        return self._json(["check", os.fspath(path), "--json"])

    def compile(self, path: str | os.PathLike[str], output: str | os.PathLike[str]) -> dict[str, Any]:
        """Write the learner of a model file to a path that does not exist yet; returns the plan, as `oco compile
        --json` gives it.

        Raises as `check` does.
        """
        return self._json(["compile", os.fspath(path), "-o", os.fspath(output), "--json"])

    def _json(self, words: Sequence[str]) -> dict[str, Any]:
        ended = self.run(words)
        if ended.status:
            raise fail(
                "OCO136", f"the untrusted `oco {words[0]}` failed: {ended.errors.strip() or ended.output.strip()}"
            )
        results: dict[str, Any] = json.loads(ended.output)
        return results

    def _ended(self, words: Sequence[str], reason: str) -> Exception:
        name = next((w for w in words if not w.startswith("-")), "oco")
        hint = "give more with --seconds and --memory, or run it without --untrusted if you trust the file"
        return fail("OCO136", f"the untrusted `oco {name}` {reason}", hint=hint)


def untrusted(seconds: float = 30.0, memory: int = 2 * 2**30) -> Untrusted:
    """Runner that checks and compiles files from strangers in child processes with limits.

        report = oco.untrusted(seconds=10).check("theirs.oco")

    seconds  limit on wall-clock time, and on processor time
    memory   limit on address space, in bytes

    Raises OcoError (OCO134) for limits that are not positive, (OCO135) where the system has none, (OCO136) where they
    end a command.
    """
    return Untrusted(seconds, memory)


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def _kill(group: int) -> None:
    """End the child and every process that it started."""
    import signal

    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _reason(number: int) -> str:
    import signal

    match signal.Signals(number):
        case signal.SIGXCPU | signal.SIGKILL:
            return "took more processor time or memory than it may"
        case signal.SIGXFSZ:
            return f"wrote a file of more than {LARGEST_FILE:,} bytes"
        case other:
            return f"was ended by {other.name}, as where memory ends"


def limit(seconds: float, memory: int) -> None:
    """Limit this process: processor time in whole seconds (math.inf: not), bytes of address space, number and size of its files."""
    import resource

    limits = {
        resource.RLIMIT_CPU: resource.RLIM_INFINITY if seconds == math.inf else int(seconds) + 1,
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: LARGEST_FILE,
        resource.RLIMIT_NOFILE: MOST_FILES,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in limits.items():
        _, hard = resource.getrlimit(kind)
        least = most if hard == resource.RLIM_INFINITY else hard if most == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (least, least))
