"""The language server over its protocol, with a client library at the other end."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pygls.lsp.client import LanguageClient

from oco.dsl.load import parse
from oco.dsl.source import Source
from oco.dsl.text.formatter import format_text
from oco.lsp.checked import Checked
from oco.lsp.checking import checked
from oco.lsp.document import Document
from oco.lsp.hover import hover

ROOT = Path(__file__).parent.parent
JOBS = (ROOT / "examples" / "job_scheduling.oco").read_text(encoding="utf-8")
WHOLE = lsp.Range(lsp.Position(0, 0), lsp.Position(10_000, 0))


class Editor:
    """Editor with one document."""

    def __init__(self, client: LanguageClient, uri: str) -> None:
        self.client, self.uri, self.version, self.text = client, uri, 0, ""
        self.shown: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()

    @property
    def document(self) -> lsp.TextDocumentIdentifier:
        return lsp.TextDocumentIdentifier(self.uri)

    async def write(self, text: str) -> list[lsp.Diagnostic]:
        """Put a text in place of the last one, and wait for the diagnostics of the check."""
        self.version, self.text = self.version + 1, text
        if self.version == 1:
            item = lsp.TextDocumentItem(self.uri, "oco", 1, text)
            self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        else:
            place = lsp.VersionedTextDocumentIdentifier(self.version, self.uri)
            change = lsp.TextDocumentContentChangeWholeDocument(text)
            self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(place, [change]))
        return await self.diagnostics()

    async def diagnostics(self) -> list[lsp.Diagnostic]:
        """Next diagnostics that are shown."""
        return list((await asyncio.wait_for(self.shown.get(), 60)).diagnostics)

    def place(self, words: str, occurrence: int = 0) -> lsp.Position:
        """Position of the second character of words in the text, in UTF-16 units."""
        offset = -1
        for _ in range(occurrence + 1):
            offset = self.text.index(words, offset + 1)
        line, column = Source("", self.text).position(offset)
        before = self.text[offset - column + 1 : offset + 1]
        return lsp.Position(line - 1, len(before.encode("utf-16-le")) // 2)

    def at(self, words: str, occurrence: int = 0) -> dict[str, Any]:
        """Parameters of a question about a place."""
        return {"text_document": self.document, "position": self.place(words, occurrence)}

    def edited(self, edits: list[lsp.TextEdit]) -> str:
        """Text with edits made."""
        lines = self.text.split("\n")
        for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
            (a, b), (c, d) = ((p.line, p.character) for p in (edit.range.start, edit.range.end))
            lines[a : c + 1] = (lines[a][:b] + edit.new_text + lines[c][d:]).split("\n")
        return "\n".join(lines)


def with_editor(session: Callable[[Editor], Awaitable[None]], folder: Path = ROOT / "examples") -> None:
    """Run a session with a server in a process of its own."""

    async def run() -> None:
        client = LanguageClient("test", "1")
        editor = Editor(client, (folder / "shown.oco").as_uri())

        @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def shown(params: lsp.PublishDiagnosticsParams) -> None:
            editor.shown.put_nowait(params)

        await client.start_io(sys.executable, "-m", "oco", "lsp")
        await client.initialize_async(lsp.InitializeParams(capabilities=lsp.ClientCapabilities()))
        client.initialized(lsp.InitializedParams())
        await session(editor)
        await client.shutdown_async(None)
        client.exit(None)
        await client.stop()

    asyncio.run(run())


def test_what_an_editor_reads() -> None:
    async def session(editor: Editor) -> None:
        ask = editor.client
        assert await editor.write(JOBS) == []
        shown = await ask.text_document_hover_async(lsp.HoverParams(**editor.at("x[100]")))
        assert shown is not None and "shape [100]" in shown.contents.value and "10000" in shown.contents.value  # type: ignore[union-attr]
        shown = await ask.text_document_hover_async(lsp.HoverParams(**editor.at("service:")))
        assert "| `constraints.service.convex` | yes | proved |" in shown.contents.value  # type: ignore[union-attr]
        shown = await ask.text_document_hover_async(lsp.HoverParams(**editor.at("poisson(")))
        assert "poisson(mean)" in shown.contents.value  # type: ignore[union-attr]
        place = await ask.text_document_definition_async(lsp.DefinitionParams(**editor.at("region] * x")))
        assert place.range.start == lsp.Position(editor.place("region[100]").line, 6)  # type: ignore[union-attr]
        wanted = lsp.ReferenceContext(include_declaration=False)
        places = await ask.text_document_references_async(lsp.ReferenceParams(context=wanted, **editor.at("x[100]")))
        assert places is not None and [p.range.start.line for p in places] == [
            editor.place("sum(price").line,
            editor.place("service:").line,
        ]
        symbols = await ask.text_document_document_symbol_async(lsp.DocumentSymbolParams(editor.document))
        names = [s.name for s in symbols or ()]
        assert names == ["job_scheduling", "horizon", "region", "x", "price", "jobs", "minimize", "service"]
        hints = await ask.text_document_inlay_hint_async(lsp.InlayHintParams(editor.document, WHOLE))
        assert [h.label for h in hints or ()] == ["  linear, |grad| <= 30000", "  separable, |grad| <= 160"]
        lenses = await ask.text_document_code_lens_async(lsp.CodeLensParams(editor.document))
        assert [lens.command.title for lens in lenses or () if lens.command] == ["explain", "run"]

    with_editor(session)


def test_what_an_editor_writes() -> None:
    async def session(editor: Editor) -> None:
        ask = editor.client
        await editor.write(JOBS)
        found = await ask.text_document_rename_async(lsp.RenameParams(new_name="power", **editor.at("x[100]")))
        assert found is not None and found.changes is not None
        text = editor.edited(list(found.changes[editor.uri]))
        assert parse(text).decisions[0].name == "power"
        assert parse(text.replace("power", "x")) == parse(JOBS)
        for name, code in (("jobs", "OCO203"), ("minimize", "OCO205"), ("2x", "OCO526")):
            with pytest.raises(JsonRpcException, match=code):
                await ask.text_document_rename_async(lsp.RenameParams(new_name=name, **editor.at("x[100]")))
        loose = JOBS.replace("minimize sum(", "minimize   sum( ")
        await editor.write(loose)
        layout = lsp.FormattingOptions(tab_size=4, insert_spaces=True)
        edits = await ask.text_document_formatting_async(lsp.DocumentFormattingParams(editor.document, layout))
        assert editor.edited(list(edits or ())) == format_text(loose)
        call = await ask.text_document_signature_help_async(lsp.SignatureHelpParams(**editor.at("1000)", 0)))
        assert call is not None and call.signatures[0].label == "box(lo, hi)" and call.active_parameter == 1

    with_editor(session)


@pytest.mark.parametrize(
    ("before", "expected", "absent"),
    [
        ("decision y[3] in ", {"box", "simplex"}, {"sum", "poisson"}),
        ("stream s ~ ", {"poisson", "uniform"}, {"box"}),
        ("using ", {"coldq", "hedged"}, {"sum"}),
        ("using coldq with ", {"alpha = ", "epsilon = "}, {"sum"}),
        ("assume ", {"constraints.service.convex", "loss.bound", "slater.margin"}, {"sum"}),
        ("feedback ", {"bandit", "full"}, {"sum"}),
        ("let y = ", {"x", "price", "region", "sum", "log", "t", "T"}, {"box"}),
        ("subject to\n    late: sum(x) <= 1 ", {"each round", "on average", "in total"}, set()),
        ("", {"let", "stream", "subject to"}, {"sum"}),
        ("# a ", set(), {"sum", "let"}),
    ],
)
def test_what_may_come_next(before: str, expected: set[str], absent: set[str]) -> None:
    from oco.lsp.completion import completion
    from oco.lsp.document import Document

    text = f"{JOBS}\n{before}"
    proposed = {p.text for p in completion(Document.of(text), len(text))}
    assert expected <= proposed and not absent & proposed


def test_a_named_expression_is_shown_with_its_range() -> None:
    """Corners of the product of the ranges; nothing is stated of an expression without one."""
    text = (
        "model named\nhorizon T = 9\nparam w = 3\ndecision x[2] in box(-1, 2)\nstream c[2] in [0, 5]\n"
        "let pay = w * c * x\nlet move = x - prev(x)\nminimize sum(pay) + norm1(move)\n"
    )
    result = checked(text, "named.oco", None)
    assert result.ranges["pay"] == "from -15 to 30"
    shown = hover(Document.of(text), result, text.index("pay"))
    assert shown is not None and shown[1].endswith("shape [2], from -15 to 30")
    assert Checked.from_data(asdict(result)) == result


def test_an_algorithm_is_shown_with_its_paper_and_rates() -> None:
    from oco.lsp.checked import Checked
    from oco.lsp.document import Document
    from oco.lsp.hover import hover

    text = f"{JOBS}\nusing mirror-descent with V = 2\n"
    document = Document.of(text)
    for word in ("mirror", "descent"):
        span, shown = hover(document, Checked(), text.index(word)) or (None, "")
        assert span is not None and span.text == "mirror-descent" and "Wei" in shown and "O(" in shown
    assert hover(document, Checked(), text.index("V = 2")) is None


def test_mistakes_come_at_once_and_known_facts_stay() -> None:
    async def session(editor: Editor) -> None:
        ask = editor.client
        await editor.write(JOBS)
        broken = JOBS.replace("minimize sum(", "minimize sum((")
        (mistake,) = await editor.write(broken)
        assert mistake.code == "OCO105" and mistake.range.start == lsp.Position(editor.place("sum((").line, 12)
        await editor.diagnostics()
        hints = await ask.text_document_inlay_hint_async(lsp.InlayHintParams(editor.document, WHOLE))
        assert [h.label for h in hints or ()] == ["  separable, |grad| <= 160"], "of the statement that can be read"
        (mistake,) = await editor.write(JOBS.replace("sum(price", "smu(price"))
        context = lsp.CodeActionContext([mistake])
        (action,) = await ask.text_document_code_action_async(  # type: ignore[misc]
            lsp.CodeActionParams(editor.document, mistake.range, context)
        )
        assert editor.edited(list(action.edit.changes[editor.uri])) == JOBS  # type: ignore[union-attr]
        assert await editor.write(JOBS) == []

    with_editor(session)


def test_places_are_counted_as_editors_count(tmp_path: Path) -> None:
    """In UTF-16 units: a letter outside of the basic plane takes two."""

    async def session(editor: Editor) -> None:
        (mistake,) = await editor.write(
            "model m\nhorizon T = 5\ndecision x in box(0, 1)\nminimize x + \N{GRINNING FACE}\n"
        )
        assert mistake.range == lsp.Range(lsp.Position(3, 13), lsp.Position(3, 15))

    with_editor(session, tmp_path)


def test_a_check_that_takes_too_long_is_ended_and_the_next_one_works() -> None:
    from oco.lsp.checker import Checker

    async def session() -> None:
        checker = Checker(seconds=30.0)
        assert not (await checker.check(JOBS, "jobs.oco", None)).diagnostics
        checker.seconds = 0.05
        begun = time.monotonic()
        (warning,) = (await checker.check(JOBS * 50, "jobs.oco", None)).diagnostics
        assert warning["code"] == "OCO136" and warning["severity"] == "warning" and time.monotonic() - begun < 5
        checker.seconds = 30.0
        assert (await checker.check(JOBS, "jobs.oco", None)).facts["loss.convex"].value == "yes"
        await checker.close()

    asyncio.run(session())


HOSTILE = sorted((ROOT / "tests" / "bad").glob("*.oco"))[:60]


def test_any_document_can_be_asked_about_everywhere() -> None:
    """Wrong models, cut at random places: no answer fails, every span lies in the text."""
    import numpy as np

    from oco.lsp.checked import Checked
    from oco.lsp.completion import call_at, completion
    from oco.lsp.document import Document
    from oco.lsp.hover import hover
    from oco.lsp.structure import inlay_hints, outline

    rng = np.random.default_rng(0)
    for path in HOSTILE:
        text = path.read_text(encoding="utf-8", errors="replace")
        text = text[: rng.integers(len(text) // 2, len(text) + 1)]
        document = Document.of(text)
        for offset in {0, len(text), *map(int, rng.integers(0, len(text) + 1, 5))}:
            found = hover(document, Checked(), offset)
            assert found is None or 0 <= found[0].start < found[0].end <= len(text)
            completion(document, offset)
            call_at(document, offset)
        for entry in outline(document):
            assert entry.span.start <= entry.selection.start < entry.selection.end <= entry.span.end
        assert list(inlay_hints(document, Checked())) == []
