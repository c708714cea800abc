"""Stores of learners by key carried to another plan: none is lost, and each goes on as a learner that is carried alone."""

from __future__ import annotations

import json
from contextlib import closing

import pytest
from serving_cases import DELAYED, bits, decision_in, plain_learner, round_of, store_of
from survival import TRACKING, data_of, plan_of
from test_store import DECIDE, OBSERVE, code_of, one

import oco
from oco.cli import main
from oco.dsl.diagnostics import OcoError
from oco.serving.calls import Action, Call, call_of
from oco.serving.carrying import carry_store
from oco.serving.sources import Options, open_store

KEYS = ["a", "b", "c"]
WIDER = TRACKING.replace("limit in [0, 3]", "limit in [0, 4]")
NARROWER = TRACKING.replace("limit in [0, 3]", "limit in [0, 2]")
STEEPER = TRACKING.replace("eta = 0.001", "eta = 0.002")


def played(path, text, rounds=5, **options):
    """Closed store with rounds of all keys, the last of them decided and open; key c is one round ahead."""
    plan = plan_of(text)
    with closing(store_of(text, path, **options)) as store:
        for key in KEYS:
            for t in range(1, rounds + 1 + (key == "c")):
                one(store, Call(key, DECIDE, t))
                one(store, call_of(key, OBSERVE, round_of(plan, t)))
            one(store, Call(key, DECIDE, t + 1))


def opened(path):
    """Store that is served without its model."""
    return closing(open_store(path, None, Options(), lambda path: pytest.fail("it knows its plan")))


def test_the_same_rule_goes_on_with_its_rounds(tmp_path):
    """Calls that come again get the records, the open round takes its data, and decisions are those of a learner never carried."""
    played(tmp_path / "s.db", TRACKING)
    result = carry_store(tmp_path / "s.db", tmp_path / "new.db", plan_of(WIDER))
    assert (result.whole, result.begun) == (3, 0)
    assert result.kept.startswith(
        "learners carried: 3; 3 with state and rounds: its guarantee covers all rounds, those"
    )
    narrow = carry_store(tmp_path / "s.db", tmp_path / "narrow.db", plan_of(NARROWER))
    assert narrow.whole == 3 and "if those played lay within its bounds of limit, which are narrower" in narrow.kept
    with opened(tmp_path / "new.db") as store, opened(tmp_path / "s.db") as before:
        assert store.states.plan.model == plan_of(WIDER).model and store.size == 3 and store.first_keys == KEYS
        plan, plain = plan_of(TRACKING), plain_learner(before, "a")
        for t in range(1, 10):
            decided = one(store, Call("a", DECIDE, t))
            assert decision_in(decided.text) == bits(plain.decide()) and decided.new is (t > 6)
            told = one(store, call_of("a", OBSERVE, round_of(plan, t)))
            assert json.loads(told.text)["loss"] == plain.observe(**data_of(plan, t)).loss and told.new is (t > 5)
        assert code_of(store, call_of("a", OBSERVE, {**round_of(plan, 2), "limit": 0.5})) == "OCO856"
        assert not one(store, Call("c", DECIDE)).new and not one(before, Call("c", DECIDE)).new


def test_another_rule_begins_where_each_learner_is(tmp_path):
    """As `oco.migrate` carries the state of the same key alone, in the next rounds too."""
    played(tmp_path / "s.db", TRACKING)
    plan = plan_of(STEEPER)
    result = carry_store(tmp_path / "s.db", tmp_path / "new.db", plan)
    assert (result.whole, result.begun) == (0, 3)
    assert "3 begun at the decision reached, with rounds from 1" in result.kept
    with opened(tmp_path / "new.db") as store, opened(tmp_path / "s.db") as before:
        for key in ("a", "c"):
            alone = oco.migrate(json.loads(one(before, Call(key, Action.STATE)).text)["state"], plan).learner
            for t in range(1, 6):
                assert decision_in(one(store, Call(key, DECIDE, t)).text) == bits(alone.decide())
                one(store, call_of(key, OBSERVE, round_of(plan, t)))
                alone.observe(**data_of(plan, t))


def test_certificates_are_kept_and_cover_the_rounds_played(tmp_path):
    from oco.serving.states import KeyedStates
    from oco.serving.store import Store

    plan = oco.compile(oco.parse(TRACKING), certify="static")
    with Store(tmp_path / "s.db", KeyedStates(plan)) as store:
        for t in range(1, 4):
            one(store, Call("a", DECIDE, t))
            one(store, call_of("a", OBSERVE, round_of(plan, t)))
        expected = json.loads(one(store, Call("a", Action.CERTIFICATE)).text)["regret"]
    carry_store(tmp_path / "s.db", tmp_path / "new.db", plan_of(WIDER))
    with opened(tmp_path / "new.db") as store:
        shown = json.loads(one(store, Call("a", Action.CERTIFICATE)).text)
    assert shown["rounds"] == 3 and shown["regret"] == pytest.approx(expected, rel=1e-12)


def test_a_learner_that_cannot_be_carried_is_named_and_nothing_is_written(tmp_path):
    with closing(store_of(DELAYED, tmp_path / "late.db")) as store:
        one(store, Call("done", DECIDE, 1))
        one(store, call_of("done", OBSERVE, round_of(plan_of(DELAYED), 1)))
        one(store, Call("open", DECIDE, 1))
    played(tmp_path / "s.db", TRACKING, rounds=1)
    for source, text, code, key in (
        ("late.db", DELAYED.replace("ogd", "ogd with eta = 0.2"), "OCO550", "'open': rounds 1 are open"),
        ("s.db", TRACKING.replace("[4]", "[5]"), "OCO862", "'a': the decision x"),
    ):
        with pytest.raises(OcoError, match=key) as caught:
            carry_store(tmp_path / source, tmp_path / "new.db", plan_of(text))
        assert caught.value.code == code and caught.value.hint
        assert not (tmp_path / "new.db").exists() and not list(tmp_path.glob(".new*"))
    with store_of(TRACKING, tmp_path / "s.db"), pytest.raises(OcoError) as caught:
        carry_store(tmp_path / "s.db", tmp_path / "new.db", plan_of(WIDER))
    assert caught.value.code == "OCO855"


def test_keys_of_several_transactions(tmp_path, monkeypatch):
    monkeypatch.setattr("oco.serving.carrying.AT_ONCE", 2)
    played(tmp_path / "s.db", TRACKING, rounds=1)
    assert carry_store(tmp_path / "s.db", tmp_path / "new.db", plan_of(WIDER)).whole == 3


def test_the_message_of_a_changed_model_leads_to_the_command(tmp_path, monkeypatch, capsys):
    """Its hint, followed as it stands, makes a store that serves the changed model with all learners."""
    monkeypatch.chdir(tmp_path)
    played(tmp_path / "s.db", TRACKING)
    (tmp_path / "model.oco").write_text(WIDER)
    with pytest.raises(OcoError) as caught, closing(store_of(WIDER, tmp_path / "s.db")):
        pass
    assert caught.value.code == "OCO851"
    command = caught.value.hint.split("`")[3].replace("MODEL.oco", "model.oco").replace("NEW.db", "new.db")
    assert main(command.split()[1:]) == 0 and "3 with state and rounds" in capsys.readouterr().out
    with closing(store_of(WIDER, tmp_path / "new.db")) as store:
        assert not one(store, Call("a", DECIDE, 6)).new
