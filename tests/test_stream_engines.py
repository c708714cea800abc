"""Jobs of engines of streams where these are installed (`make engines`): Flink's mini cluster, and Quix Streams' own state store."""

from __future__ import annotations

import contextvars
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from stream_cases import MODELS, SEED, decisions, events_of, piped
from survival import TRACKING, plan_of

from oco.emitting import JobOptions, job
from oco.plan import Plan
from oco.serving.streaming import key_of

STOPPED = '''

def stopped_and_begun_again(folder):
    """Take the first events, stop with a savepoint, and go on from it with all events in a job of its own."""
    import time
    from pathlib import Path

    from pyflink.common import Duration
    from pyflink.java_gateway import get_gateway

    def started(options):
        env = environment(options)
        form = StreamFormat.text_line_format()
        lines = FileSource.for_record_stream_format(form, EVENTS).monitor_continuously(Duration.of_millis(200)).build()
        events = env.from_source(lines, WatermarkStrategy.no_watermarks(), "events").uid("events")
        answers, refused = answered(events)
        sink(answers, ANSWERS)
        sink(refused, REFUSED)
        return env.execute_async("test")

    def has(count):
        done = [p for p in Path(ANSWERS).rglob("part-*")]
        return sum(p.read_text().count("\\n") for p in done) >= count

    counts = [int(n) for n in (Path(folder) / "counts").read_text().split()]
    options = []
    for k, count in enumerate(counts):
        (Path(folder) / f"{k}.jsonl").rename(Path(EVENTS) / f"{k}.jsonl")
        client = started(options)
        until = time.monotonic() + 300
        while not has(count):
            assert time.monotonic() < until, "answers did not come"
            time.sleep(0.1)
        form = get_gateway().jvm.org.apache.flink.core.execution.SavepointFormatType.CANONICAL
        place = client._j_job_client.stopWithSavepoint(False, str(Path(folder) / "savepoints"), form).get()
        options = [("execution.state-recovery.path", place)]


if __name__ == "__main__":
    import sys

    stopped_and_begun_again(sys.argv[1]) if len(sys.argv) > 1 else main()
'''


def flink_job(text: str, folder: Path) -> Path:
    """Job with its paths in a folder, which can stop and begin again."""
    (folder / "events").mkdir()
    written = job(plan_of(text), "flink", folder / "job.py", JobOptions(seed=SEED))
    for name in ("events", "answers", "refused"):
        written = written.replace(f'= "{name}', f'= "{folder}/{name}').replace("events.jsonl", "events")
    written = written.replace("CHECKPOINT_MILLISECONDS = 10_000", "CHECKPOINT_MILLISECONDS = 200")
    written = written.replace("RESTARTS = 10", "RESTARTS = 0").partition('\nif __name__ == "__main__"')[0] + STOPPED
    (folder / "job.py").write_text(written)
    return folder / "job.py"


