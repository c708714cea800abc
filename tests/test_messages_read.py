"""Messages that a newcomer meets: wrong models, calls and command lines, each with its message in one golden file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from wrong_things import CALLS, COMMANDS, GOOD, MODELS

import oco
from oco.cli import main
from oco.dsl.diagnostics import OcoError


def met(work: Callable[[], object]) -> OcoError:
    """Error that a call ends in."""
    with pytest.raises(OcoError) as caught:
        work()
    return caught.value


def errors(folder: Path) -> Iterator[tuple[str, OcoError]]:
    """All errors of models and calls, with what is wrong."""
    for title, text in MODELS.items():
        yield title, met(lambda text=text: oco.compile(oco.parse(text, name="shop.oco", folder=folder)))
    for title, call in CALLS.items():
        yield title, met(lambda call=call: call(folder))


def test_messages_have_a_code_a_reason_and_a_way_out(
    golden: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = []
    for title, error in errors(tmp_path):
        assert error.hint and error.code != "OCO999", title
        rows = [
            re.sub(r"-?\d[\d.e-]*", "#", row) if row.startswith("  note:") else row for row in str(error).splitlines()
        ]
        parts.append("\n".join([title, *rows, ""]))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.oco").write_text(GOOD)
    for title, words in COMMANDS.items():
        status = main(words)
        printed = capsys.readouterr()
        assert status in (1, 2) and printed.err and "Traceback" not in printed.err, title
        rows = [text for row in printed.err.splitlines() if (text := row.strip("╭╮╰╯─│ "))]
        parts.append("\n".join([f"{title}: oco {' '.join(words)}", f"status {status}", *rows, ""]))
    golden("\n".join(parts).replace(str(tmp_path), "FOLDER").replace(str(Path(__file__).parent), "TESTS"))


def test_there_are_eighty() -> None:
    assert len(MODELS) + len(CALLS) + len(COMMANDS) >= 80
