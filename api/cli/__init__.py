"""The command line: `oco check | explain | compile | run | data | fmt | help | algorithms | new`.

Exit status: 0 done, 1 the model or the data is wrong (said on stderr), 2 the command was misused.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from oco.dsl.diagnostics import OcoError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status."""
    from oco.cli.app import app
    from oco.cli.output import show_error

    try:
        app(args=list(argv) if argv is not None else None, prog_name="oco")
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except OcoError as error:
        show_error(error)
        return 1
    except KeyboardInterrupt:
        print("oco: interrupted; nothing was written half", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    return 0
