"""Server of the Language Server Protocol: its answers, by the method that asks."""

from __future__ import annotations

import asyncio
import sys
from typing import Any
from urllib.parse import urlparse

from lsprotocol import types as lsp

from oco.lsp import editing, reading
from oco.lsp.checker import Checker
from oco.lsp.session import COMMANDS, OcoServer


async def opened(ls: OcoServer, params: lsp.DidOpenTextDocumentParams) -> None:
    """Read a document and check it."""
    await ls.changed(params.text_document.uri)


async def changed(ls: OcoServer, params: lsp.DidChangeTextDocumentParams) -> None:
    """Read what a document has become, and check it."""
    await ls.changed(params.text_document.uri)


def closed(ls: OcoServer, params: lsp.DidCloseTextDocumentParams) -> None:
    """Forget a document and its diagnostics."""
    ls.opened.pop(params.text_document.uri, None)
    ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(params.text_document.uri, []))


async def shutdown(ls: OcoServer, params: None) -> None:
    """End the process that checks."""
    await ls.checker.close()


ANSWERS: tuple[tuple[str, Any, Any], ...] = (
    (lsp.TEXT_DOCUMENT_DID_OPEN, opened, None),
    (lsp.TEXT_DOCUMENT_DID_CHANGE, changed, None),
    (lsp.TEXT_DOCUMENT_DID_CLOSE, closed, None),
    (lsp.SHUTDOWN, shutdown, None),
    (lsp.TEXT_DOCUMENT_HOVER, reading.hovered, None),
    (lsp.TEXT_DOCUMENT_COMPLETION, reading.completed, lsp.CompletionOptions(trigger_characters=["~", ".", "="])),
    (lsp.TEXT_DOCUMENT_SIGNATURE_HELP, reading.signature, lsp.SignatureHelpOptions(trigger_characters=["(", ","])),
    (lsp.TEXT_DOCUMENT_DEFINITION, reading.definition, None),
    (lsp.TEXT_DOCUMENT_REFERENCES, reading.references, None),
    (lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT, reading.highlighted, None),
    (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, reading.symbols, None),
    (lsp.TEXT_DOCUMENT_INLAY_HINT, reading.hints, None),
    (lsp.TEXT_DOCUMENT_CODE_LENS, reading.lenses, None),
    (lsp.TEXT_DOCUMENT_PREPARE_RENAME, editing.prepare, None),
    (lsp.TEXT_DOCUMENT_RENAME, editing.rename, lsp.RenameOptions(prepare_provider=True)),
    (lsp.TEXT_DOCUMENT_FORMATTING, editing.formatted, None),
    (lsp.TEXT_DOCUMENT_CODE_ACTION, editing.actions, lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix])),
)
"""Method, function that answers, and options that the editor is told of."""


def server(checker: Checker | None = None) -> OcoServer:
    """Server with all its answers."""
    ls = OcoServer(checker)
    for method, answer, options in ANSWERS:
        ls.feature(method, options)(answer)
    for word in COMMANDS:
        _command(ls, word)
    return ls


def _command(ls: OcoServer, word: str) -> None:
    """Command that runs `oco WORD` on the saved file, and gives what it printed."""

    @ls.command(f"oco.{word}")
    async def run(uri: str) -> str:
        path = ls.text(uri).path if urlparse(uri).scheme == "file" else ""
        command, pipe = [sys.executable, "-m", "oco", word, path], asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
        output, errors = await process.communicate()
        return (output if process.returncode == 0 else errors or output).decode(errors="replace")
