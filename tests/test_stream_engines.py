"""Jobs of engines of streams where these are installed (`make engines`): Flink's mini cluster, and Quix Streams' own state store."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from stream_cases import MODELS, SEED, decisions, events_of, piped
from survival import TRACKING, plan_of

from oco.emitting import JobOptions, job
from oco.plan import Plan

STOPPED = '''

def stopped_and_begun_again(folder):
    """Take the first events, stop with a savepoint, and go on from it with all events in a job of its own."""
    import time
    from pathlib import Path

    from pyflink.common import Configuration, Duration

    def started(configuration):
        env = StreamExecutionEnvironment.get_execution_environment(configuration)
        env.set_parallelism(PARALLELISM)
        env.enable_checkpointing(200)
        form = StreamFormat.text_line_format()
        lines = FileSource.for_record_stream_format(form, EVENTS).monitor_continuously(Duration.of_millis(200)).build()
        events = env.from_source(lines, WatermarkStrategy.no_watermarks(), "events").uid("events")
        answers, refused = answered(events)
        sink(answers, ANSWERS)
        sink(refused, REFUSED)
        return env.execute_async("$name")

    def has(count):
        done = [p for p in Path(ANSWERS).rglob("part-*")]
        return sum(p.read_text().count("\\n") for p in done) >= count

    counts = [int(n) for n in (Path(folder) / "counts").read_text().split()]
    configuration = Configuration()
    for k, count in enumerate(counts):
        (Path(folder) / f"{k}.jsonl").rename(Path(EVENTS) / f"{k}.jsonl")
        client = started(configuration)
        until = time.monotonic() + 120
        while not has(count):
            assert time.monotonic() < until, "answers did not come"
            time.sleep(0.1)
        place = client.stop_with_savepoint(False, str(Path(folder) / "savepoints")).result()
        configuration = Configuration()
        configuration.set_string("execution.state-recovery.path", place)


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
    written = written.partition('\nif __name__ == "__main__"')[0] + STOPPED
    (folder / "job.py").write_text(written)
    return folder / "job.py"


def ran(path: Path, *words: str) -> None:
    done = subprocess.run([sys.executable, str(path), *words], capture_output=True, text=True, timeout=280)
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
    """Application of Quix Streams without a broker: its data frame, with a store of RocksDB, takes messages one by one."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        from quixstreams import Application  # type: ignore[import-not-found]
        from quixstreams.context import set_message_context
        from quixstreams.models import MessageContext

        self.context, self.message = set_message_context, MessageContext
        module: dict[str, Any] = {}
        exec(job(plan, "quix", folder / "job.py", JobOptions(seed=SEED)), module)
        self.app = Application(broker_address="localhost:9092", consumer_group="test", state_dir=str(folder / "state"))
        self.out: list[tuple[str, bool]] = []
        self.module = module
