"""Documents of `--json`, models on standard input, fixes as edits, differences of formatting."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from oco.cli import main
from oco.compiler.prover.check import check
from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.load import parse

BAD = Path(__file__).parent / "bad"
MODELS = sorted(BAD.glob("*.oco"))
RIGHT = "model a\nhorizon T = 10\ndecision x[2] in box(0, 1)\nstream c[2] in [0, 1]\nminimize c @ x\n"
WRONG = RIGHT.replace("c @ x", "c @ y")


def diagnostics(text: str, folder: Path) -> tuple[Diagnostic, ...]:
    try:
        check(parse(text, folder=folder))
    except OcoError as error:
        return error.diagnostics
    return ()


def applied(text: str, fixes: Sequence[Any]) -> str:
    for fix in sorted(fixes, key=lambda f: -f.span.start):
        text = text[: fix.span.start] + fix.text + text[fix.span.end :]
    return text


@cache
def fixable() -> list[Path]:
    return [p for p in MODELS if any(d.fixes for d in diagnostics(p.read_text(encoding="utf-8"), BAD))]


@pytest.mark.parametrize("command", ["check", "explain", "compile", "run", "tune"])
def test_a_wrong_model_is_one_document_too(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.oco"
    path.write_text(WRONG)
    assert main([command, str(path), "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["diagnostics"]
    span = found["span"]
    assert (found["code"], found["severity"]) == ("OCO201", "error")
    assert WRONG[span["offset"] : span["end_offset"]] == "y" and (span["line"], span["column"]) == (5, 14)


def test_wrong_data_are_one_document_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, data = tmp_path / "a.oco", tmp_path / "a.csv"
    path.write_text(RIGHT)
    data.write_text("c_0,c_1\n0.5,cat\n")
    assert main(["run", str(path), "--data", str(data), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["diagnostics"][0]["code"].startswith("OCO8")


@pytest.mark.parametrize(
    "words", [["chek"], ["check"], ["check", "a.oco", "--nope"], ["run", "a.oco", "--rounds", "x"], ["new", "a"]]
)
def test_a_misused_command_is_one_document_too(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"]) == 2
    printed = capsys.readouterr()
    (diagnostic,) = json.loads(printed.out)["diagnostics"]
    assert diagnostic["code"] == "OCO913" and diagnostic["hint"] and printed.err
    assert main(words[:1]) in (0, 2) and not capsys.readouterr().out.startswith("{")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_people_read_the_same_errors_beside_the_document(
    options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log keeps stderr, a program reads stdout: neither goes without the errors."""
    path = tmp_path / "a.oco"
    path.write_text(WRONG.replace("box(0, 1)", "bax(0, 1)"))
    assert main(["check", str(path), *options]) == 1
    printed = capsys.readouterr()
    assert bool(printed.out) is bool(options)
    for d in json.loads(printed.out)["diagnostics"] if options else ():
        assert f"{d['span']['line']}:{d['span']['column']}: error {d['code']}: {d['message']}" in printed.err
    assert printed.err.count(": error OCO") == 2


@pytest.mark.parametrize("text", [RIGHT, WRONG])
def test_a_model_on_standard_input_is_the_model_of_a_file(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.oco"
    path.write_text(text)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    results = []
    for name in ("-", str(path)):
        status = main(["check", name, "--json"])
        results.append((status, capsys.readouterr().out.replace(str(path), "<stdin>")))
    assert results[0] == results[1]


def test_some_mistakes_have_fixes() -> None:
    assert len(fixable()) >= 5


def test_a_fix_removes_its_mistake(tmp_path: Path) -> None:
    shutil.copytree(BAD, tmp_path / "bad")
    for path in fixable():
        text = path.read_text(encoding="utf-8")
        before = diagnostics(text, tmp_path / "bad")
        after = diagnostics(applied(text, [f for d in before for f in d.fixes]), tmp_path / "bad")
        mended = {(d.code, d.message) for d in before if d.fixes}
        assert not mended & {(d.code, d.message) for d in after}, path.name


def test_differences_of_formatting_are_shown_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.oco"
    path.write_text(RIGHT.replace("box(0, 1)", "box(0,1)"))
    assert main(["fmt", "--diff", str(path)]) == 1
    out = capsys.readouterr().out
    assert "-decision x[2] in box(0,1)" in out and "+decision x[2] in box(0, 1)" in out
    assert "box(0,1)" in path.read_text()
    path.write_text(RIGHT)
    assert main(["fmt", "--diff", str(path)]) == 0 and not capsys.readouterr().out


def test_standard_input_is_formatted_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, status, shown in (([], 0, RIGHT), (["--check"], 1, ""), (["--diff"], 1, None)):
        monkeypatch.setattr("sys.stdin", io.StringIO(RIGHT.replace("box(0, 1)", "box(0,1)")))
        assert main(["fmt", "-", *words]) == status
        out = capsys.readouterr().out
        assert out == shown if shown is not None else "+decision x[2] in box(0, 1)" in out
