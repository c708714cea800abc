"""Journals: killed at any moment, replayed to the exact state; rounds that come twice, out of order, or damaged."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from survival import DRAWING, TRACKING, data_of, kill_at_random, plan_of, play_round, seen_by

import oco
from oco.backends.journal import FILE
from oco.dsl.diagnostics import OcoError

MODELS = {"tracking": TRACKING, "drawing": DRAWING}


def record_every_round(folder, text, done):
    """Opens the journal and plays on, as fast as it can."""
    plan = plan_of(text)
    learner = oco.open(plan, folder, seed=3, snapshot_every=7)
    done.value = learner.round
    while True:
        play_round(plan, learner, round=learner.round)
        done.value = learner.round


@pytest.mark.parametrize("name", MODELS)
def test_kills_lose_no_round_that_was_answered(name, tmp_path, request):
    plan, rng, kills = plan_of(MODELS[name]), random.Random(name), request.config.getoption("--kills")
    never_killed, twice = plan.learner(seed=3), 0
    for _ in range(kills):
        safe = kill_at_random(record_every_round, (tmp_path, MODELS[name]), rng, 0.03)
        with oco.open(plan, tmp_path, snapshot_every=7) as survivor:
            assert safe <= survivor.round <= safe + 1
            decided = {}
            while never_killed.round < survivor.round:
                now = never_killed.round
                decided[now] = seen_by(plan, never_killed)
                play_round(plan, never_killed)
            assert survivor.decide().tobytes() == never_killed.decide().tobytes()
            assert survivor.state() == never_killed.state()
            if decided:  # the service that was killed did not hear the answer: it asks again
                last = max(decided)
                survivor.observe(**decided[last], round=last)
                twice += 1
            assert survivor.state() == never_killed.state()
    assert twice > kills / 4, "hardly any process lived long enough to record a round"


def test_a_journal_says_what_large_rounds_take(tmp_path):
    """What it says is what a round adds to the file; where few rounds are kept, or they are small, it says nothing."""
    size, rounds = 50_000, 8
    text = f"model m\nhorizon T = {rounds}\ndecision x[{size}] in box(0, 1)\nstream c[{size}] in [-1, 1]\nminimize c @ x\nusing ogd\n"
    plan, data = oco.compile(oco.parse(text)), np.random.default_rng(0).uniform(-1, 1, (rounds, size))
    with oco.open(plan, tmp_path / "all", snapshot_every=100) as learner:
        begun = (tmp_path / "all" / FILE).stat().st_size
        for c in data:
            learner.decide()
            learner.observe(c=c)
        (said,) = learner.warnings
    grown = ((tmp_path / "all" / FILE).stat().st_size - begun) / rounds / 1e6
    told = float(said.split("about ")[1].split(" MB")[0])
    assert abs(told - grown) < 0.15 * grown and f"all 8 rounds {told * rounds / 1e3:.1f} GB" in said
    with oco.open(plan, tmp_path / "all") as learner:
        assert learner.warnings == [said]
    with oco.open(plan, tmp_path / "few", keep_rounds=2) as learner:
        assert not learner.warnings
    with oco.open(plan_of(TRACKING), tmp_path / "small") as learner:
        assert not learner.warnings


def played(folder, rounds, text=TRACKING, **options):
    plan = plan_of(text)
    with oco.open(plan, folder, **options) as learner:
        while learner.round <= rounds:
            play_round(plan, learner)
        return plan, learner.state()


@pytest.mark.parametrize(
    "backend", ["numpy", pytest.param("c", marks=pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler"))]
)
@pytest.mark.parametrize("rounds", [0, 1, 6, 7, 8, 25])
def test_a_journal_replays_to_the_exact_state(tmp_path, rounds, backend):
    plan, state = played(tmp_path, rounds, snapshot_every=7, backend=backend)
    plain = plan.learner(backend=backend)
    for _ in range(rounds):
        play_round(plan, plain)
    with oco.open(plan, tmp_path, snapshot_every=7, backend=backend) as again:
        assert again.state() == state == plain.state()
        for _ in range(5):
            assert play_round(plan, again).tobytes() == play_round(plan, plain).tobytes()


def test_a_round_may_come_twice_if_it_is_the_same(tmp_path):
    plan, _ = played(tmp_path, 5)
    with oco.open(plan, tmp_path) as learner:
        state, first = learner.state(), plan.learner()
        for now in range(1, 6):
            there = learner.observe(**data_of(plan, now), round=now)
            first.decide()
            fresh = first.observe(**data_of(plan, now))
            assert there.round == now and there.loss == fresh.loss and np.array_equal(there.violation, fresh.violation)
        assert learner.state() == state
        other = data_of(plan, 3) | {"limit": 0.125}
        with pytest.raises(OcoError, match="round 3 was observed with another limit") as caught:
            learner.observe(**other, round=3)
        assert caught.value.code == "OCO856" and learner.state() == state
        for ahead, words in [(7, "round 6 is missing"), (11, "rounds 6 to 10 are missing")]:
            with pytest.raises(OcoError, match=words) as caught:
                learner.observe(**data_of(plan, ahead), round=ahead)
            assert caught.value.code == "OCO847" and learner.state() == state
        learner.decide()
        assert learner.observe(**data_of(plan, 6), round=6).round == 6


def test_rounds_are_named_without_a_journal_too():
    plan = plan_of(TRACKING)
    learner = plan.learner()
    learner.decide()
    learner.observe(**data_of(plan, 1), round=1)
    before = learner.state()
    for wrong, words in [(1, "round 1 is over"), (4, "rounds 2 to 3 are missing")]:
        with pytest.raises(OcoError, match=words):
            learner.observe(**data_of(plan, wrong), round=wrong)
    for wrong in (0, -1, 2.0, True, "2"):
        with pytest.raises(OcoError, match="a round is an integer from 1") as caught:
            learner.observe(**data_of(plan, 2), round=wrong)
        assert caught.value.code == "OCO847"
    assert learner.state() == before


def test_what_goes_wrong_with_the_folder_is_said(tmp_path):
    plan = plan_of(TRACKING)
    with oco.open(plan, tmp_path / "journal") as learner:
        learner.decide()
        learner.observe(**data_of(plan, 1))
    with pytest.raises(OcoError, match="was closed") as caught:
        learner.decide()
    assert caught.value.code == "OCO858"
    (tmp_path / "file").write_text("")
    with pytest.raises(OcoError, match="name a folder"):
        oco.open(plan, tmp_path / "file")


def test_clipped_data_and_its_warnings_are_replayed(tmp_path):
    plan = plan_of(TRACKING)
    with oco.open(plan, tmp_path, on_out_of_bounds="clip") as learner:
        for now in range(1, 5):
            learner.decide()
            learner.observe(goal=[0, 0, 0, 9.0], limit=1.0, round=now)
        state = learner.state()
        learner.observe(goal=[0, 0, 0, 9.0], limit=1.0, round=2)
        assert learner.state() == state and len(state["warnings"]) == 4
    with oco.open(plan, tmp_path) as again:
        assert again.state() == state and again.on_out_of_bounds == "clip"


def test_warnings_do_not_grow_for_ever():
    plan = plan_of(TRACKING)
    learner = plan.learner(on_out_of_bounds="clip")
    for _ in range(300):
        learner.decide()
        learner.observe(goal=[0, 0, 0, 9.0], limit=1.0)
    assert len(learner.warnings) == 51 and "from round 51 on" in learner.warnings[-1]
    for k in range(300):
        learner.warn(f"another one, {k}")
    assert len(learner.warnings) == 100 and "more warnings" in learner.warnings[-1]
    assert "another one, 3" in learner.warnings


def test_old_rounds_go_where_they_are_not_kept(tmp_path):
    plan, state = played(tmp_path, 60, snapshot_every=10, keep_rounds=5)
    with oco.open(plan, tmp_path, keep_rounds=5) as learner:
        assert learner.state() == state
        learner.decide()
        assert learner.observe(**data_of(plan, 55), round=55).round == 55
        with pytest.raises(OcoError, match="round 7 is not kept") as caught:
            learner.observe(**data_of(plan, 7), round=7)
        assert caught.value.code == "OCO856"
    with closing(sqlite3.connect(tmp_path / FILE)) as base:
        assert base.execute("SELECT count(*) FROM revealed").fetchone()[0] < 25


def test_a_decision_that_was_given_is_recorded_before_anything_is_revealed(tmp_path):
    plan = plan_of(DRAWING)
    with oco.open(plan, tmp_path, seed=9) as learner:
        given = learner.decide()
    with closing(sqlite3.connect(tmp_path / FILE)) as base:
        assert base.execute("SELECT round FROM decided").fetchall() == [(1,)]
    with oco.open(plan, tmp_path, seed=77) as again:
        assert again.decide().tobytes() == given.tobytes()


def refused(plan, folder, code):
    with pytest.raises(OcoError) as caught:
        oco.open(plan, folder)
    assert caught.value.code == code, caught.value
    return caught.value.message


def test_journals_of_others(tmp_path):
    plan, _ = played(tmp_path, 3)
    other = plan_of(TRACKING.replace("gamma = 10", "gamma = 12"))
    assert "gamma = 10" in refused(other, tmp_path, "OCO851")
    assert "called 'tracked'" in refused(plan_of(DRAWING), tmp_path, "OCO851")
    base = sqlite3.connect(tmp_path / FILE)
    base.execute("UPDATE about SET value = '2' WHERE key = 'format'")
    base.commit()
    base.close()
    assert "format '2'" in refused(plan, tmp_path, "OCO854")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / FILE).write_text("not a database " * 100)
    refused(plan, tmp_path / "text", "OCO854")
    (tmp_path / "file").write_text("")
    refused(plan, tmp_path / "file", "OCO858")


HOLDING = """
import sys
sys.path.insert(0, sys.argv[1])
import oco
from survival import TRACKING, plan_of
learner = oco.open(plan_of(TRACKING), sys.argv[2])
print("open", flush=True)
sys.stdin.readline()
"""


def test_one_learner_at_a_time_and_the_error_says_whose(tmp_path, monkeypatch):
    plan, _ = played(tmp_path, 3)
    with oco.open(plan, tmp_path):
        said = refused(plan, tmp_path, "OCO855")
        assert ("another learner of this process" in said) == sys.platform.startswith("linux")
    words = [sys.executable, "-c", HOLDING, str(Path(__file__).parent), str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "open\n"
        said = refused(plan, tmp_path, "OCO855")
        assert (f"another process, number {other.pid}" in said) == sys.platform.startswith("linux")
        monkeypatch.setattr("oco.backends.ownership.LOCKS", tmp_path / "none")  # as on other systems
        assert "of this process or of another" in refused(plan, tmp_path, "OCO855")
        other.communicate("\n")
    oco.open(plan, tmp_path).close()


DAMAGE = {
    "a gap": ("DELETE FROM revealed WHERE round = 5", "OCO854"),
    "other data": ("UPDATE revealed SET content = replace(content, 'limit', 'tilim') WHERE round = 5", "OCO854"),
    "another checksum": ("UPDATE revealed SET checksum = 'abc' WHERE round = 4", "OCO854"),
    "rounds exchanged": ("UPDATE revealed SET round = 100 - round WHERE round > 3", "OCO854"),
    "a lost decision": ("DELETE FROM decided WHERE round = 4", "OCO857"),
    "a changed snapshot": ("UPDATE snapshots SET content = replace(content, 'random', 'rondam')", "OCO854"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_records_are_errors(tmp_path, name):
    plan, _ = played(tmp_path, 6)
    statement, code = DAMAGE[name]
    base = sqlite3.connect(tmp_path / FILE)
    base.execute(statement)
    base.commit()
    base.close()
    refused(plan, tmp_path, code)


def test_a_decision_that_was_not_taken_stops_the_replay(tmp_path):
    """A record with a right checksum, as when the machine rounds otherwise."""
    from oco.backends.journal import _checksum

    plan, _ = played(tmp_path, 6)
    base = sqlite3.connect(tmp_path / FILE)
    text = base.execute("SELECT content FROM decided WHERE round = 2").fetchone()[0]
    base.execute("UPDATE decided SET content = ?, checksum = ? WHERE round = 4", (text, _checksum("decided", 4, text)))
    base.commit()
    base.close()
    assert "round 4" in refused(plan, tmp_path, "OCO857")


def test_damaged_bytes_give_an_error_or_the_exact_state(tmp_path):
    """Flipped bytes of the database: SQLite or a checksum sees them, or they lie where nothing is kept."""
    plan, state = played(tmp_path / "good", 12)
    whole, rng, errors = (tmp_path / "good" / FILE).read_bytes(), random.Random(0), 0
    folder = tmp_path / "bad"
    for _ in range(150):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        damaged = bytearray(whole)
        for _ in range(rng.choice((1, 20))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        (folder / FILE).write_bytes(damaged if rng.random() < 0.8 else whole[: rng.randrange(len(whole))])
        try:
            with oco.open(plan, folder) as learner:
                assert learner.state() == state or learner.round == 1  # a file cut to nothing is a new journal
        except OcoError as error:
            assert error.code in ("OCO850", "OCO851", "OCO854", "OCO857", "OCO858"), error
            errors += 1
    assert errors > 75


def test_what_cannot_be_written_does_not_count(tmp_path):
    """A limit on the size of files stands for a full disk."""
    code = f"""
