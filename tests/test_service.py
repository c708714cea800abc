"""Service of learners over HTTP: answers of plain learners, clients at once, hostile requests, tokens, processes that are killed."""

from __future__ import annotations

import asyncio
import base64
import ctypes
import json
import multiprocessing
import os
import random
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
from serving_cases import DELAYED, bits, commits_of, plain_learner, round_of, store_of
from starlette.testclient import TestClient
from survival import TRACKING, data_of, plan_of

from oco.backends.database import Durability
from oco.serving.admission import Admission, RateLimit
from oco.serving.calls import Action, Call, Reply, call_of
from oco.serving.commits import GroupCommits
from oco.serving.running import run
from oco.serving.service import Service

CERTIFIED = """\
model bounded
horizon T = 200
decision x[2] in simplex
stream cost[2] in [0, 1]
minimize cost @ x
subject to
    even: x[0] - x[1] <= 0.5    each round
using coldq
"""
HOME = "http://127.0.0.1"


@contextmanager
def client_of(commits, tokens=(), rate=None, clock=time.perf_counter):
    with TestClient(
        Service(commits, Admission(tokens, rate, clock)), base_url=HOME, raise_server_exceptions=False
    ) as client:
        yield client


@pytest.fixture
def client(tmp_path):
    with client_of(commits_of(store_of(TRACKING, tmp_path / "s.db"))) as client:
        yield client


def test_answers_are_those_of_plain_learners(tmp_path):
    plan, store = plan_of(TRACKING), store_of(TRACKING, tmp_path / "s.db")
    plain = plain_learner(store, "a")
    with client_of(commits_of(store)) as client:
        for t in range(1, 11):
            decided = client.post("/learners/a/decide").json()
            assert decided["round"] == t and bits(decided["decision"]) == bits(plain.decide())
            first, again = (client.post("/learners/a/observe", json=round_of(plan, t)) for _ in range(2))
            feedback = plain.observe(**data_of(plan, t))
            assert first.text == again.text and first.json()["loss"] == feedback.loss
            assert first.json()["violation"] == {"cap": feedback.violation[0]}
        shown = client.get("/metrics").text
    lines = dict(line.rsplit(" ", 1) for line in shown.splitlines() if not line.startswith("#"))
    assert lines["oco_rounds_total"] == lines["oco_decisions_total"] == lines["oco_repeated_total"] == "10"
    assert lines['oco_request_seconds_count{action="observe"}'] == "20" and lines["oco_learners"] == "1"
    assert 0 <= float(lines['oco_broken_share{constraint="cap"}']) <= 1
    with client_of(commits_of(store_of(TRACKING, tmp_path / "s.db"))) as client:  # after a shutdown it goes on
        assert bits(client.post("/learners/a/decide").json()["decision"]) == bits(plain.decide())
        assert client.get("/learners/a/state").json()["state"]["values"] == plain.state()["values"]
        assert client.get("/healthz").json()["status"] == "ok"


def test_states_go_on_elsewhere(tmp_path):
    """As JSON values, and as the bytes that emitted C saves."""
    import oco

    plan, store = plan_of(TRACKING), store_of(TRACKING, tmp_path / "s.db")
    with client_of(commits_of(store)) as client:
        for t in range(1, 4):
            client.post("/learners/a/decide")
            client.post("/learners/a/observe", json=round_of(plan, t))
        shown = client.get("/learners/a/state").json()
        saved = base64.b64decode(shown["bytes"])
        others = oco.restore(shown["state"]), oco.restore(saved, plan=plan)
        assert others[1].value_bytes() == saved and {other.round for other in others} == {4}
        for t in range(4, 7):
            decided = client.post("/learners/a/decide").json()["decision"]
            client.post("/learners/a/observe", json=round_of(plan, t))
            for other in others:
                assert bits(decided) == bits(other.decide())
                other.observe(**data_of(plan, t))
    for wrong, given in ((saved[:-1], plan), (saved, None), (b"", plan), (saved, plan_of(DELAYED))):
        with pytest.raises(oco.OcoError) as caught:
            oco.restore(wrong, plan=given)
        assert caught.value.code == "OCO850"


