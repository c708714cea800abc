"""Jobs of engines of streams: their learners decide as `oco pipe` and as a learner does, whatever comes again and wherever they move."""

from __future__ import annotations

import json
from typing import Any

import pytest
from serving_cases import bits
from stream_cases import HARNESSES, MODELS, SEED, decisions, events_of, module_of, piped
from survival import TRACKING, data_of, plan_of
from thorough import turns

import oco
from oco.cli import main
from oco.dsl.diagnostics import OcoError
from oco.emitting import ENGINES, job
from oco.serving.states import seed_of


def harness(engine: str, text: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    return HARNESSES[engine](module_of(engine, text, monkeypatch, **options))


@pytest.mark.parametrize(("model", "engine"), turns(list(MODELS), list(ENGINES)))
def test_answers_are_those_of_a_pipe_wherever_learners_move(engine, model, tmp_path, monkeypatch):
    """The process changes at every tenth event; each third event comes again."""
    events = events_of(MODELS[model], 12)
    function = harness(engine, MODELS[model], monkeypatch)
    answers = []
    for k, event in enumerate(events):
        if k % 10 == 9:
            function.move()
        text, right = function.answer(event)
        assert right, text
        answers.append(text)
    assert answers == piped(MODELS[model], tmp_path / "s.db", events) and len(answers) > 40


@pytest.mark.parametrize("engine", ENGINES)
def test_decisions_are_those_of_a_learner_and_its_state_goes_on_elsewhere(engine, monkeypatch):
    plan, function = plan_of(TRACKING), harness(engine, TRACKING, monkeypatch)
    events = events_of(TRACKING, 20, "a")
    answers = [function.answer(event)[0] for event in events]
    plain = plan.learner(seed=seed_of(SEED, "a"))
    own = []
    for t in range(1, 21):
        own.append(bits(plain.decide()))
        plain.observe(**data_of(plan, t))
    assert list(dict.fromkeys(decisions(answers, "a"))) == list(dict.fromkeys([*own, bits(plain.decide())]))
    saved = function.kept("a")["learner"]
    assert bits(oco.restore(saved, plan=plan).decide()) == bits(plain.decide())


@pytest.mark.parametrize("engine", ENGINES)
def test_rounds_that_are_not_kept_are_forgotten(engine, monkeypatch):
    function = harness(engine, TRACKING, monkeypatch, keep=5)
    events = events_of(TRACKING, 30, "a")
    for event in events:
        function.answer(event)
    rounds = {name for name in function.kept("a") if name.startswith("round/")}
    assert rounds == {f"round/{t}" for t in range(26, 32)}
    text, right = function.answer(events[1])
    assert not right and json.loads(text)["error"]["code"] == "OCO856"


@pytest.mark.parametrize("engine", ENGINES)
def test_wrong_events_are_refused_and_change_nothing(engine, monkeypatch):
    function = harness(engine, TRACKING, monkeypatch)
    first = function.answer('{"key": "a"}')
    kept = dict(function.kept("a"))
    wrong = {
        '{"key": "a", "round": ': "OCO662",
        '{"round": 1}': "OCO662",
        '{"key": "a", "round": 3, "observe": {"goal": [0, 0, 0, 0], "limit": 1}}': "OCO847",
        '{"key": "a", "round": 1, "observe": {"goal": [9, 0, 0, 0], "limit": 1}}': "OCO845",
        '{"key": "a", "round": 1, "observe": {"goal": [0, 0, 0, 0]}}': "OCO840",
    }
    for event, code in wrong.items():
        text, right = function.answer(event)
        assert not right and json.loads(text)["error"]["code"] == code, text
    assert function.kept("a") == kept and function.answer('{"key": "a"}') == first


def test_a_message_under_another_key_is_refused(monkeypatch):
    module = module_of("quix", TRACKING, monkeypatch)
    text, right = module.Learners().answer('{"key": "a"}', "b", 0, [], {})
    assert not right and json.loads(text)["error"]["code"] == "OCO662"


def test_state_that_is_damaged_or_of_another_plan_ends_the_job(monkeypatch):
    function = harness("quix", TRACKING, monkeypatch)
    function.answer('{"key": "a"}')
    state = function.states["a"]
    right = state["learner"]
    function.answer('{"key": "b"}')
    for wrong in (right[:-1] + bytes([right[-1] ^ 1]), right[:40]):
        state["learner"] = wrong
        with pytest.raises(OcoError) as caught:
            function.answer('{"key": "a"}')
        assert caught.value.code == "OCO854"
    state["learner"] = right
    other = harness("quix", TRACKING.replace("T = ", "T = 9"), monkeypatch)
    other.states = function.states
    with pytest.raises(OcoError) as caught:
        other.answer('{"key": "a"}')
    assert caught.value.code == "OCO854"


def test_a_state_that_went_back_is_taken_as_it_is(monkeypatch):
    """Engines go back to a checkpoint while the process and what it keeps in memory live on."""
    function = harness("quix", TRACKING, monkeypatch)
    events = events_of(TRACKING, 10, "a")
    answers, before = [], {}
    for k, event in enumerate(events):
        if k == 5:
            before = dict(function.states["a"])
        answers.append(function.answer(event))
    function.states["a"].clear()
    function.states["a"].update(before)
    assert [function.answer(event) for event in events[5:]] == answers[5:]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_command_writes_a_file_that_python_reads(engine, tmp_path, monkeypatch, capsys):
    (tmp_path / "model.oco").write_text(TRACKING + '# a comment with "quotes"\n')
    monkeypatch.chdir(tmp_path)
    assert main(["emit", engine, "model.oco", "-o", "job.py", "--seed", "3"]) == 0
    assert "Try it: pip install" in capsys.readouterr().out
    text = (tmp_path / "job.py").read_text()
    compile(text, "job.py", "exec")
    assert text == job(plan_of(TRACKING), engine, tmp_path / "job.py").replace("SEED = 0", "SEED = 3")
    assert main(["emit", engine, "model.oco", "-o", "job.py"]) == 1 and "OCO905" in capsys.readouterr().err


def test_an_engine_that_is_not_there_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "model.oco").write_text(TRACKING)
    monkeypatch.chdir(tmp_path)
    assert main(["emit", "spark", "model.oco"]) == 1
    shown = capsys.readouterr().err
    assert "OCO877" in shown and "flink, quix" in shown


def test_a_text_of_a_model_stands_in_a_job_as_it_is(monkeypatch):
    """Quotes and backslashes too, which comments may have."""
    from oco.emitting import _literal, _quoted

    for text in ('a "b"', "a\\n", '"""', "plain\n"):
        assert eval(_quoted(text)) == text
    value = {"a": ..., "b": {"c": [1.5, None, True], "d": {}}, "e": 'x"\\é'}
    assert eval(_literal(value), {"MODEL": "m"}) == {**value, "a": "m"}
