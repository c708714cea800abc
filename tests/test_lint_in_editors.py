"""Lint in the language server: severities, pale names, edits as code actions."""

from __future__ import annotations

from lsprotocol import types as lsp
from test_language_server import WHOLE, Editor, with_editor

from oco.dsl.load import parse

TEXT = (
    "model m\nhorizon T = 10\nparam k = 2\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\nstream d in [0, 1]\n"
    "minimize c[0] * x[0] + c[1] * x[1] + c[2] * x[2]\n"
)


def test_an_editor_shows_lint_and_makes_its_edits() -> None:
    async def session(editor: Editor) -> None:
        shown = {d.code: d for d in await editor.write(TEXT)}
        assert shown.keys() == {"OCO603", "OCO630", "OCO631"}
        for code in ("OCO603", "OCO630"):
            assert shown[code].severity is lsp.DiagnosticSeverity.Warning
            assert list(shown[code].tags or ()) == [lsp.DiagnosticTag.Unnecessary]
        assert shown["OCO631"].severity is lsp.DiagnosticSeverity.Hint and not shown["OCO631"].tags
        context = lsp.CodeActionContext(list(shown.values()))
        actions = await editor.client.text_document_code_action_async(
            lsp.CodeActionParams(editor.document, WHOLE, context)
        )
        titles = {a.title: a for a in actions or () if isinstance(a, lsp.CodeAction)}
        assert titles.keys() == {"Leave it out", "Write `c @ x`"}
        edits = [e for a in titles.values() for e in a.edit.changes[editor.uri]]  # type: ignore[union-attr,index]
        text = editor.edited(edits)
        assert "param" not in text and "minimize c @ x\n" in text and parse(text).streams == parse(TEXT).streams
        assert [d.code for d in await editor.write(text)] == ["OCO603"]
        quiet = await editor.write("# oco: ignore OCO603, OCO630, OCO631\n" + TEXT)
        assert quiet == []

    with_editor(session)
