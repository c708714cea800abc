"""Saved states: killed while they are written, damaged, foreign, older and newer; and files of every released format."""

from __future__ import annotations

import base64
import copy
import importlib.util
import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from survival import DRAWING, TRACKING, data_of, kill_at_random, plan_of, play_round, seen_by
from test_c99 import needs_compiler

import oco
from oco.backends.python.state_file import pack, unpack, write_state
from oco.backends.registry import restored
from oco.backends.saved import read_saved
from oco.dsl.diagnostics import OcoError

ROOT = Path(__file__).parent.parent
STATES = Path(__file__).parent / "states"
MODELS = {"tracking": TRACKING, "drawing": DRAWING}


def again(path, plan):
    state = read_saved(path)
    return restored(state, plan.compiled(state["backend"]), plan.contract)


def save_every_round(path, text, done):
    """Plays on from the file, as fast as it can, and saves after every round."""
    plan = plan_of(text)
    learner = again(path, plan)
    done.value = learner.round
    while True:
        play_round(plan, learner)
        learner.save(path)
        done.value = learner.round


@pytest.mark.parametrize("name", MODELS)
def test_kills_leave_a_whole_state_at_most_one_round_old(name, tmp_path, request):
    plan, path, rng = plan_of(MODELS[name]), tmp_path / "state", random.Random(name)
    plan.learner(seed=3).save(path)
    never_killed = plan.learner(seed=3)
    moved = 0
    for _ in range(request.config.getoption("--kills")):
        before = read_saved(path)
        safe = kill_at_random(save_every_round, (path, MODELS[name]), rng, 0.02)
        survivor = again(path, plan)
        assert safe <= survivor.round <= safe + 1
        while never_killed.round < survivor.round:
            play_round(plan, never_killed)
        assert survivor.decide().tobytes() == never_killed.decide().tobytes()
        assert survivor.state() == never_killed.state()
        moved += read_saved(path) != before
    assert moved > request.config.getoption("--kills") / 4, "hardly any process lived long enough to save"
    survivor = oco.restore(path)
    for _ in range(20):
        assert play_round(plan, survivor).tobytes() == play_round(plan, never_killed).tobytes()
    assert survivor.state() == never_killed.state()


def test_what_killed_writers_left_goes_after_an_hour(tmp_path):
    import os

    learner = plan_of(TRACKING).learner()
    old, new, other = tmp_path / ".state.abc.part", tmp_path / ".state.def.part", tmp_path / ".other.abc.part"
    for file in (old, new, other):
        file.write_text("half")
    for file in (old, other):
        os.utime(file, (1, 1))
    learner.save(tmp_path / "state")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".other.abc.part", ".state.def.part", "state"]


def refused(path, *words):
    with pytest.raises(OcoError) as caught:
        oco.restore(path)
    assert caught.value.code in ("OCO850", "OCO851"), caught.value
    for word in words:
        assert word in caught.value.message


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A learner after some rounds, and its file."""
    plan, path = plan_of(TRACKING), tmp_path_factory.mktemp("saved") / "state"
    learner = plan.learner()
    for _ in range(5):
        play_round(plan, learner)
    learner.save(path)
    return path.read_bytes()


def test_files_that_are_not_whole_say_what_they_are(tmp_path, saved):
    path = tmp_path / "state"
    cases = [
        (saved[:-1], "damaged"),
        (saved[: len(saved) // 2], "damaged"),
        (saved.replace(b"oco-state 1", b"oco-state 2"), "a newer version"),
        (saved.replace(b"oco-state 1", b"oco-state 0"), "an older version"),
        (b"", "not a saved state"),
        (b"PNG\x00\xff\n\n", "not a saved state"),
        (b"[1, 2, 3]", "not a saved state"),
        (bytes(random.Random(0).randbytes(5000)), "not a saved state"),
    ]
    for content, words in cases:
        path.write_bytes(content)
        refused(path, words)
    refused(tmp_path / "nothing", "cannot be read")
    refused(tmp_path, "cannot be read")


def test_a_thousand_mutations_never_give_a_learner(tmp_path, saved):
    rng, path, tried = random.Random(1), tmp_path / "state", 0
    while tried < 1000:
        damaged = bytearray(saved)
        for _ in range(rng.choice((1, 1, 1, 3, 20))):
            place, kind = rng.randrange(len(damaged)), rng.randrange(5)
            if kind == 0:
                damaged[place] ^= 1 << rng.randrange(8)
            elif kind == 1:
                del damaged[place:]
            elif kind == 2:
                damaged[place:place] = rng.randbytes(rng.randrange(1, 9))
            elif kind == 3:
                del damaged[place : place + rng.randrange(1, 60)]
            else:
                other = rng.randrange(len(damaged))
                damaged[place : place + 30] = damaged[other : other + 30]
            damaged = damaged or bytearray(b"\0")
        if bytes(damaged) == saved:
            continue
        tried += 1
        path.write_bytes(damaged)
        refused(path)


def places(value, path=()):
    """Where something stands in JSON values."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


