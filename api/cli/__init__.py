"""The command line: `oco check | explain | compile | run | data | lint | fmt | help | algorithms | new`.

Exit status: 0 done, 1 the model or the data is wrong, or a bug, 2 the command was misused. Errors are for people on stderr; with `--json`
they are for programs too, one document on stdout.
"""

from __future__ import annotations

import atexit
import gc
import signal
import sys
from collections.abc import Sequence

from oco.cli.threads import one_thread
from oco.dsl.diagnostics import Diagnostic, OcoError, contained

NEW_OBJECTS = 500_000  # between two searches for garbage: what a command imports and reads it keeps to its end
INTERRUPTED = 130  # the status that Typer leaves with after Ctrl-C


def _raise_again(message: sys.UnraisableHookArgs) -> None:
    """Ctrl-C that came while an object was let go, or in a callback of an import: Python drops it there, so it is raised anew."""
    if not issubclass(message.exc_type, KeyboardInterrupt) or not hasattr(signal, "setitimer"):
        sys.__unraisablehook__(message)
        return
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status. Without `argv` the process is the command's, and ends with it."""
    status = _status(argv)
    if argv is None:
        # The work is done: Ctrl-C while Python lets go of it changes nothing.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return status


def _status(argv: Sequence[str] | None) -> int:
    """Exit status of a command. A bug ends it as any other error does, with its code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        with contained("this command"):
            return _dispatched(words, own_process=argv is None)
    except OcoError as error:
        from oco.cli.bug_report import with_report
        from oco.cli.output import show_diagnostics, show_error

        reported = with_report(error, words)
        show_error(reported)
        if "--json" in words:
            show_diagnostics(reported.diagnostics)
    return 1


def _dispatched(words: list[str], own_process: bool) -> int:
    """Exit status of a command that ended, was misused or interrupted, or whose output nobody reads any more. Raises what it raises
    otherwise.
    """
    try:
        if own_process:
            one_thread()
        sys.unraisablehook = _raise_again
        gc.set_threshold(NEW_OBJECTS)
        atexit.register(gc.freeze)  # what is there at the end goes with the process: no last search for garbage
        from oco.cli.app import COMMANDS, app_for
        from oco.cli.command import Invocation

        app_for(words)(args=words, prog_name="oco", obj=Invocation(tuple(words)))
    except SystemExit as stop:
        misuse = getattr(stop.__context__, "format_message", None)
        if misuse is not None and "--json" in words:
            from oco.cli.output import show_diagnostics

            hint = f"oco {words[0]} --help" if words[0] in COMMANDS else "oco --help"
            show_diagnostics([Diagnostic("OCO913", misuse(), hint=f"`{hint}` lists what there is")])
        if stop.code != INTERRUPTED:
            return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        pass
    except RuntimeError as error:
        # Python gives what is raised while a class is made as the cause of another error.
        if not isinstance(error.__cause__, KeyboardInterrupt):
            raise
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    else:
        return 0
    print("oco: interrupted", file=sys.stderr)
    return 1