def test_late_rounds_come_by_their_number(tmp_path):
    plan, store = plan_of(DELAYED), store_of(DELAYED, tmp_path / "s.db")
    plain = plain_learner(store, "a")
    with client_of(commits_of(store)) as client:
        for t in (1, 2, 3):
            decided = client.post("/learners/a/decide", json={"round": t}).json()["decision"]
            assert bits(decided) == bits(plain.decide())
        full = client.post("/learners/a/decide", json={"round": 4})
        assert full.status_code == 409 and full.json()["code"] == "OCO869"
        for t in (3, 1, 3):
            assert client.post("/learners/a/observe", json=round_of(plan, t)).status_code == 200
        for t in (3, 1):
            plain.observe(**data_of(plan, t), round=t)
        assert bits(client.post("/learners/a/decide", json={"round": 4}).json()["decision"]) == bits(plain.decide())


def test_certificates_are_shown_and_measured(tmp_path):
    import oco
    from oco.serving.metrics import Metrics
    from oco.serving.states import KeyedStates
    from oco.serving.store import Store

    plan = oco.compile(oco.parse(CERTIFIED), certify="static")
    store = Store(tmp_path / "s.db", KeyedStates(plan))
    plain = plan.learner(backend=store.states.backend)
    with client_of(GroupCommits(store, Metrics(plan.program.labels))) as client:
        for t in range(1, 6):
            client.post("/learners/a/decide")
            plain.decide()
            client.post("/learners/a/observe", json=round_of(plan, t))
            plain.observe(**data_of(plan, t))
        shown = client.get("/learners/a/certificate").json()
        assert shown["regret"] == plain.certificate().bound and shown["statement"] == plain.certificate().statement
        assert f'oco_certificate_regret{{key="a"}} {shown["regret"]!r}' in client.get("/metrics").text


def test_clients_at_once(tmp_path):
    """Each of 20 clients has a key of its own, and all of them send the rounds of one more key as well."""
    plan, store = plan_of(TRACKING), store_of(TRACKING, tmp_path / "s.db")
    commits = commits_of(store)
    keys, rounds = [f"k{i}" for i in range(20)], range(1, 6)

    async def play(client, key):
        results = []
        for t in rounds:
            results.append((await client.post(f"/learners/{key}/decide", json={"round": t})).json()["decision"])
            done = await client.post(f"/learners/{key}/observe", json=round_of(plan, t))
            assert done.status_code == 200
        return results

    async def all_of_them():
        transport = httpx.ASGITransport(Service(commits))
        async with httpx.AsyncClient(transport=transport, base_url=HOME) as client:
            results = await asyncio.gather(*(play(client, key) for key in [*keys, *["shared"] * 20]))
        await commits.close()
        return results

    results = asyncio.run(all_of_them())
    plain, expected = plain_learner(store, "any"), []
    for t in rounds:
        expected.append(bits(plain.decide()))
        plain.observe(**data_of(plan, t))
    assert all([bits(d) for d in decisions] == expected for decisions in results)
    assert commits.metrics.rounds == 21 * len(rounds) and commits.metrics.repeated == 19 * 2 * len(rounds)
    assert sum(commits.metrics.batches.counts) < commits.metrics.batches.sum