STRANGE = [None, True, -1, 0, 2**70, 1.5, "", "x", [], {}, [1], {"dtype": "|O", "shape": [], "data": ""}, "\u0000"]
PACKED = [
    {"dtype": "<f8", "shape": [4], "data": "AAAA"},
    {"dtype": "<f8", "shape": [-1], "data": ""},
    {"dtype": "<i8", "shape": [], "data": base64.b64encode(bytes(8)).decode()},
    {"dtype": "<f8", "shape": [10**9], "data": base64.b64encode(bytes(8)).decode()},
]


def test_states_made_up_by_others_are_errors_or_whole():
    """Content with a right checksum but wrong insides: nothing but an OcoError, or a learner with the program's kinds and shapes."""
    plan = plan_of(TRACKING)
    good, rng, compiled = plan.learner().state(), random.Random(2), plan.compiled()
    program_kinds = {n: (v.dtype, v.shape) for n, v in plan.learner().values.items()}
    everywhere = [p for p in places(good) if p and p[0] not in ("recipe", "warnings", "model")]
    errors = 0
    for _ in range(600):
        state = copy.deepcopy(good)
        *way, last = rng.choice(everywhere)
        inner = state
        for key in way:
            inner = inner[key]
        if rng.random() < 0.2:
            del inner[last]
        else:
            inner[last] = rng.choice(STRANGE + PACKED)
        try:
            learner = restored(state, compiled, plan.contract)
        except OcoError as error:
            assert error.code in ("OCO850", "OCO851")
            errors += 1
            continue
        assert program_kinds == {n: (v.dtype, v.shape) for n, v in learner.values.items()}
        play_round(plan, learner)
    assert errors > 450


def kept_by_nobody(state):
    """States with a right checksum whose numbers no learner keeps."""
    for name, packed in state["values"].items():
        array = np.array(unpack(packed))
        for value in (np.nan, np.inf, -np.inf) if array.dtype.kind == "f" else (0, -5, 2**53 + 1, 2**63 - 1):
            for whole in (True, False):
                wrong = array.copy()
                wrong.flat[slice(None) if whole else -1] = value
                yield state | {"values": state["values"] | {name: pack(wrong)}}
    for packed in state.get("drawn") or ():
        wrong = np.full(packed["shape"], np.nan)
        yield state | {"drawn": [pack(wrong)] * len(state["drawn"])}


@pytest.mark.parametrize("backend", ["numpy", pytest.param("c", marks=needs_compiler)])
@pytest.mark.parametrize("name", MODELS)
def test_states_with_numbers_that_no_learner_keeps_are_refused(name, backend):
    plan = plan_of(MODELS[name])
    learner = plan.learner(seed=1, backend=backend)
    for _ in range(5):
        play_round(plan, learner)
    learner.decide()
    tried = 0
    for state in kept_by_nobody(learner.state()):
        with pytest.raises(OcoError) as caught:
            restored(state, plan.compiled(backend), plan.contract)
        assert caught.value.code == "OCO850"
        tried += 1
    assert tried > 15


@pytest.mark.parametrize("name", MODELS)
def test_the_emitted_module_refuses_them_too(name, tmp_path):
    module, state = emitted(plan_of(MODELS[name]), tmp_path), None
    learner = module.Learner()
    for _ in range(3):
        learner.decide()
        state = learner.state()
        learner.observe(**{n: np.zeros(s.shape) for n, s in module.STREAMS.items()})
    assert module.Learner.from_state(state).state() == state
    assert ("drawn" in state) == ("random" in state) == (name == "drawing"), (
        "a module that draws nothing keeps no generator"
    )
    drawn = ({"drawn": [pack(np.zeros(9))] * 9}, {"drawn": 3}, {"random": None}) if "drawn" in state else ()
    for wrong in (*kept_by_nobody(state), *(state | other for other in drawn)):
        with pytest.raises(module.StateError):
            module.Learner.from_state(wrong)


def test_a_recipe_of_another_kind_is_an_error(tmp_path):
    good = plan_of(TRACKING).learner().state()
    for recipe in (None, [], "x", {}, good["recipe"] | {"settings": 3}, good["recipe"] | {"model": 7, "name": None}):
        with pytest.raises(OcoError):
            oco.restore(good | {"recipe": recipe})


def test_another_model_or_plan_is_refused_by_name(tmp_path):
    a, b = plan_of(TRACKING), plan_of(TRACKING.replace("gamma = 10", "gamma = 12"))
    with pytest.raises(OcoError, match="another model"):
        restored(a.learner().state(), b.compiled(), b.contract)
    recipe = a.recipe["settled"] | {"gamma": "0x1.0p+0"}
    state = a.learner().state()
    with pytest.raises(OcoError, match="its gamma is 1, here"):
        restored(state | {"recipe": state["recipe"] | {"settled": recipe}}, a.compiled(), a.contract)


