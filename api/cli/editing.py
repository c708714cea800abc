"""`oco lsp`: the language server."""

from __future__ import annotations

from oco.dsl.extras import require_package


def lsp() -> None:
    """Serve an editor over standard input and output, by the Language Server Protocol.

    Mistakes as you type, facts and documentation over words, completion, renaming, formatting, hints. Editors start it;
    docs/editors.md says how.
    """
    require_package("pygls", "the language server")
    from oco.lsp.server import server

    server().start_io()