GOOD = {"round": 1, "goal": [0, 0, 0, 0], "limit": 1}
BODIES = {
    "no JSON": (b"{", 400, "OCO662"),
    "NaN": (b'{"round": 1, "goal": [NaN, 0, 0, 0], "limit": 1}', 400, "OCO662"),
    "infinite": (b'{"round": 1, "goal": [1e999, 0, 0, 0], "limit": 1}', 422, "OCO843"),
    "a list": (b"[1, 2]", 400, "OCO662"),
    "deep": (b"[" * 60_000, 400, "OCO662"),
    "a name twice": (b'{"round": 1, "round": 2}', 400, "OCO662"),
    "many digits": (b'{"round": 1' + b"0" * 6000 + b"}", 400, "OCO662"),
    "no text": (b"\xff\xfe\x00", 400, "OCO662"),
    "a huge body": (b" " * (1 << 20), 413, "OCO663"),
    "no round": (json.dumps({"goal": [0, 0, 0, 0], "limit": 1}).encode(), 400, "OCO662"),
}
VALUES = {
    "round 0": ({"round": 0}, 400, "OCO662"),
    "round true": ({"round": True}, 400, "OCO662"),
    "round a text": ({"round": "1"}, 400, "OCO662"),
    "a late round": ({"round": 2}, 409, "OCO847"),
    "a huge round": ({"round": 10**30}, 409, "OCO847"),
    "a wrong shape": ({"goal": [0, 0]}, 422, "OCO842"),
    "ragged": ({"goal": [0, [0], 0, 0]}, 422, None),
    "a text": ({"goal": "zero"}, 422, None),
    "null": ({"limit": None}, 422, None),
    "a table": ({"limit": {"a": 1}}, 422, None),
    "out of bounds": ({"limit": 1e6}, 422, "OCO845"),
    "an unknown name": ({"other": 1}, 422, None),
    "a name of Python": ({"self": 1, "__class__": 2}, 422, None),
}


def test_hostile_requests_change_nothing(client):
    """Every refusal is problem+json with a code; then the learner is as before, and goes on."""
    client.post("/learners/a/decide")
    before = client.get("/learners/a/state").text
    cases = {**BODIES, **{name: (json.dumps({**GOOD, **v}).encode(), *rest) for name, (v, *rest) in VALUES.items()}}
    for name, (body, status, code) in cases.items():
        reply = client.post("/learners/a/observe", content=body, headers={"Content-Type": "application/json"})
        about = reply.json()
        assert reply.headers["content-type"] == "application/problem+json", name
        assert reply.status_code == about["status"] == status, (name, about)
        assert (about["code"] == code if code else about["code"].startswith("OCO8")) and about["hint"], (name, about)
    for path, status in (
        ("/learners/new/state", 404),
        ("/learners/a%20b/state", 422),
        ("/learners/a/certificate", 404),
        ("/learners//state", 404),
        ("/learners/..%2f..%2fetc/state", 404),
        ("/nowhere", 404),
        ("/learners/a/observe", 405),
    ):
        reply = client.get(path)
        assert reply.status_code == status and reply.headers["content-type"] == "application/problem+json", path
    assert (
        client.post("/learners/a/observe", content=json.dumps(GOOD)).json()["code"] == "OCO662"
    )  # no JSON by its type
    for foreign in ({"Host": "elsewhere.example"}, {"Origin": "https://elsewhere.example"}, {"Origin": "null"}):
        reply = client.post("/learners/a/skip", headers=foreign)
        assert reply.status_code == 401 and reply.json()["code"] == "OCO664"
    assert client.get("/learners/a/state").text == before
    assert client.post("/learners/a/observe", json=GOOD).status_code == 200


