"""Jobs of engines of streams as modules, what an engine keeps in the place of its own state, and events for them."""

from __future__ import annotations

import io
import json
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serving_cases import CONTEXT, DELAYED, lists
from survival import DRAWING, TRACKING, data_of, plan_of

from oco.emitting import JobOptions, job
from oco.plan import Plan
from oco.serving.piping import pipe_lines
from oco.serving.states import KeyedStates
from oco.serving.store import Store
from oco.serving.streaming import key_of

MODELS = {"tracking": TRACKING, "random": DRAWING, "contexts": CONTEXT, "delayed": DELAYED}
SEED = 3


def events_of(text: str, rounds: int, keys: str = "abc") -> list[str]:
    """Lines of rounds of some keys, of which each third comes again; data of a delayed round come late, and after others."""
    plan = plan_of(text)
    lines, delay = [], plan.contract.delay
    contexts = dict.fromkeys(plan.program.context, 0.5)
    for t in range(1, rounds + 1):
        for key in keys:
            if delay or t == 1:
                lines.append({"key": key, "round": t, **({"decide": contexts} if contexts else {})})
            seen = [t] if not delay else [t - 1, t] if t % 2 == 0 else []
            for s in reversed(seen):
                observed = {name: v for name, v in _seen(plan, s).items() if name not in contexts}
                lines.append(
                    {"key": key, "round": s, "observe": observed, **({"decide": contexts} if contexts else {})}
                )
    lines = [line for k, line in enumerate(lines) for _ in range(1 + (k % 3 == 0))]
    return [json.dumps(line) for line in lines]


def _seen(plan: Plan, round: int) -> dict[str, Any]:
    """Data of a round: of bandit feedback values that may be those of any decision."""
    known, rng = data_of(plan, round), np.random.default_rng([8, round])
    shapes = {f.name: f.type.shape for f in plan.program.feedback}
    return lists(known if set(shapes) == set(known) else {n: rng.uniform(-0.4, 0.4, s) for n, s in shapes.items()})


def piped(text: str, path: Path, events: Sequence[str]) -> list[str]:
    """Answers of `oco pipe` to events."""
    out = io.StringIO()
    with Store(path, KeyedStates(plan_of(text), seed=SEED)) as store:
        pipe_lines(store, events, out)
    return out.getvalue().splitlines()


class Values(dict[str, bytes]):
    """State that an engine keeps of one key: a map of Flink, a state of Quix Streams."""

    def put(self, name: str, value: bytes) -> None:
        self[name] = value

    def remove(self, name: str) -> None:
        self.pop(name, None)

    get_bytes, set_bytes, delete = dict.get, put, remove
    set = put


class Value:
    """Value state of Flink."""

    def __init__(self) -> None:
        self.kept: bytes | None = None

    def value(self) -> bytes | None:
        return self.kept

    def update(self, value: bytes) -> None:
        self.kept = value

    def clear(self) -> None:
        self.kept = None


class Runtime:
    """Runtime context of Flink, with the states of all keys; `key` is that of the event."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[Value, Values]] = {}
        self.key = ""

    @property
    def own(self) -> tuple[Value, Values]:
        return self.values.setdefault(self.key, (Value(), Values()))

    def get_state(self, descriptor: Any) -> Any:
        return _Current(self, 0)

    def get_map_state(self, descriptor: Any) -> Any:
        return _Current(self, 1)


class _Current:
    """State of the key that the runtime is at."""

    def __init__(self, runtime: Runtime, place: int) -> None:
        self._runtime, self._place = runtime, place

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime.own[self._place], name)


def module_of(engine: str, text: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> types.ModuleType:
    """Job as a module, where stand-ins take the place of the engine's packages."""
    for name, parts in PACKAGES[engine].items():
        stand_in = types.ModuleType(name)
        for part in parts:
            setattr(stand_in, part, _Anything)
        monkeypatch.setitem(sys.modules, name, stand_in)
    module = types.ModuleType("job")
    exec(
        compile(job(plan_of(text), engine, Path("job.py"), JobOptions(seed=SEED, **options)), "job.py", "exec"),
        vars(module),
    )
    return module


class _Anything:
    """Class of an engine's package that a job names."""

    def __init__(self, *values: Any) -> None: ...
    def __class_getitem__(cls, item: Any) -> Any: ...

    STRING = BYTE = PRIMITIVE_ARRAY = staticmethod(lambda *values: None)


PACKAGES = {
    "flink": {
        "pyflink": (),
        "pyflink.common": ("Configuration", "Encoder", "Types", "WatermarkStrategy"),
        "pyflink.datastream": ("KeyedProcessFunction", "OutputTag", "StreamExecutionEnvironment"),
        "pyflink.datastream.connectors": (),
        "pyflink.datastream.connectors.file_system": ("FileSink", "FileSource", "RollingPolicy", "StreamFormat"),
        "pyflink.datastream.state": ("MapStateDescriptor", "ValueStateDescriptor"),
    },
    "quix": {"quixstreams": ("Application",)},
}
"""Packages that jobs import, with what they take of them."""


class FlinkHarness:
    """Function of a job of Flink, which a runtime context calls event by event; `move` makes a new process of it with the same state."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module, self.runtime = module, Runtime()
        self.move()

    def move(self) -> None:
        self.function = self.module.Learners()
        self.function.open(self.runtime)

    def answer(self, line: str) -> tuple[str, bool]:
        self.runtime.key = self.module.key_of(line)
        (result,) = self.function.process_element(line, None)
        return (result, True) if isinstance(result, str) else (result[1], False)

    def kept(self, key: str) -> dict[str, bytes]:
        learner, others = self.runtime.values[key]
        return {**others, **({} if learner.kept is None else {"learner": learner.kept})}


class QuixHarness:
    """Function of an application of Quix Streams, called with a state for each key."""

    def __init__(self, module: types.ModuleType) -> None:
        self.module, self.states = module, dict[str, Values]()
        self.move()

    def move(self) -> None:
        self.learners = self.module.Learners()

    def answer(self, line: str) -> tuple[str, bool]:
        key = key_of(line)
        state = self.states.setdefault(key, Values())
        result: tuple[str, bool] = self.learners.answer(line, key.encode(), 0, [], state)
        return result

    def kept(self, key: str) -> dict[str, bytes]:
        return self.states[key]


HARNESSES = {"flink": FlinkHarness, "quix": QuixHarness}


def decisions(lines: Sequence[str], key: str) -> list[bytes]:
    """Bytes of the decisions of a key in answers."""
    return [np.asarray(a["decision"], float).tobytes() for a in map(json.loads, lines) if a["key"] == key]
