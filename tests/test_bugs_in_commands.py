"""A bug inside any command: its code, the line that raised it, a file to send, and every file of before as it was."""

from __future__ import annotations

import io
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.cli import main
from oco.cli.app import COMMANDS
from oco.cli.watching import WatchServer
from oco.dsl.diagnostics import OcoError
from oco.following import Follower

MODEL = """model m
horizon T = 20
decision x[2] in box(0,1)
stream c[2] ~ uniform(0, 1)
minimize c @ x
using ogd
"""
WRITES = "oco.dsl.writing._mode"
"""Last thing that is asked before a complete neighbour takes the place of a file."""


@dataclass(frozen=True)
class Case:
    """Command, the stage of it that is broken, and beginnings of the names of files that it leaves complete."""

    words: tuple[str, ...]
    broken: str
    kept: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Command alone."""
        return self.words[0]


CASES = (
    Case(("check", "m.oco", "--json"), "oco.compiler.prover.check.check_canonical"),
    Case(("explain", "m.oco", "--json"), "oco.tuning.explained"),
    Case(("compile", "m.oco", "-o", "old.py", "--force"), WRITES),
    Case(("compile", "m.oco", "-o", "new.py"), WRITES),
    Case(("run", "m.oco", "--json"), "oco.evaluation.run.Recorder"),
    Case(("run", "m.oco", "--out", "results"), "oco.evaluation.report.run_page.write_report", ("results/",)),
    Case(("run", "m.oco", "--journal", "journal"), "oco.cli.one_run.summarize", ("journal/",)),
    Case(("data", "m.oco", "--data", "c.csv", "--json"), "oco.evaluation.data.describe"),
    Case(("verify-certificate", "old.json", "old.nc"), "oco.evaluation.certificate_file.read_certificate"),
    Case(("prove", "m.oco", "--lean", "old.lean", "--force"), WRITES),
    Case(("verify-promise", "old.lean"), "oco.compiler.promises.reading.read_text"),
    Case(("lint", "m.oco", "--fix"), "oco.linting.lint_text"),
    Case(("lsp",), "oco.lsp.server.server"),
    Case(("watch", "journal"), "oco.following.Follower.read"),
    Case(("serve", "m.oco"), "oco.serving.running.run", ("m.db",)),
    Case(("pipe", "m.oco"), "oco.serving.store.Store.apply", ("m.db",)),
    Case(("emit", "flink", "m.oco", "-o", "old.py", "--force"), WRITES),
    Case(("fleet", "m.oco", "--data", "rounds.parquet", "--out", "played"), "oco.fleets.parquet.divide"),
    Case(("tune", "m.oco", "--write", "--json"), "oco.tuning.tuned"),
    Case(("migrate", "old.state", "m.oco", "-o", "new.state", "--json"), "oco.migrating.migrated"),
    Case(("fmt", "m.oco"), WRITES),
    Case(("new", "old", "--force"), WRITES),
    Case(("help",), "oco.cli.files.console"),
    Case(("algorithms", "--json"), "oco.cli.files.show_json"),
)


def test_every_command_is_here() -> None:
    assert {case.name for case in CASES} == COMMANDS.keys()


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Folder of a model, of what commands read, and of files that they would replace."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"key": "a"}\n'))
    Path("m.oco").write_text(MODEL)
    Path("c.csv").write_text("c_1,c_2\n" + "0.5,0.25\n" * 20)
    for name in ("old.py", "old.json", "old.nc", "old.lean", "old.state", "old.oco", "rounds.parquet"):
        Path(name).write_text("as it was")
    return place


def contents(folder: Path) -> dict[str, bytes]:
    """Files below a folder by their paths; hidden neighbours that a write left count too."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def broken(*arguments: Any, **options: Any) -> Any:
    raise TypeError("a stage is broken")


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(case.words[:3]))
def test_a_bug_has_a_code_a_place_and_a_report_and_nothing_is_lost(case, folder, monkeypatch, capsys) -> None:
    before = contents(folder)
    monkeypatch.setattr(case.broken, broken)
    assert main(case.words) == 1
    printed = capsys.readouterr()
    assert "error OCO999: " in printed.err and "(TypeError: a stage is broken)" in printed.err
    assert re.search(r"note: at oco\.[\w.]+:\d+, in \w+", printed.err) and "Traceback" not in printed.err
    (report,) = (folder.parent / "temporary").glob("oco_bug_*.txt")
    assert f"report it with the model and {report}" in printed.err
    text = report.read_text()
    assert text.startswith(f"oco {' '.join(case.words)}\noco {oco.__version__}, Python ")
    assert "Traceback (most recent call last)" in text and text.endswith("TypeError: a stage is broken\n")
    if "--json" in case.words:
        assert [d["code"] for d in json.loads(printed.out)["diagnostics"]] == ["OCO999"]
    after = contents(folder)
    assert {name: after.get(name) for name in before} == before
    assert all(name.startswith(case.kept) for name in after.keys() - before.keys()), after.keys()


