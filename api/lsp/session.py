"""Session with an editor: its documents as they are now, checks in the background, places in the units of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

import oco
from oco.dsl.records import dataclass
from oco.dsl.source import Span
from oco.lsp import structure
from oco.lsp.checked import Checked, folder_of
from oco.lsp.checker import Checker
from oco.lsp.document import Document

PAUSE = 0.05
"""Seconds without a change before a check begins."""
SEVERITIES = {"error": lsp.DiagnosticSeverity.Error, "warning": lsp.DiagnosticSeverity.Warning}
STYLE = frozenset({"OCO631", "OCO632"})
"""Codes that editors show as hints: the model is right as it is."""
UNUSED = frozenset({"OCO603", "OCO630"})
"""Codes of names that nothing uses, which editors show pale."""
COMMANDS = ("explain", "run")
"""Commands of `oco` that stand above the first statement of a model, as `oco.explain` and `oco.run`."""


@dataclass
class Opened:
    """Document that is open: its text, and the last result of a check of a model that could be made."""

    document: Document
    version: int | None
    checked: Checked = field(default_factory=Checked)


class OcoServer(LanguageServer):
    """Language server of one editor."""

    def __init__(self, checker: Checker | None = None) -> None:
        super().__init__("oco", oco.__version__)
        self.checker = checker or Checker()
        self.opened: dict[str, Opened] = {}

    def read(self, uri: str) -> Opened:
        """Document as it is now; one of another version is parsed anew, and keeps the facts that were known last."""
        held = self.workspace.get_text_document(uri)
        known = self.opened.get(uri)
        if known is None or known.document.source.text != held.source:
            checked = Checked() if known is None else known.checked
            known = self.opened[uri] = Opened(Document.of(held.source, held.path or uri), held.version, checked)
        return known

    def text(self, uri: str) -> TextDocument:
        """Text of a document in the units of the editor."""
        return self.workspace.get_text_document(uri)

    def offset(self, uri: str, position: lsp.Position) -> int:
        """Character of a position."""
        return self.text(uri).offset_at_position(position)

    def range(self, uri: str, start: int, end: int) -> lsp.Range:
        """Range of characters."""
        held, source = self.text(uri), self.read(uri).document.source
        places = [lsp.Position(line - 1, column - 1) for line, column in map(source.position, (start, end))]
        return held.position_codec.range_to_client_units(held.lines, lsp.Range(*places))

    def span(self, uri: str, span: Span) -> lsp.Range:
        """Range of a span."""
        return self.range(uri, span.start, span.end)

    def diagnostic(self, uri: str, one: Mapping[str, Any]) -> lsp.Diagnostic:
        """Diagnostic in the types of the protocol; what the model as a whole lacks stands at its first character."""
        span, text = one["span"], self.read(uri).document.source.text
        ends = (
            (0, 1)
            if span is None or span["file"] != self.read(uri).document.source.name
            else (span["offset"], span["end_offset"])
        )
        words = [one["message"], *(f"{kind}: {one[kind]}" for kind in ("hint", "note") if one[kind])]
        return lsp.Diagnostic(
            range=self.range(uri, min(ends[0], len(text)), min(max(ends), len(text))),
            message="\n".join(words),
            severity=lsp.DiagnosticSeverity.Hint if one["code"] in STYLE else SEVERITIES[one["severity"]],
            code=one["code"],
            tags=[lsp.DiagnosticTag.Unnecessary] if one["code"] in UNUSED else None,
            source="oco",
            data=structure.edits(one),
        )

    def publish(self, uri: str, diagnostics: Sequence[Mapping[str, Any]]) -> None:
        """Show diagnostics, in place of those before."""
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(
                uri, [self.diagnostic(uri, one) for one in diagnostics], self.read(uri).version
            )
        )

    async def changed(self, uri: str) -> None:
        """Show mistakes of syntax at once, then check in the background; a later change takes the place of an earlier one."""
        opened = self.read(uri)
        if opened.document.mistakes:
            self.publish(uri, [d.as_data() for d in opened.document.mistakes])
        await asyncio.sleep(PAUSE)
        if self.opened.get(uri) is not opened:
            return
        source = opened.document.source
        result = await self.checker.check(source.text, source.name, folder_of(self.text(uri).path))
        if self.opened.get(uri) is not opened:
            return
        if result.facts or not opened.checked.facts:
            opened.checked = result
        self.publish(uri, result.diagnostics)
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.inlay_hint is not None and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)