import resource, signal, sys
sys.path.insert(0, {str(__file__).rsplit("/", 1)[0]!r})
from survival import TRACKING, plan_of, play_round
import oco
from oco.dsl.diagnostics import OcoError
plan = plan_of(TRACKING)
learner = oco.open(plan, {str(tmp_path)!r})
for _ in range(4):
    play_round(plan, learner)
state = learner.state()
sys.dont_write_bytecode = True
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
for _ in range(2):
    try:
        play_round(plan, learner)
    except OcoError as error:
        assert error.code == "OCO858", error
    else:
        raise AssertionError("it counted")
    assert learner.state() == state, "it changed"
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
play_round(plan, learner)
print(learner.round)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["6"]
    with oco.open(plan_of(TRACKING), tmp_path) as learner:
        assert learner.round == 6


def test_the_command_goes_on_where_it_was_stopped(tmp_path, capsys):
    from oco.cli import main

    model, data = tmp_path / "m.oco", tmp_path / "d.csv"
    model.write_text(TRACKING.replace("100000", "30"))
    plan = plan_of(TRACKING)
    rows = [np.concatenate([np.ravel(data_of(plan, k)[n]) for n in ("goal", "limit")]) for k in range(1, 31)]
    header = "goal[0],goal[1],goal[2],goal[3],limit"
    data.write_text("\n".join([header, *(",".join(repr(float(v)) for v in row) for row in rows)]) + "\n")
    run = ["run", str(model), "--data", str(data), "--json", "--journal"]
    assert main([*run, str(tmp_path / "whole")]) == 0
    whole = json.loads(capsys.readouterr().out)["runs"][0]
    short = tmp_path / "short.csv"
    short.write_text("\n".join(data.read_text().splitlines()[:12]) + "\n")
    from oco.plan import Plan

    stopped: Plan = oco.compile(oco.load(model))
    with oco.open(stopped, tmp_path / "part") as learner:
        for _ in range(11):
            play_round(stopped, learner)
    assert main([*run, str(tmp_path / "part")]) == 0
    part = json.loads(capsys.readouterr().out)["runs"][0]
    assert part["loss"] == whole["loss"] and part["violation"] == whole["violation"]
    assert main([*run, str(tmp_path / "part")]) == 0
    capsys.readouterr()
    data.write_text(data.read_text().replace(repr(float(rows[4][0])), "0.5"))
    assert main([*run, str(tmp_path / "part")]) == 1
    assert "round 5 was observed with another goal" in capsys.readouterr().err
    assert main([*run, str(tmp_path / "x"), "--seeds", "2"]) == 2
