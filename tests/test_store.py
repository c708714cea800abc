"""Stores of learners by key: the decisions of plain learners bit for bit, calls that come twice, processes that are killed, damage."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from serving_cases import CONTEXT, DELAYED, bits, decision_in, lists, plain_learner, round_of, store_of
from survival import DRAWING, TRACKING, data_of, kill_at_random, plan_of, seen_by
from thorough import turns

from oco.backends.database import Durability
from oco.dsl.diagnostics import OcoError
from oco.serving.calls import Action, Call, Reply, call_of
from oco.serving.sources import Options, open_store

MODELS = {"tracking": TRACKING, "drawing": DRAWING}
DECIDE, OBSERVE = Action.DECIDE, Action.OBSERVE


def one(store, call):
    """Reply to a call alone; its error is raised."""
    (answer,) = store.apply([call])
    if isinstance(answer, OcoError):
        raise answer
    return answer


def code_of(store, call):
    with pytest.raises(OcoError) as caught:
        one(store, call)
    return caught.value.code


@pytest.mark.parametrize("name", MODELS)
def test_decisions_are_those_of_plain_learners(name, tmp_path):
    """Two keys in turn; learners leave the memory now and then, and the store is opened anew."""
    plan = plan_of(MODELS[name])
    store = store_of(MODELS[name], tmp_path / "s.db", live=1)
    plain = {key: plain_learner(store, key) for key in ("a", "b")}
    for t in range(1, 25):
        for key, learner in plain.items():
            decided = one(store, Call(key, DECIDE))
            assert decided.new and decision_in(decided.text) == bits(learner.decide())
            seen = seen_by(plan, learner)
            if t % 5 == 0:
                store.close()
                store = store_of(MODELS[name], tmp_path / "s.db", live=1)
            answer, feedback = one(store, call_of(key, OBSERVE, {"round": t, **lists(seen)})), learner.observe(**seen)
            assert answer.loss == feedback.loss and [*answer.violation.values()] == feedback.violation.tolist()
    states = [json.loads(one(store, Call(key, Action.STATE)).text)["state"] for key in plain]
    assert states == [json.loads(json.dumps(learner.state())) for learner in plain.values()]
    assert store.size == 2 and store.first_keys == ["a", "b"]
    store.close()


def test_a_call_that_comes_again_gets_the_recorded_answer(tmp_path):
    plan, store = plan_of(TRACKING), store_of(TRACKING, tmp_path / "s.db", keep=3)
    texts = {}
    for t in range(1, 8):
        calls = [Call("a", DECIDE, t), call_of("a", OBSERVE, round_of(plan, t))]
        texts[t] = [one(store, call).text for call in calls]
        for call, text in zip(calls, texts[t]):
            assert one(store, call) == Reply(text)
    state = one(store, Call("a", Action.STATE)).text
    assert one(store, call_of("a", OBSERVE, round_of(plan, 5))).text == texts[5][1]
    assert code_of(store, call_of("a", OBSERVE, round_of(plan, 5) | {"limit": 0.5})) == "OCO856"
    assert code_of(store, call_of("a", OBSERVE, round_of(plan, 2))) == "OCO856"  # not kept
    assert code_of(store, Call("a", DECIDE, 2)) == "OCO856"
    assert code_of(store, call_of("a", OBSERVE, round_of(plan, 10))) == "OCO847"
    assert code_of(store, Call("a", DECIDE, 9)) == "OCO847"
    assert code_of(store, call_of("a", OBSERVE, round_of(plan, 8))) == "OCO863"  # not decided yet
    assert code_of(store, call_of("b", OBSERVE, round_of(plan, 1))) == "OCO661"
    assert one(store, Call("a", Action.STATE)).text == state
    store.close()


def test_numbers_that_are_equal_are_the_same_data(tmp_path):
    store = store_of(TRACKING, tmp_path / "s.db")
    one(store, Call("a", DECIDE))
    first = one(store, call_of("a", OBSERVE, {"round": 1, "goal": [1, 0, 0, -1], "limit": 2}))
    again = one(store, call_of("a", OBSERVE, {"round": 1, "limit": 2.0, "goal": [1.0, 0, 0.0, -1]}))
    assert again == Reply(first.text)
    store.close()


def test_a_wrong_call_leaves_the_others_of_its_batch(tmp_path):
    plan, store = plan_of(TRACKING), store_of(TRACKING, tmp_path / "s.db")
    wrong = call_of("b", OBSERVE, round_of(plan, 1) | {"limit": 1e9})
    batch = [Call("a", DECIDE), Call("b", DECIDE), call_of("a", OBSERVE, round_of(plan, 1)), wrong, Call("a", DECIDE)]
    *right, refused, last = store.apply(batch)
    assert all(isinstance(a, Reply) and a.new for a in (*right, last)) and isinstance(refused, OcoError)
    assert refused.code == "OCO845" and one(store, call_of("b", OBSERVE, round_of(plan, 1))).new
    store.close()


def test_a_batch_that_is_not_written_did_not_happen(tmp_path):
    """The disk fails after some of the calls: learners are as before, in memory and on the disk."""
    plan, store = plan_of(TRACKING), store_of(TRACKING, tmp_path / "s.db")
    one(store, Call("a", DECIDE))
    before = one(store, Call("a", Action.STATE)).text
    put, times = store._put, []

    def failing(key, learner):
        times.append(key)
        if len(times) == 2:
            raise sqlite3.OperationalError("disk I/O error")
        put(key, learner)

    store._put = failing
    calls = [call_of("a", OBSERVE, round_of(plan, 1)), Call("a", DECIDE), Call("new", DECIDE)]
    with pytest.raises(OcoError) as caught:
        store.apply(calls)
    assert caught.value.code == "OCO858"
    del store._put
    assert one(store, Call("a", Action.STATE)).text == before and store.size == 1
    assert code_of(store, Call("new", Action.STATE)) == "OCO661"
    assert all(isinstance(a, Reply) and a.new for a in store.apply(calls)) and store.size == 2
    store.close()


def test_contexts_come_with_the_decision(tmp_path):
    store = store_of(CONTEXT, tmp_path / "s.db")
    plain = plain_learner(store, "a")
    for t in range(1, 6):
        load, price = t / 10, -0.3 * t % 1
        assert code_of(store, Call("a", DECIDE, t)) == "OCO860"
        text = one(store, call_of("a", DECIDE, {"round": t, "load": load})).text
        assert decision_in(text) == bits(plain.decide(load=load))
        store._learners.clear()
        assert one(store, Call("a", DECIDE, t)).text == text
        assert code_of(store, call_of("a", DECIDE, {"round": t, "load": 0.9})) == "OCO860"
        one(store, call_of("a", OBSERVE, {"round": t, "price": price}))
        plain.observe(price=price)
    store.close()


def test_late_rounds_come_by_their_number(tmp_path):
    plan, store = plan_of(DELAYED), store_of(DELAYED, tmp_path / "s.db")
    plain = plain_learner(store, "a")
    assert code_of(store, Call("a", DECIDE)) == "OCO662"
    for t in (1, 2, 3):
        assert decision_in(one(store, Call("a", DECIDE, t)).text) == bits(plain.decide())
    assert code_of(store, Call("a", DECIDE, 4)) == "OCO869"
    for t in (3, 1):
        store._learners.clear()
        one(store, call_of("a", OBSERVE, round_of(plan, t)))
        plain.observe(**data_of(plan, t), round=t)
    assert one(store, call_of("a", OBSERVE, round_of(plan, 3))).new is False
    assert decision_in(one(store, Call("a", DECIDE, 4)).text) == bits(plain.decide())
    for _ in range(2):
        one(store, Call("a", Action.SKIP, 2))
    plain.skip(round=2)
    assert decision_in(one(store, Call("a", DECIDE, 5)).text) == bits(plain.decide())
    store.close()


def test_a_round_may_be_left_out(tmp_path):
    store = store_of(TRACKING, tmp_path / "s.db")
    first = one(store, Call("a", DECIDE)).text
    for new in (True, False):
        assert one(store, Call("a", Action.SKIP, 1)).new is new
    assert one(store, Call("a", DECIDE, 1)).text == first
    store.close()


def record(path, text, durability, done):
    """Plays two keys as fast as it can, in batches."""
    plan, store = plan_of(text), store_of(text, path, durability=durability)
    done.value = t = store._learner("a").round
    while True:
        store.apply([Call(key, DECIDE) for key in ("a", "b")])
        seen = {key: lists(seen_by(plan, store._learner(key))) for key in ("a", "b")}
        store.apply([call_of(key, OBSERVE, {"round": t, **seen[key]}) for key in seen])
        done.value = t = t + 1


@pytest.mark.parametrize(("name", "durability"), turns([*MODELS], [*Durability]))
def test_kills_lose_no_round_and_count_none_twice(name, durability, tmp_path, request):
    plan, rng, path = plan_of(MODELS[name]), random.Random(name), tmp_path / "s.db"
    plain = None
    for _ in range(request.config.getoption("--kills")):
        safe = kill_at_random(record, (path, MODELS[name], durability), rng, 0.03)
        with closing(store_of(MODELS[name], path)) as store:
            plain = plain or {key: plain_learner(store, key) for key in ("a", "b")}
            rounds = {key: store._learner(key).round for key in plain}
            assert len(set(rounds.values())) == 1 and safe <= rounds["a"] <= safe + 1, "both or none"
            for key, learner in plain.items():
                while learner.round < rounds[key]:
                    t, decision, seen = learner.round, learner.decide(), seen_by(plan, learner)
                    assert decision_in(one(store, Call(key, DECIDE, t)).text) == bits(decision)
                    again = one(store, call_of(key, OBSERVE, {"round": t, **lists(seen)}))
                    assert not again.new and json.loads(again.text)["loss"] == learner.observe(**seen).loss
                assert decision_in(one(store, Call(key, DECIDE)).text) == bits(learner.decide())


def test_a_log_that_a_power_cut_shortened_leaves_an_earlier_round(tmp_path):
    """What reached the disk of the log is its beginning: the learner goes on from a round before, as it did in that round."""
    path, cut, rng = tmp_path / "s.db", tmp_path / "cut.db", random.Random(0)
    with closing(store_of(TRACKING, path, durability=Durability.SYSTEM)) as store:
        plan, decided, rounds = plan_of(TRACKING), [], set()
        for t in range(1, 21):
            decided.append(decision_in(one(store, Call("a", DECIDE, t)).text))
            one(store, call_of("a", OBSERVE, round_of(plan, t)))
        one(store, Call("a", DECIDE, 21))
        log = (tmp_path / "s.db-wal").read_bytes()
        for length in [rng.randrange(30_000, len(log)) for _ in range(12)]:
            shutil.copy(path, cut)
            (tmp_path / "cut.db-wal").write_bytes(log[:length])
            with closing(store_of(TRACKING, cut)) as earlier:
                t = earlier._learner("a").round
                rounds.add(t)
                assert decision_in(one(earlier, Call("a", DECIDE)).text) == decided[t - 1]
                assert one(earlier, call_of("a", OBSERVE, round_of(plan, t))).new
                assert code_of(earlier, call_of("a", OBSERVE, round_of(plan, 21))) == "OCO847"
    assert len(rounds) > 5


def test_stores_of_others_are_refused(tmp_path):
    path = tmp_path / "s.db"
    store = store_of(TRACKING, path)
    one(store, Call("a", DECIDE))
    with pytest.raises(OcoError, match="in use by") as caught:
        store_of(TRACKING, path)
    assert caught.value.code == "OCO855"
    store.close()
    for other, code in ((DRAWING, "OCO851"), (TRACKING.replace("0.001", "0.002"), "OCO851")):
        with pytest.raises(OcoError) as caught:
            store_of(other, path)
        assert caught.value.code == code
    for statement in (
        "UPDATE learners SET rest = '{\"skipped\":5}'",
        "UPDATE learners SET saved = zeroblob(88)",
        "CREATE TRIGGER t AFTER INSERT ON rounds BEGIN DELETE FROM learners; END",
    ):
        shutil.copy(path, tmp_path / "bad.db")
        with closing(sqlite3.connect(tmp_path / "bad.db")) as base, base:
            base.execute(statement)
        with pytest.raises(OcoError) as caught, closing(store_of(TRACKING, tmp_path / "bad.db")) as bad:
            bad.apply([Call("a", Action.STATE)])
        assert caught.value.code == "OCO854"


def test_a_store_of_a_version_with_another_plan_is_refused(tmp_path):
    path = tmp_path / "s.db"
    store_of(TRACKING, path).close()
    changes = (
        ("DELETE FROM about WHERE key IN ('plan_hash', 'version')", None),  # one that was begun before these were kept
        ("INSERT INTO about VALUES ('plan_hash', 'other'), ('version', '0.0.7')", "begun by oco 0.0.7"),
    )
    for statement, words in changes:
        with closing(sqlite3.connect(path)) as base, base:
            base.execute(statement)
        if words is None:
            store_of(TRACKING, path).close()
        else:
            with pytest.raises(OcoError, match=words) as caught:
                store_of(TRACKING, path)
            assert caught.value.code == "OCO851" and "that version" in caught.value.hint


def test_saved_states_journals_and_stores_are_served(tmp_path):
    """Each goes on where its learner ended, under the name of its model; a store knows its plan."""
    import oco

    plan = plan_of(TRACKING)
    with oco.open(plan, tmp_path / "journal") as learner:
        for t in range(1, 6):
            learner.decide()
            learner.observe(**data_of(plan, t))
        learner.save(tmp_path / "saved.state")
        expected = np.asarray(learner.decide())
    for place in (tmp_path / "saved.state", tmp_path / "journal"):
        opened = open_store(place, None, Options(), lambda path: plan)
        assert decision_in(one(opened, Call("tracked", DECIDE, 6)).text) == bits(expected)
        opened.close()
        again = open_store(opened.path, None, Options(), lambda path: plan)
        assert not one(again, Call("tracked", DECIDE, 6)).new
        again.close()
    with pytest.raises(OcoError, match="nothing to serve") as caught:
        open_store(tmp_path, None, Options(), lambda path: plan)
    assert caught.value.code == "OCO668"


@pytest.mark.parametrize("key", ["", "a b", "a/b", "ä", "x" * 201, "a\n"])
def test_wrong_keys_are_refused(key):
    with pytest.raises(OcoError) as caught:
        Call(key, DECIDE)
    assert caught.value.code == "OCO660"
