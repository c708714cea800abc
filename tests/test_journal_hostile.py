"""Journals in the hands of others: forked processes, files that go away, databases of something else, records made up, another backend."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from survival import TRACKING, data_of, plan_of, play_round
from test_c99 import needs_compiler

import oco
from oco.backends.journal import FILE, _checksum
from oco.dsl.diagnostics import OcoError


def recorded(folder, rounds=3, **options):
    """A journal of some rounds, closed."""
    with oco.open(plan_of(TRACKING), folder, **options) as learner:
        for _ in range(rounds):
            play_round(plan_of(TRACKING), learner)
    return plan_of(TRACKING)


def changed(folder, *statements):
    with closing(sqlite3.connect(folder / FILE)) as base:
        for statement in statements:
            base.execute(*statement)
        base.commit()


def refused(folder, code, **options):
    with pytest.raises(OcoError) as caught:
        oco.open(plan_of(TRACKING), folder, **options)
    assert caught.value.code == code, caught.value
    return caught.value.message


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_takes_nothing_from_the_journal(tmp_path):
    """However the child ends, rounds that the parent goes on to record are on the disk when it crashes."""
    children = ("learner.decide()", "learner.close()", "del learner; gc.collect()", "sys.exit(0)")
    code = f"""
import gc, os, shutil, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from survival import TRACKING, plan_of, play_round
import oco
from oco.dsl.diagnostics import OcoError
plan = plan_of(TRACKING)
for k, child in enumerate({children!r}):
    learner = oco.open(plan, f"journal{{k}}")
    play_round(plan, learner)
    if (process := os.fork()) == 0:
        try:
            exec(child)
        except OcoError as error:
            os._exit(0 if error.code == "OCO855" and "forked" in error.message else 1)
        finally:
            if child == "learner.decide()":
                os._exit(2)
        sys.exit(0)
    assert os.waitpid(process, 0)[1] == 0, child
    for _ in range(3):
        play_round(plan, learner)
    shutil.copytree(f"journal{{k}}", f"crashed{{k}}")
    learner.close()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for k, child in enumerate(children):
        for folder in (f"crashed{k}", f"journal{k}"):
            with oco.open(plan_of(TRACKING), tmp_path / folder) as learner:
                assert learner.round == 5, child


@pytest.mark.parametrize("gone", ["journal.sqlite", "journal.sqlite-wal", ""])
def test_a_round_does_not_count_where_the_files_are_gone(tmp_path, gone):
    plan, folder = plan_of(TRACKING), tmp_path / "journal"
    learner = oco.open(plan, folder)
    play_round(plan, learner)
    learner.decide()
    before = learner.state()
    if gone:
        (folder / gone).unlink()
    else:
        shutil.rmtree(folder)
    for _ in range(2):
        with pytest.raises(OcoError, match="was removed or exchanged") as caught:
            learner.observe(**data_of(plan, 2))
        assert caught.value.code == "OCO858" and learner.state() == before
    learner.close()


FOREIGN = {
    "other tables": ["CREATE TABLE customers (name TEXT)"],
    "a table of the same name": ["CREATE TABLE decided (x)"],
    "a view": ["CREATE VIEW about AS SELECT 1 AS key, 2 AS value"],
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_database_of_something_else_is_left_alone(tmp_path, name):
    changed(tmp_path, *([s] for s in FOREIGN[name]))
    before = (tmp_path / FILE).read_bytes()
    assert "not a journal" in refused(tmp_path, "OCO854")
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER eraser AFTER INSERT ON decided BEGIN DELETE FROM revealed; END",
        "DROP TABLE revealed",
        "ALTER TABLE revealed ADD COLUMN more TEXT",
    ],
)
def test_a_journal_with_another_schema_is_refused(tmp_path, statement):
    recorded(tmp_path)
    changed(tmp_path, [statement])
    refused(tmp_path, "OCO854")


STRANGE = [
    *[("revealed", 2, c) for c in ("[]", "{}", '{"streams":{},"warnings":[]}', '{"streams":3,"warnings":4}', "nope")],
    *[("snapshots", 1, c) for c in ("[]", "null", "3", '{"recipe":7}', "[" * 100_000)],
    *[("decided", 2, c) for c in ("[]", "null", "{}", "nope")],
]


@pytest.mark.parametrize(("table", "round", "content"), STRANGE, ids=[f"{t} {c[:12]}" for t, _, c in STRANGE])
def test_records_made_up_with_a_right_checksum_are_errors(tmp_path, table, round, content):
    recorded(tmp_path)
    checksum = _checksum(table, round, content)
    changed(tmp_path, [f"UPDATE {table} SET content = ?, checksum = ? WHERE round = ?", (content, checksum, round)])
    with pytest.raises(OcoError) as caught:
        oco.open(plan_of(TRACKING), tmp_path)
    assert caught.value.code in ("OCO850", "OCO854", "OCO857")


def test_a_round_given_again_meets_a_record_made_up(tmp_path):
    plan = recorded(tmp_path)
    with oco.open(plan, tmp_path) as learner:
        before = learner.state()
        for table, content in (("revealed", "[]"), ("decided", "3")):
            learner.journal._base.execute(
                f"UPDATE {table} SET content = ?, checksum = ? WHERE round = 2",
                (content, _checksum(table, 2, content)),
            )
            with pytest.raises(OcoError, match="not whole") as caught:
                learner.observe(**data_of(plan, 2), round=2)
            assert caught.value.code == "OCO854" and learner.state() == before
            learner.journal._base.execute("DELETE FROM revealed WHERE round = 2")
            learner.journal._put("revealed", 2, {"streams": packed(plan, 2), "warnings": []})


def packed(plan, round):
    from oco.backends.python.state_file import pack

    return {n: pack(v) for n, v in data_of(plan, round).items()}


@needs_compiler
@pytest.mark.parametrize(("first", "second"), [("numpy", "c"), ("c", "numpy")])
def test_another_backend_is_refused_at_once_and_none_is_that_of_the_journal(tmp_path, first, second):
    plan = recorded(tmp_path, rounds=0, backend=first)
    said = refused(tmp_path, "OCO851", backend=second)
    assert f"begun with the backend {first!r}" in said
    with oco.open(plan, tmp_path) as learner:
        assert learner.compiled.backend == first
    rounds = [data_of(plan, k) for k in range(1, 6)]
    trace = plan.run(iter(rounds), journal=tmp_path)
    assert trace.origin.backend == first
    with pytest.raises(OcoError, match="begun with"):
        plan.run(iter(rounds), journal=tmp_path, backend=second)


def test_a_journal_from_before_backends_were_recorded_is_read(tmp_path):
    plan = recorded(tmp_path, backend="numpy")
    changed(tmp_path, ["DELETE FROM about WHERE key = 'backend'"])
    with oco.open(plan, tmp_path, backend="numpy") as learner:
        assert learner.round == 4


def test_folders_that_no_system_has_are_errors():
    for folder in ("a\0b", b"a\0b"):
        with pytest.raises(OcoError) as caught:
            oco.open(plan_of(TRACKING), folder)
        assert caught.value.code == "OCO858"
