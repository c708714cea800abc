"""`oco pipe` and the words of `oco serve`: events as JSON lines in, decisions out, the same for lines that come again."""

from __future__ import annotations

import io
import json

import pytest
from serving_cases import CONTEXT, DELAYED, bits, lists, plain_learner, store_of
from survival import TRACKING, data_of, plan_of

from oco.cli import main
from oco.serving.piping import pipe_lines


def piped(text, path, events):
    """Answers to events, and the number of those that were refused."""
    out = io.StringIO()
    refused = pipe_lines(store_of(text, path), [json.dumps(e) if isinstance(e, dict) else e for e in events], out)
    return [json.loads(line) for line in out.getvalue().splitlines()], refused


def test_decisions_come_in_the_order_of_lines(tmp_path):
    plan, path = plan_of(TRACKING), tmp_path / "s.db"
    with store_of(TRACKING, tmp_path / "other.db") as store:
        plain = plain_learner(store, "a")
    events = [{"key": key} for key in "ab"]
    events += [{"key": key, "round": t, "observe": lists(data_of(plan, t))} for t in range(1, 20) for key in "ab"]
    answers, refused = piped(TRACKING, path, events)
    assert not refused and [a["key"] for a in answers] == ["a", "b"] * 20
    for t in range(1, 21):
        decision = bits(plain.decide())
        assert [bits(a["decision"]) for a in answers if a["round"] == t] == [decision, decision]
        if t < 20:
            loss = plain.observe(**data_of(plan, t)).loss
            assert [a["observed"]["loss"] for a in answers if a["round"] == t + 1] == [loss, loss]
    assert piped(TRACKING, path, events[2:]) == (answers[2:], 0)


def test_wrong_lines_are_answered_in_their_place(tmp_path):
    events = [
        '{"key": "a", "round": ',
        {"round": 1},
        {"key": "a"},
        {"key": "a", "other": 1},
        "",
        {"key": "a", "observe": {}},
    ]
    answers, refused = piped(TRACKING, tmp_path / "s.db", events)
    assert refused == 4 and [a["error"]["code"] if "error" in a else "right" for a in answers] == [
        "OCO662",
        "OCO662",
        "right",
        "OCO662",
        "OCO662",
    ]


def test_contexts_of_the_next_decision(tmp_path):
    answers, refused = piped(
        CONTEXT,
        tmp_path / "s.db",
        [
            {"key": "a", "decide": {"load": 0.5}},
            {"key": "a", "round": 1, "observe": {"price": 1}, "decide": {"load": 0.75}},
        ],
    )
    assert not refused and answers[0]["decision"] >= 0.5 and answers[1]["decision"] >= 0.75


def test_late_rounds_come_by_their_number(tmp_path):
    plan, path = plan_of(DELAYED), tmp_path / "s.db"
    with store_of(DELAYED, tmp_path / "other.db") as store:
        plain = plain_learner(store, "a")
    events = [{"key": "a", "round": t} for t in (1, 2, 3)]
    events += [{"key": "a", "round": t, "observe": lists(data_of(plan, t))} for t in (2, 1, 3)]
    answers, refused = piped(DELAYED, path, events)
    expected = [bits(plain.decide()) for _ in range(3)]
    for t in (2, 1, 3):
        plain.observe(**data_of(plan, t), round=t)
    assert not refused and [a["round"] for a in answers] == [1, 2, 3, 3, 2, 4]
    assert [bits(a["decision"]) for a in answers[:5]] == [*expected, expected[2], expected[1]]
    assert bits(answers[5]["decision"]) == bits(plain.decide())
    assert [a["observed"]["round"] for a in answers[3:]] == [2, 1, 3]


def test_the_command_pipes(tmp_path, monkeypatch, capsys):
    (tmp_path / "model.oco").write_text(TRACKING)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        monkeypatch.setattr("sys.stdin", io.StringIO('{"key": "a"}\n{"key": "b"}\n'))
        assert main(["pipe", "model.oco"]) == 0
        shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [(a["key"], a["round"]) for a in shown] == [("a", 1), ("b", 1)]
    assert (tmp_path / "model.db").exists()
    monkeypatch.setattr("sys.stdin", io.StringIO('{"key": "a b"}\n'))
    assert main(["pipe", "model.db"]) == 1
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "OCO660"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--host", "0.0.0.0"], "--token-file"),
        (["--token-file", "none.txt"], "cannot be read"),
        (["--token-file", "empty.txt"], "no token in"),
    ],
)
def test_a_service_that_others_reach_needs_tokens(words, text, tmp_path, monkeypatch, capsys):
    (tmp_path / "model.oco").write_text(TRACKING)
    (tmp_path / "empty.txt").write_text("\n")
    monkeypatch.chdir(tmp_path)
    assert main(["serve", "model.oco", *words]) == 1
    shown = capsys.readouterr().err
    assert "OCO667" in shown and text in shown