def test_tokens_are_asked_for(tmp_path):
    with client_of(commits_of(store_of(TRACKING, tmp_path / "s.db")), ["one", "two"]) as client:
        for headers in ({}, {"Authorization": "Bearer thr"}, {"Authorization": "Basic one"}, {"Authorization": "one"}):
            reply = client.post("/learners/a/decide", headers=headers)
            assert reply.status_code == 401 and reply.json()["code"] == "OCO664" and "www-authenticate" in reply.headers
        for token in ("one", "two"):
            assert client.post("/learners/a/decide", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert client.get("/healthz").status_code == 200
        secured = client.get("/openapi.json", headers={"Authorization": "Bearer one"}).json()
        assert secured["security"] == [{"token": []}]


def test_a_client_may_send_so_many_requests_a_second(tmp_path):
    commits, now = commits_of(store_of(TRACKING, tmp_path / "s.db")), [0.0]
    with client_of(commits, ["one", "two"], 2, lambda: now[0]) as client:

        def asked(token):
            return client.post("/learners/a/decide", headers={"Authorization": f"Bearer {token}"})

        *_, refused = replies = [asked("one") for _ in range(3)]
        assert [reply.status_code for reply in replies] == [200, 200, 429]
        assert refused.headers["content-type"] == "application/problem+json" and refused.headers["retry-after"] == "1"
        assert refused.json()["code"] == "OCO666" and refused.json()["status"] == 429 and refused.json()["hint"]
        assert [asked("two").status_code, *(asked("wrong").status_code for _ in range(3))] == [200, 401, 401, 429]
        now[0] = 0.5
        assert [asked("one").status_code for _ in range(2)] == [200, 429]
        assert commits.metrics.errors == {"OCO666": 3, "OCO664": 2} and commits.metrics.decisions == 1
        two = {"Authorization": "Bearer two"}
        assert client.get("/healthz").status_code == 200
        document = client.get("/openapi.json", headers=two).json()
        assert "429" in document["paths"]["/learners/{key}/decide"]["post"]["responses"]


@pytest.mark.parametrize("rate", [1, 3, 1000])
def test_admitted_requests_are_those_of_a_token_bucket(rate):
    """Of every window of `s` seconds at most rate * (s + 1) pass, and a client that keeps to its rate is never refused."""
    rng, limit, now, passed = random.Random(rate), RateLimit(rate), 0.0, []
    for _ in range(2000):
        now += rng.expovariate(3 * rate)
        wait = limit.wait("a", now)
        assert 0 <= wait <= 1 / rate
        passed += [] if wait else [now]
    for first in range(0, len(passed), 50):
        for last in range(first, len(passed), 50):
            assert last - first + 1 <= rate * (passed[last] - passed[first] + 1) + 1e-6
    assert len(passed) >= 0.7 * rate * now  # without a burst each waits 1, and 1/3 more for the next: 3/4
    steady = RateLimit(rate)
    assert not any(steady.wait("a", t / rate) for t in range(1000))


def test_clients_of_long_ago_are_forgotten():
    limit = RateLimit(5)
    for i in range(50_000):
        assert limit.wait(str(i), i * 1e-4) == 0
    assert len(limit._due) <= 30_000


def test_openapi_has_the_schemas_of_the_learner(client):
    document = client.get("/openapi.json").json()
    learner = plan_of(TRACKING).learner()
    body = document["paths"]["/learners/{key}/observe"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert (
        body["required"] == ["goal", "limit", "round"]
        and body["properties"]["goal"] == learner.schema()["observe"]["properties"]["goal"]
    )
    assert {*document["paths"]} == {f"/learners/{{key}}/{action}" for action in Action}


def test_calls_that_wait_are_answered_before_the_end(tmp_path):
    from oco.dsl.diagnostics import OcoError

    commits = commits_of(store_of(TRACKING, tmp_path / "s.db"))

    async def play():
        waiting = [commits.submit(Call(f"k{i}", Action.DECIDE)) for i in range(50)]
        await commits.close()
        assert all(future.result().new for future in waiting)
        with pytest.raises(OcoError) as caught:
            commits.submit(Call("a", Action.DECIDE))
        assert caught.value.code == "OCO665"

    asyncio.run(play())


@pytest.mark.parametrize("failing", [False, True])
def test_the_disk_follows_where_answers_do_not_wait_for_it(failing, tmp_path, monkeypatch, caplog):
    """One synchronization for calls of a while, after the last of them was answered; one that fails is an error that can be seen."""
    monkeypatch.setattr("oco.serving.commits.BEHIND", 0.05)
    commits = commits_of(store_of(TRACKING, tmp_path / "s.db", durability=Durability.SYSTEM))
    synchronized, fsync = [], os.fsync

    def seen(file):
        synchronized.append(os.readlink(f"/proc/self/fd/{file}") if os.path.exists("/proc/self/fd") else "s.db-wal")
        if failing:
            raise OSError(5, "Input/output error")
        fsync(file)

    monkeypatch.setattr("os.fsync", seen)

    async def play():
        answers = [await commits.submit(Call(key, Action.DECIDE)) for key in ("a", "b", "c")]
        assert not synchronized and all(answer.new for answer in answers)
        while not synchronized:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        await commits.close()

    asyncio.run(play())
    assert len(synchronized) == 1 and synchronized[0].endswith("s.db-wal")
    assert commits.metrics.errors == ({"OCO858": 1} if failing else {})
    assert ("cannot be put on the disk" in caplog.text) is failing


def test_a_call_that_is_answered_while_the_disk_is_at_work_is_followed_too(tmp_path, monkeypatch):
    monkeypatch.setattr("oco.serving.commits.BEHIND", 0.01)
    commits = commits_of(store_of(TRACKING, tmp_path / "s.db", durability=Durability.SYSTEM))
    begun, go_on = threading.Event(), threading.Event()
    synchronized = []
    monkeypatch.setattr(commits.store, "synchronize", lambda: (synchronized.append(1), begun.set(), go_on.wait(10)))

    async def play():
        await commits.submit(Call("a", Action.DECIDE))
        await asyncio.to_thread(begun.wait, 10)
        await commits.submit(Call("b", Action.DECIDE))
        go_on.set()
        for _ in range(500):
            if len(synchronized) == 2:
                break
            await asyncio.sleep(0.01)
        await commits.close()

    asyncio.run(play())
    assert len(synchronized) == 2


def test_a_bug_in_one_call_leaves_the_others(tmp_path):
    store = store_of(TRACKING, tmp_path / "s.db")
    answered = store.answered

    def failing(call):
        if call.key == "bad":
            raise ZeroDivisionError
        return answered(call)

    store.answered = failing
    with client_of(commits_of(store)) as client:
        replies = [client.post(f"/learners/{key}/decide") for key in ("a", "bad", "b")]
    assert [r.status_code for r in replies] == [200, 500, 200] and replies[1].json()["code"] == "OCO999"
    both = commits_of(store_of(TRACKING, tmp_path / "t.db"))
    both.store.answered, answered = failing, both.store.answered

    async def play():
        calls = [both.submit(call_of(key, Action.DECIDE, {})) for key in ("a", "bad", "b", "a")]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        await both.close()
        return [type(answer) for answer in answers]

    assert asyncio.run(play()) == [Reply, ZeroDivisionError, Reply, Reply]


def serve(path, port):
    run(
        store_of(TRACKING, path),
        "127.0.0.1",
        0,
        Admission(),
        lambda text: setattr(port, "value", int(text.split(":")[3].split()[0])),
    )


def test_kills_while_it_serves_lose_nothing(tmp_path, request):
    """A client plays on through kills, and sends again what was not answered: decisions are those of a learner that nobody killed."""
    plan, rng, path = plan_of(TRACKING), random.Random(0), tmp_path / "s.db"
    with store_of(TRACKING, path) as store:
        plain = plain_learner(store, "a")
    context, t, observed = multiprocessing.get_context("fork"), 1, 0
    for _ in range(request.config.getoption("--kills")):
        port = context.Value(ctypes.c_int64, 0, lock=False)
        process = context.Process(target=serve, args=(path, port), daemon=True)
        process.start()
        while not port.value and process.is_alive():
            time.sleep(0.002)
        assert process.is_alive()
        with httpx.Client(base_url=f"{HOME}:{port.value}", timeout=30) as client:
            while client_fails(client):
                time.sleep(0.002)
            threading.Timer(rng.uniform(0.005, 0.12), process.kill).start()
            try:
                while True:
                    decided = client.post("/learners/a/decide", json={"round": t}).json()
                    assert bits(decided["decision"]) == bits(plain.decide())
                    done = client.post("/learners/a/observe", json=round_of(plan, t)).json()
                    assert done["loss"] == plain.observe(**data_of(plan, t)).loss
                    t, observed = t + 1, observed + 1
            except httpx.TransportError:
                pass
        process.join()
        assert process.exitcode == -9
    assert observed > 0


def client_fails(client):
    """True until the server answers."""
    try:
        return client.get("/healthz").status_code != 200
    except httpx.TransportError:
        return True
