"""Answers that change nothing: what an editor shows of a document."""

from __future__ import annotations

from lsprotocol import types as lsp

from oco.lsp import structure
from oco.lsp.completion import Proposal, call_at, completion
from oco.lsp.hover import hover
from oco.lsp.session import COMMANDS, OcoServer

KINDS = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "function": lsp.CompletionItemKind.Function,
    "name": lsp.CompletionItemKind.Variable,
    "constant": lsp.CompletionItemKind.Constant,
    "algorithm": lsp.CompletionItemKind.Class,
    "setting": lsp.CompletionItemKind.Property,
    "fact": lsp.CompletionItemKind.Field,
}
SYMBOLS = {
    "model": lsp.SymbolKind.Module,
    "index": lsp.SymbolKind.Enum,
    "param": lsp.SymbolKind.Constant,
    "constraint": lsp.SymbolKind.Property,
    "": lsp.SymbolKind.Event,
}


def hovered(ls: OcoServer, params: lsp.HoverParams) -> lsp.Hover | None:
    """Answer with what is known of a word."""
    uri = params.text_document.uri
    opened = ls.read(uri)
    shown = hover(opened.document, opened.checked, ls.offset(uri, params.position))
    if shown is None:
        return None
    span, text = shown
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), ls.span(uri, span))


def completed(ls: OcoServer, params: lsp.CompletionParams) -> lsp.CompletionList:
    """Answer with the words that may come next."""
    uri = params.text_document.uri
    proposed = completion(ls.read(uri).document, ls.offset(uri, params.position))
    return lsp.CompletionList(is_incomplete=False, items=[_item(p, place) for place, p in enumerate(proposed)])


def _item(proposal: Proposal, place: int) -> lsp.CompletionItem:
    text = proposal.documentation
    documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, text) if text else None
    kind = KINDS[proposal.kind]
    return lsp.CompletionItem(
        proposal.text, kind=kind, detail=proposal.detail, documentation=documentation, sort_text=f"{place:04d}"
    )


def signature(ls: OcoServer, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
    """Answer with the arguments of the call that is being written."""
    uri = params.text_document.uri
    begun = call_at(ls.read(uri).document, ls.offset(uri, params.position))
    if begun is None:
        return None
    arguments = [lsp.ParameterInformation(label=name) for name in begun.word.arguments]
    meaning = lsp.MarkupContent(lsp.MarkupKind.Markdown, begun.word.text)
    place = min(begun.argument, max(len(arguments) - 1, 0))
    shown = lsp.SignatureInformation(label=begun.word.form, documentation=meaning, parameters=arguments)
    return lsp.SignatureHelp(signatures=[shown], active_signature=0, active_parameter=place)


def definition(ls: OcoServer, params: lsp.DefinitionParams) -> lsp.Location | None:
    """Answer with the place that declares a name."""
    uri = params.text_document.uri
    document = ls.read(uri).document
    at = document.at(ls.offset(uri, params.position))
    place = None if at is None else document.declaration(at)
    return None if place is None else lsp.Location(uri, ls.span(uri, place.span))


def references(ls: OcoServer, params: lsp.ReferenceParams) -> list[lsp.Location]:
    """Answer with the places of a name."""
    uri = params.text_document.uri
    document = ls.read(uri).document
    at = document.at(ls.offset(uri, params.position))
    places = () if at is None else document.alike(at)
    wanted = [p for p in places if params.context.include_declaration or not p.declares]
    return [lsp.Location(uri, ls.span(uri, p.span)) for p in wanted]


def highlighted(ls: OcoServer, params: lsp.DocumentHighlightParams) -> list[lsp.DocumentHighlight]:
    """Answer with the places of a name, to be shown together."""
    uri = params.text_document.uri
    document = ls.read(uri).document
    at = document.at(ls.offset(uri, params.position))
    return [lsp.DocumentHighlight(ls.span(uri, p.span)) for p in (() if at is None else document.alike(at))]


def symbols(ls: OcoServer, params: lsp.DocumentSymbolParams) -> list[lsp.DocumentSymbol]:
    """Answer with the outline of a document."""
    uri = params.text_document.uri
    return [
        lsp.DocumentSymbol(
            name=entry.name,
            detail=entry.detail,
            kind=SYMBOLS.get(entry.detail, lsp.SymbolKind.Variable),
            range=ls.span(uri, entry.span),
            selection_range=ls.span(uri, entry.selection),
        )
        for entry in structure.outline(ls.read(uri).document)
    ]


def hints(ls: OcoServer, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
    """Answer with what is shown within the text."""
    uri = params.text_document.uri
    opened = ls.read(uri)
    first, last = (ls.offset(uri, p) for p in (params.range.start, params.range.end))
    return [
        lsp.InlayHint(ls.range(uri, hint.offset, hint.offset).start, hint.text, tooltip=hint.tooltip or None)
        for hint in structure.inlay_hints(opened.document, opened.checked)
        if first <= hint.offset <= last
    ]


def lenses(ls: OcoServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
    """Answer with the commands above the first statement."""
    uri = params.text_document.uri
    statements = ls.read(uri).document.file.statements
    start = statements[0].span.start if statements else 0
    place = ls.range(uri, start, start)
    return [lsp.CodeLens(place, lsp.Command(title=word, command=f"oco.{word}", arguments=[uri])) for word in COMMANDS]