def test_state_is_json_and_carries_on_without_a_file():
    plan = plan_of(DRAWING)
    one = plan.learner(seed=5)
    for _ in range(7):
        play_round(plan, one)
    two = oco.restore(json.loads(json.dumps(one.state())))
    for _ in range(7):
        assert play_round(plan, one).tobytes() == play_round(plan, two).tobytes()
    assert one.state() == two.state()


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_what_c_saved_is_restored_in_numpy_and_back(tmp_path):
    plan = plan_of(TRACKING)
    ours = plan.learner(backend="c")
    for _ in range(10):
        play_round(plan, ours)
    ours.save(tmp_path / "state")
    theirs, same = oco.restore(tmp_path / "state", "numpy"), oco.restore(tmp_path / "state", "c")
    assert theirs.values["round"] == same.values["round"] == 11
    for _ in range(5):
        x = play_round(plan, ours)
        assert np.allclose(x, play_round(plan, theirs), atol=1e-12) and x.tobytes() == play_round(plan, same).tobytes()


def test_the_emitted_module_takes_the_state_of_a_learner_and_back(tmp_path):
    plan = plan_of(TRACKING)
    plan.write(tmp_path / "emitted.py", backend="numpy")
    learner = plan.learner(backend="numpy")
    for _ in range(5):
        play_round(plan, learner)
    learner.save(tmp_path / "state")
    data = [{n: np.asarray(v).tolist() for n, v in data_of(plan, 6 + k).items()} for k in range(5)]
    code = f"""
import sys, json
sys.path.insert(0, {str(tmp_path)!r})
import emitted
learner = emitted.Learner.load({str(tmp_path / "state")!r})
for d in {data!r}:
    learner.decide()
    learner.observe(**d)
again = emitted.Learner.from_state(json.loads(json.dumps(learner.state())))
assert again.state() == learner.state()
print(json.dumps(learner.state()["values"]))
for key, value in [("values", {{}}), ("plan_hash", "x"), ("values", None)]:
    try:
        emitted.Learner.from_state(learner.state() | {{key: value}})
    except emitted.StateError:
        continue
    raise AssertionError(key)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for _ in range(5):
        play_round(plan, learner)
    assert json.loads(done.stdout) == learner.state()["values"]


def test_no_pickle_anywhere():
    words = ("import pickle", "pickle.load", "allow_pickle=True", "marshal.load", "shelve.open", "dill", "joblib")
    for folder in ("api", "dsl", "compiler", "backends", "evaluation", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            assert not [w for w in words if w in text], path


@pytest.mark.parametrize("path", sorted(STATES.glob("*.state")), ids=lambda p: p.stem)
def test_released_formats_stay_readable(path):
    """Beside each file stand the decisions that the learner went on to take when it was saved, as numbers in hexadecimal."""
    learner = oco.restore(path, "numpy")
    expected = json.loads(path.with_suffix(".json").read_text())
    assert learner.round == expected["round"]
    for wanted, streams in zip(expected["decisions"], expected["rounds"], strict=True):
        assert np.allclose(learner.decide(), [float.fromhex(v) for v in wanted], rtol=1e-9, atol=1e-12)
        learner.observe(**streams)


def test_the_corpus_holds_every_format():
    from oco.backends.python.state_file import STATE_FORMAT

    heads = {path.read_bytes().split(b" ")[1].decode() for path in STATES.glob("*.state")}
    assert heads == {str(k) for k in range(1, int(STATE_FORMAT.split()[1]) + 1)}


def write_corpus() -> None:
    """`python tests/test_states.py`: adds files of the present format; those of released ones are never written again."""
    for name, text in MODELS.items():
        plan = plan_of(text)
        learner = plan.learner(seed=1, backend="numpy")
        for _ in range(12):
            play_round(plan, learner)
        write_state(STATES / f"{name}_1.state", learner.state())
        first, decisions, rounds = learner.round, [], []
        for _ in range(8):
            rounds.append({n: np.asarray(v).tolist() for n, v in seen_by(plan, learner).items()})
            decisions.append([float(v).hex() for v in play_round(plan, learner)])
        content = {"round": first, "decisions": decisions, "rounds": rounds}
        (STATES / f"{name}_1.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    write_corpus()


def emitted(plan, folder):
    """The module that is written for a plan."""
    plan.write(folder / "emitted.py", "numpy")
    spec = importlib.util.spec_from_file_location("emitted", folder / "emitted.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_state_of_an_emitted_module_says_where_it_belongs(tmp_path):
    plan = plan_of(TRACKING)
    module = emitted(plan, tmp_path)
    module.Learner().save(tmp_path / "state")
    with pytest.raises(OcoError, match=r"Learner\.load") as caught:
        oco.restore(tmp_path / "state")
    assert caught.value.code == "OCO850"
    with pytest.raises(OcoError, match="its algorithm is ogd, here it is"):
        state = plan.learner().state()
        restored(state | {"recipe": state["recipe"] | {"algorithm": "ogd"}}, plan.compiled(), plan.contract)
