"""Answers that change a document: renaming, layout, corrections."""

from __future__ import annotations

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams

from oco.dsl.diagnostics import OcoError
from oco.dsl.text.formatter import format_text
from oco.lsp import structure
from oco.lsp.session import OcoServer


def prepare(ls: OcoServer, params: lsp.PrepareRenameParams) -> lsp.Range | None:
    """Answer with the part of the text that a new name takes the place of."""
    uri = params.text_document.uri
    document = ls.read(uri).document
    at = document.at(ls.offset(uri, params.position))
    return None if at is None or document.declaration(at) is None else ls.span(uri, at.span)


def rename(ls: OcoServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit | None:
    """Answer with the edits that give a name another one. Raises JsonRpcInvalidParams where that cannot be."""
    uri = params.text_document.uri
    document = ls.read(uri).document
    at = document.at(ls.offset(uri, params.position))
    if at is None or document.declaration(at) is None:
        return None
    try:
        places = structure.renamed(document, at, params.new_name)
    except OcoError as error:
        raise JsonRpcInvalidParams(f"{error.code}: {error.message}") from None
    return lsp.WorkspaceEdit({uri: [lsp.TextEdit(ls.span(uri, place), params.new_name) for place in places]})


def formatted(ls: OcoServer, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
    """Answer with the edits that lay a document out, none where it cannot be read."""
    uri = params.text_document.uri
    text = ls.read(uri).document.source.text
    try:
        result = format_text(text)
    except OcoError:
        return []
    return [] if result == text else [lsp.TextEdit(ls.range(uri, 0, len(text)), result)]


def actions(ls: OcoServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    """Answer with the corrections that diagnostics propose."""
    uri = params.text_document.uri
    proposed = []
    for diagnostic in params.context.diagnostics:
        changes = [lsp.TextEdit(ls.range(uri, start, end), text) for start, end, text in diagnostic.data or ()]
        if changes:
            title = f"Write `{changes[0].new_text}`" if changes[0].new_text else "Leave it out"
            edit = lsp.WorkspaceEdit({uri: changes})
            kind = lsp.CodeActionKind.QuickFix
            proposed.append(lsp.CodeAction(title, kind, [diagnostic], edit=edit, is_preferred=True))
    return proposed