def ran(path: Path, *words: str) -> None:
    done = subprocess.run([sys.executable, str(path), *words], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


def lines_of(folder: Path) -> list[str]:
    """Lines of all files of a sink."""
    return [line for path in sorted(folder.rglob("*part-*")) for line in path.read_text().splitlines()]


def same_by_key(found: Sequence[str], wanted: Sequence[str]) -> None:
    """Answers of each key are the same; those of several keys may come in any order."""
    assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("model", MODELS)
def test_flink_answers_as_a_pipe(model: str, tmp_path: Path) -> None:
    pytest.importorskip("pyflink")
    events = [*events_of(MODELS[model], 10, "abcdefg"), '{"key": "a", "other": 1}', "no JSON"]
    path = flink_job(MODELS[model], tmp_path)
    (tmp_path / "events" / "all.jsonl").write_text("\n".join(events) + "\n")
    ran(path)
    same_by_key(lines_of(tmp_path / "answers"), piped(MODELS[model], tmp_path / "s.db", events[:-2]))
    assert [json.loads(line)["error"]["code"] for line in lines_of(tmp_path / "refused")] == ["OCO662"] * 2


def test_flink_goes_on_from_a_savepoint(tmp_path: Path) -> None:
    """Three jobs, each from the savepoint of the one before it, answer as one pipe that was never stopped."""
    pytest.importorskip("pyflink")
    events = events_of(TRACKING, 15, "abcdefg")
    path, third = flink_job(TRACKING, tmp_path), len(events) // 3
    parts = [events[:third], events[third : 2 * third], events[2 * third :]]
    for k, part in enumerate(parts):
        (tmp_path / f"{k}.jsonl").write_text("\n".join(part) + "\n")
    (tmp_path / "counts").write_text(" ".join(str(sum(map(len, parts[: k + 1]))) for k in range(3)))
    ran(path, str(tmp_path))
    found, wanted = lines_of(tmp_path / "answers"), piped(TRACKING, tmp_path / "s.db", events)
    same_by_key(found, wanted)
    assert all(set(decisions(found, key)) == set(decisions(wanted, key)) for key in "abcdefg")


class Quix:
    """Process of Quix Streams without a broker: the data frame of a job over stores of RocksDB, which takes messages one by one."""

    def __init__(self, plan: Plan, folder: Path, out: list[str]) -> None:
        from quixstreams.dataframe import DataFrameRegistry, StreamingDataFrame
        from quixstreams.models import Topic, TopicConfig
        from quixstreams.processing import ProcessingContext
        from quixstreams.sinks import SinkManager
        from quixstreams.state import StateStoreManager

        module: dict[str, Any] = {}
        exec(job(plan, "quix", folder / "job.py", JobOptions(seed=SEED)), module)
        producer, consumer = MagicMock(**{"flush.return_value": 0}), MagicMock(**{"commit.return_value": []})
        manager = MagicMock(**{"stream_id_from_topics.return_value": "events"})
        self.states, registry = StateStoreManager(group_id="group", state_dir=folder / "state"), DataFrameRegistry()
        self.context = ProcessingContext(1e9, producer, consumer, self.states, SinkManager(), registry)
        topic = Topic("events", value_deserializer="string")
        topic.broker_config = TopicConfig(1, 1)
        kept = {"registry": registry, "processing_context": self.context, "topic_manager": manager}
        events = StreamingDataFrame(topic, **kept)
        registry.register_root(events)
        self.answers, self.refused = module["answered"](events, module["Learners"]())
        self.take = registry.compose_all(sink=lambda value, *_: out.append(value))["events"]
        self.states.init()
        self.states.on_partition_assign("events", 0, {})
        self.context.init_checkpoint()

    def send(self, event: str, offset: int) -> None:
        """Process a message, as its checkpoint will count it."""
        from quixstreams.context import set_message_context
        from quixstreams.models import MessageContext

        own = contextvars.copy_context()
        own.run(set_message_context, MessageContext("events", 0, offset, len(event)))
        own.run(self.take, event, key_of(event).encode() or b"none", 0, [])
        self.context.store_offset("events", 0, offset)

    def stop(self) -> None:
        """Commit what was done, and give the partition back."""
        self.context.commit_checkpoint(force=True)
        self.states.on_partition_revoke("events", 0)
        self.states.close()


@pytest.mark.parametrize("model", MODELS)
def test_quix_answers_as_a_pipe_from_its_own_store(model: str, tmp_path: Path) -> None:
    """The process begins anew after each tenth message, with the partition's store on the disk."""
    pytest.importorskip("quixstreams")
    plan, out = plan_of(MODELS[model]), list[str]()
    events = [*events_of(MODELS[model], 10), "no JSON"]
    for begin in range(0, len(events), 10):
        process = Quix(plan, tmp_path, out)
        for offset in range(begin, min(begin + 10, len(events))):
            process.send(events[offset], offset)
        process.stop()
    assert out[:-1] == piped(MODELS[model], tmp_path / "s.db", events[:-1])
    assert json.loads(out[-1])["error"]["code"] == "OCO662"