def test_rounds_before_a_bug_are_kept(folder, monkeypatch) -> None:
    """The trace of a run whose page cannot be drawn, and the journal of one that cannot be summed up."""
    monkeypatch.setattr("oco.evaluation.report.run_page.write_report", broken)
    assert main(["run", "m.oco", "--out", "results"]) == 1
    assert oco.load_trace("results/trace.nc").rounds == 20
    monkeypatch.setattr("oco.cli.one_run.summarize", broken)
    assert main(["run", "m.oco", "--journal", "journal"]) == 1
    assert Follower(folder / "journal").read()["rounds"][-1]["round"] == 20


def test_a_bug_in_one_run_of_a_table_stops_no_other(folder, monkeypatch, capsys) -> None:
    played = oco.plan.Plan.run

    def first_broken(self, *arguments: Any, **options: Any) -> Any:
        return broken() if options["seed"] == 0 else played(self, *arguments, **options)

    monkeypatch.setattr("oco.plan.Plan.run", first_broken)
    assert main(["run", "m.oco", "--seeds", "2", "--engine", "here", "--json"]) == 1
    table = json.loads(capsys.readouterr().out)
    assert {row["runs"] for row in table["rows"]} == {1}
    (reason,) = table["failed"].values()
    assert "OCO999" in reason and "at oco." in reason


def test_a_bug_in_one_file_leaves_others_their_warnings(folder, monkeypatch, capsys) -> None:
    Path("n.oco").write_text("model n\nhorizon T = 9\nparam spare = 1\n" + MODEL.split("\n", 2)[2])
    checked = oco.linting.lint_text

    def first_broken(source: Any, *arguments: Any) -> Any:
        return broken() if source.name == "m.oco" else checked(source, *arguments)

    monkeypatch.setattr("oco.linting.lint_text", first_broken)
    assert main(["lint", "m.oco", "n.oco"]) == 1
    printed = capsys.readouterr().err
    assert "error OCO999: linting m.oco failed" in printed and "`spare`" in printed


def test_a_page_of_rounds_shows_a_bug(folder, monkeypatch) -> None:
    monkeypatch.setattr("oco.following.Follower.read", broken)
    with WatchServer(Follower(folder), 0) as server:
        assert "OCO999" in server.state()["problem"]


def test_a_report_that_cannot_be_written_is_shown(folder, monkeypatch, capsys) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    monkeypatch.setattr("oco.compiler.prover.check.check_canonical", broken)
    assert main(["check", "m.oco"]) == 1
    printed = capsys.readouterr().err
    assert "Traceback (most recent call last)" in printed and "and the traceback above" in printed


def test_memory_that_ends_is_no_bug(folder, monkeypatch, capsys) -> None:
    def full(*arguments: Any, **options: Any) -> Any:
        raise MemoryError("full")

    monkeypatch.setattr("oco.evaluation.run.Recorder", full)
    assert main(["run", "m.oco"]) == 1
    printed = capsys.readouterr().err
    assert "OCO133" in printed and not list((folder.parent / "temporary").iterdir())


def test_functions_of_the_library_raise_what_went_wrong(monkeypatch) -> None:
    """Runs and builders raise it as it is; of check and compile, which raise OcoErrors alone, it is the cause, and notebooks show it."""
    plan = oco.compile(oco.parse(MODEL))
    monkeypatch.setattr("oco.evaluation.run.Recorder", broken)
    with pytest.raises(TypeError, match="a stage is broken"):
        plan.run({"c": np.full((20, 2), 0.5)})
    monkeypatch.setattr("oco.dsl.builder.ModelBuilder.stream", broken)
    with pytest.raises(TypeError, match="a stage is broken"):
        oco.Model("m", horizon=9).stream("c", 2, bounds=(0, 1))
    monkeypatch.setattr("oco.compiler.prover.check.check_canonical", broken)
    with pytest.raises(OcoError) as caught:
        oco.check(oco.parse(MODEL))
    assert isinstance(caught.value.__cause__, TypeError)
    shown = "\n".join(caught.value._render_traceback_())
    assert "in check_canonical" in shown or "in check" in shown
    assert shown.index("TypeError: a stage is broken") < shown.index("error OCO999")
