"""Fleets by key: decisions and states are those of one fleet, whatever shards and workers there are, and after workers are lost."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from serving_cases import DELAYED
from survival import DRAWING, TRACKING, plan_of
from thorough import corners, thorough, turns

import oco
from oco.cli import main
from oco.dsl.diagnostics import OcoError
from oco.fleets.parquet import divide, shard_file
from oco.fleets.sharing import moved, placed
from oco.fleets.tables import arrays_of, shard_of
from oco.fleets.workers import Here, RayWorkers
from oco.serving.states import seed_of

CARRIED = """\
model stored
horizon T = 40
decision x in box(-1, 1)
stream a in [-1, 1]
state s = 0.5 * s + x + a in [-4, 4] start 0
minimize square(x - a) + s * a
"""
KEYS = [f"user-{k}" for k in range(50)]
MODELS = {"tracking": TRACKING, "draws": DRAWING}


def shapes_of(plan: Any) -> dict[str, tuple[int, ...]]:
    return {f.name: f.type.shape for f in plan.program.feedback}


def data_of(plan: Any, round: int) -> dict[str, np.ndarray]:
    """Data of a round, (n, *shape), in the order of KEYS."""
    rng = np.random.default_rng([4, round])
    return {name: rng.uniform(0, 0.4, (len(KEYS), *shape)) for name, shape in shapes_of(plan).items()}


def batch_of(plan: Any, t: int, order: list[int] | None = None, **more: Any) -> pa.Table:
    """Batch with the rows in some order."""
    rows = list(range(len(KEYS))) if order is None else order
    columns: dict[str, Any] = {"key": [KEYS[k] for k in rows], **more}
    for name, array in data_of(plan, t).items():
        values = pa.array(array[rows].reshape(-1))
        columns[name] = (
            values if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(values, int(np.prod(array.shape[1:])))
        )
    return pa.table(columns)


def by_key(table: pa.Table, plan: Any) -> dict[str, bytes]:
    """Bytes of the values of each key."""
    names = [n for n in table.column_names if n not in ("key", "round")]
    shapes = {
        n: (table.schema.field(n).type.list_size,) if pa.types.is_fixed_size_list(table.schema.field(n).type) else ()
        for n in names
    }
    arrays = arrays_of(table, shapes)
    return {
        key: b"".join(arrays[n][k].tobytes() for n in names) for k, key in enumerate(table.column("key").to_pylist())
    }


def plain_fleet(plan: Any) -> Any:
    """Fleet without keys, of the same learners in the order of KEYS."""
    return plan.fleet(len(KEYS), seeds=[seed_of(0, key) for key in KEYS], backend="c")


def plain_rounds(plan: Any, rounds: int) -> list[tuple[dict[str, bytes], dict[str, bytes]]]:
    """Decisions, and losses with violations, of rounds by key."""
    fleet, results = plain_fleet(plan), []
    for t in range(1, rounds + 1):
        decided, seen = fleet.decide(), fleet.observe(**data_of(plan, t))
        results.append(
            (
                {key: decided[k].tobytes() for k, key in enumerate(KEYS)},
                {key: seen.loss[k].tobytes() + seen.violation[k].tobytes() for k, key in enumerate(KEYS)},
            )
        )
    return results


@pytest.mark.parametrize(("model", "sizes"), turns(list(MODELS), [(7, 3), (64, 2), thorough((1, 1))]))
def test_decisions_are_those_of_one_fleet(model, sizes, tmp_path):
    shards, workers = sizes
    """Batches come with their rows in any order; more shards than some keys fill."""
    plan, rng = plan_of(MODELS[model]), random.Random(1)
    with oco.ClusterFleet(plan, KEYS, shards=shards, workers=workers, backend="c") as fleet:
        assert sorted(fleet.keys.to_pylist()) == sorted(KEYS) and fleet.size == len(KEYS)
        for t, (decided, seen) in enumerate(plain_rounds(plan, 8), 1):
            assert by_key(fleet.decide(), plan) == decided
            batch = batch_of(plan, t, rng.sample(range(len(KEYS)), len(KEYS)), round=[t] * len(KEYS))
            result = fleet.observe(batch)
            assert by_key(result, plan) == seen and set(result.column("round").to_pylist()) == {t}
        assert fleet.round == 9


@pytest.mark.parametrize("rounds", [15, thorough(30)])
@pytest.mark.parametrize("model", corners(MODELS, ["draws"]))
def test_lost_workers_are_taken_over_bit_for_bit(model, rounds, tmp_path):
    """Workers are lost before, between and within calls, the last one as well."""
    plan, rng = plan_of(MODELS[model]), random.Random(2)
    wanted = plain_rounds(plan, rounds)
    with oco.ClusterFleet(
        plan, KEYS, shards=9, workers=4, snapshots=str(tmp_path / "s"), every=7, backend="c"
    ) as fleet:
        send, left = fleet.workers.send, [0]

        def losing(worker: int, *call: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                fleet.workers.holders.pop(worker, None)
            return send(worker, *call)

        fleet.workers.send = losing  # type: ignore[method-assign]
        lost = 0
        for t, (decided, seen) in enumerate(wanted, 1):
            if t % 3 == 0:
                left[0], lost = rng.randrange(1, 20), lost + 1
            assert by_key(fleet.decide(), plan) == decided
            assert by_key(fleet.observe(batch_of(plan, t)), plan) == seen
    assert lost == rounds // 3


def homes_of(fleet: oco.ClusterFleet) -> list[int]:
    """Numbers of shards that the workers have, in order; each shard is where the fleet asks for it, and nowhere else."""
    held = {worker: sorted(holder.shards) for worker, holder in fleet.workers.holders.items()}
    assert held == {w: sorted(s for s, home in fleet._homes.items() if home == w) for w in fleet.alive}
    return sorted(map(len, held.values()))


@pytest.mark.parametrize("model", corners(MODELS, ["draws"]))
def test_shards_are_shared_anew_bit_for_bit(model, tmp_path):
    """Workers are lost and replaced, added and ended, before decisions and between them and their data."""
    plan = plan_of(MODELS[model])
    wanted, place = plain_rounds(plan, 10), str(tmp_path / "s")
    steps: dict[int, tuple[int | None, list[int]]] = {
        3: (None, [2, 2, 3]),
        6: (4, [1, 2, 2, 2]),
        9: (2, [3, 4]),
    }
    with oco.ClusterFleet(plan, KEYS, shards=7, workers=3, snapshots=place, every=5, backend="c") as fleet:
        for t, (decided, seen) in enumerate(wanted, 1):
            workers, sizes = steps.get(t, (None, None))
            if t == 3:
                fleet.workers.holders.pop(fleet.alive[0])
            if sizes and t % 2:
                fleet.rebalance(workers)
                assert homes_of(fleet) == sizes
            assert by_key(fleet.decide(), plan) == decided
            if sizes and not t % 2:
                fleet.rebalance(workers)
                assert homes_of(fleet) == sizes
            assert by_key(fleet.observe(batch_of(plan, t)), plan) == seen
    assert oco.ClusterFleet.restore(place).round == 9


def test_few_shards_move_and_the_workers_have_as_many():
    rng = random.Random(5)
    for _ in range(200):
        workers = [*range(rng.randrange(1, 7))]
        homes = {shard: rng.choice([*workers, 7, 8]) for shard in rng.sample(range(40), rng.randrange(1, 30))}
        leaving = moved(homes, workers)
        after = placed({s: w for s, w in homes.items() if s not in leaving}, leaving, workers)
        sizes = sorted(list(after.values()).count(w) for w in workers)
        assert sizes[-1] - sizes[0] <= 1 and after.keys() == homes.keys()
        share, most = len(homes) // len(workers), len(homes) % len(workers)
        before = sorted((list(homes.values()).count(w) for w in workers), reverse=True)
        assert len(leaving) == len(homes) - sum(min(n, share + (k < most)) for k, n in enumerate(before))


def test_shards_are_not_shared_anew_without_a_place_or_by_nobody(tmp_path):
    plan = plan_of(TRACKING)
    with oco.ClusterFleet(plan, KEYS, backend="c") as fleet, pytest.raises(OcoError) as refused:
        fleet.rebalance(2)
    assert refused.value.code == "OCO880"
    with oco.ClusterFleet(plan, KEYS, backend="c", snapshots=str(tmp_path / "s")) as fleet:
        with pytest.raises(OcoError) as refused:
            fleet.rebalance(0)
        assert refused.value.code == "OCO852"
        fleet.workers.room = lambda wanted: wanted - 1  # type: ignore[method-assign]
        with pytest.raises(OcoError, match="room for 2 workers of this fleet, not for 3") as refused:
            fleet.rebalance(3)
        assert refused.value.code == "OCO881" and fleet.alive == (0,)


def test_more_workers_than_the_cluster_has_processors_are_refused_at_once(tmp_path, monkeypatch):
    """When a fleet begins and when it is restored; it leaves nothing behind, and begins with those that there are."""
    plan, place = plan_of(TRACKING), str(tmp_path / "s")
    monkeypatch.setattr(Here, "room", lambda self, wanted: min(wanted, 2))
    options = {"backend": "c", "snapshots": place}
    with pytest.raises(OcoError, match="room for 2 workers of this fleet, not for 3") as refused:
        oco.ClusterFleet(plan, KEYS, workers=3, **options)
    assert refused.value.code == "OCO881" and "workers=" in refused.value.hint and not (tmp_path / "s").exists()
    with oco.ClusterFleet(plan, KEYS, workers=2, **options) as fleet:
        fleet.snapshot()
    assert code_of(lambda: oco.ClusterFleet.restore(place, workers=3)) == "OCO881"


def test_processors_of_actors_that_have_just_ended_are_waited_for():
    """A cluster of four counts them as free a moment later; what it does not have at all is not waited for."""
    counted = iter([1, 1, 3])
    workers = RayWorkers.__new__(RayWorkers)
    workers._ray = SimpleNamespace(
        available_resources=lambda: {"CPU": float(next(counted))}, cluster_resources=lambda: {"CPU": 4.0}
    )
    assert workers.room(3) == 3
    counted = iter([1])
    assert workers.room(5) == 1
    workers._ray.available_resources = dict
    workers._ray.cluster_resources = dict
    assert workers.room(1) == 0


def test_a_fleet_goes_on_from_its_snapshot_elsewhere(tmp_path):
    plan, place = plan_of(DRAWING), str(tmp_path / "snapshots")
    wanted = plain_rounds(plan, 12)
    fleet = oco.ClusterFleet(plan, KEYS, shards=5, workers=2, snapshots=place, every=4, backend="c")
    for t in range(1, 8):
        fleet.decide()
        fleet.observe(batch_of(plan, t))
    fleet.close()
    again = oco.ClusterFleet.restore(place, workers=3)
    assert again.round == 5 and again.keys.equals(fleet.keys)
    for t in range(5, 13):
        assert by_key(again.decide(), plan) == wanted[t - 1][0]
        assert by_key(again.observe(batch_of(plan, t)), plan) == wanted[t - 1][1]
    folders = {path.name for path in Path(place).iterdir() if path.is_dir()}
    assert folders == {"before-round-13"}, "older snapshots are removed once a newer one is whole"


def test_snapshots_go_to_an_object_store():
    pytest.importorskip("fsspec")
    plan = plan_of(TRACKING)
    with oco.ClusterFleet(plan, KEYS, shards=3, workers=2, snapshots="memory://fleet/s", every=2, backend="c") as fleet:
        for t in range(1, 6):
            fleet.decide()
            fleet.observe(batch_of(plan, t))
            if t == 3:
                fleet.workers.holders.pop(0)
    again = oco.ClusterFleet.restore("memory://fleet/s")
    assert again.round == 5 and by_key(again.decide(), plan) == plain_rounds(plan, 5)[4][0]
    assert code_of(lambda: oco.ClusterFleet.restore("memory://none")) == "OCO880"


def test_rounds_of_files_by_shard(tmp_path):
    """The rows of a round come in another order in each; workers are lost; what is written is that of one fleet."""
    plan, rng, rounds = plan_of(TRACKING), random.Random(3), 11
    tables = [
        batch_of(plan, t, rng.sample(range(len(KEYS)), len(KEYS)), round=[t] * len(KEYS)) for t in range(1, rounds + 1)
    ]
    parquet.write_table(pa.concat_tables(tables), tmp_path / "rounds.parquet", row_group_size=170)
    assert sorted(divide(tmp_path / "rounds.parquet", tmp_path / "shards", 6)) == sorted(KEYS)
    with oco.ClusterFleet(
        plan, KEYS, shards=6, workers=3, snapshots=str(tmp_path / "s"), every=4, backend="c"
    ) as fleet:
        fleet.play(tmp_path / "shards", tmp_path / "out", rounds=5)
        fleet.workers.holders.pop(1)
        sums = fleet.play(tmp_path / "shards", tmp_path / "out")
        assert fleet.round == rounds + 1
    wanted = plain_rounds(plan, rounds)
    written = pa.concat_tables(parquet.read_table(path) for path in sorted((tmp_path / "out").iterdir()))
    for t, (decided, seen) in enumerate(wanted, 1):
        own = written.filter(pa.compute.equal(written.column("round"), t))
        assert by_key(own, plan) == {key: decided[key] + seen[key] for key in KEYS}
    loss = sum(np.frombuffer(seen[key])[0] for _, seen in wanted[5:] for key in KEYS)
    assert np.isclose(sums["loss"], loss, rtol=1e-12)


def test_best_fixed_decisions_are_means_of_the_data_cut_by_the_domain(tmp_path):
    """Squares over a box have the mean as their best decision, entry by entry, as far as it lies in the box."""
    text = "model m\nhorizon T = 40\ndecision x[2] in box(-0.3, 0.3)\nstream a[2] in [-1, 1]\nminimize sum_squares(x - a)\nusing ogd\n"
    plan, rng, rounds = plan_of(text), np.random.default_rng(6), 12
    a = rng.uniform(-1, 1, (rounds, len(KEYS), 2)) + np.linspace(-0.4, 0.4, len(KEYS))[:, None]
    a = np.clip(a, -1, 1)
    values = pa.FixedSizeListArray.from_arrays(pa.array(a.ravel()), 2)
    rows = pa.table({"key": KEYS * rounds, "round": np.repeat(np.arange(1, rounds + 1), len(KEYS)), "a": values})
    parquet.write_table(rows, tmp_path / "rounds.parquet")
    divide(tmp_path / "rounds.parquet", tmp_path / "parts", 6)
    with oco.ClusterFleet(plan, KEYS, shards=6, workers=2, backend="c") as fleet:
        fleet.play(tmp_path / "parts", tmp_path / "out", 10)
        table = fleet.comparators(tmp_path / "parts", fleet.round - 1)
        assert table.column_names == ["key", "value", "bound", "status"] and table["key"].combine_chunks().equals(
            fleet.keys
        )
        best = np.clip(a[:10].mean(axis=0), -0.3, 0.3)
        wanted = dict(zip(KEYS, ((a[:10] - best) ** 2).sum(axis=(0, 2))))
        for key, value, bound, status in zip(*(table[name].to_pylist() for name in table.column_names)):
            assert status == "certified" and value == pytest.approx(wanted[key], rel=1e-8)
            assert bound <= value + 1e-12 and bound == pytest.approx(value, rel=1e-6)
        every = ((a - np.clip(a.mean(axis=0), -0.3, 0.3)) ** 2).sum(axis=(0, 2))
        found = fleet.comparators(tmp_path / "parts")
        assert sum(found["value"].to_pylist()) == pytest.approx(every.sum(), rel=1e-8)
    with oco.ClusterFleet(plan_of(CARRIED), KEYS[:2], backend="c") as fleet, pytest.raises(OcoError) as refused:
        fleet.comparators(tmp_path / "parts", 2)
    assert refused.value.code == "OCO882"


def test_a_key_is_in_the_same_shard_everywhere():
    """BLAKE2b with eight bytes, worked out by `b2sum -l 64`."""
    assert [shard_of(key, 1000) for key in ("a", "user-7", "é")] == [int(h, 16) % 1000 for h in SUMS]
    counts = np.bincount([shard_of(f"{k}", 10) for k in range(10_000)], minlength=10)
    assert counts.min() > 880 and counts.max() < 1120  # four standard deviations


SUMS = ("40f89e395b66422f", "3ed2300010177099", "cb1abf8beff3192f")


def code_of(call: Any) -> str:
    with pytest.raises(OcoError) as caught:
        call()
    assert caught.value.hint
    return caught.value.code


def test_wrong_keys_and_batches_are_refused_and_change_nothing(tmp_path):
    plan = plan_of(TRACKING)
    for keys in ([], ["a", "a"], ["a", None], [["a"]]):
        assert code_of(lambda keys=keys: oco.ClusterFleet(plan, keys)) == "OCO878"
    assert code_of(lambda: oco.ClusterFleet(plan_of(DELAYED), ["a"])) == "OCO882"
    with oco.ClusterFleet(plan, KEYS, shards=4, backend="c") as fleet:
        right = batch_of(plan, 1)
        wrong = {
            "OCO878": [right.drop_columns("key"), right.slice(1), pa.concat_tables([right, right.slice(0, 1)])],
            "OCO879": [batch_of(plan, 1, round=[2] * len(KEYS)), batch_of(plan, 1, round=[1, 2] * (len(KEYS) // 2))],
            "OCO840": [right.drop_columns("limit"), right.append_column("more", right.column("limit"))],
            "OCO841": [
                right.set_column(2, "limit", right.column("goal")),
                right.set_column(1, "goal", right.column("limit")),
            ],
        }
        fleet.decide()
        for code, batches in wrong.items():
            for batch in batches:
                assert code_of(lambda batch=batch: fleet.observe(batch)) == code
        assert fleet.round == 1 and by_key(fleet.decide(), plan) == plain_rounds(plan, 1)[0][0]
        assert code_of(fleet.snapshot) == "OCO880"


def test_a_batch_that_is_wrong_for_a_shard_can_be_given_again(tmp_path):
    """The shards that took it keep what they took."""
    plan = plan_of(TRACKING)
    wanted = plain_rounds(plan, 2)
    with oco.ClusterFleet(plan, KEYS, shards=4, backend="c") as fleet:
        right = batch_of(plan, 1)
        limit = right.column("limit").to_numpy().copy()
        limit[7] = 99.0
        assert code_of(lambda: fleet.observe(right)) == "OCO863"
        fleet.decide()
        assert code_of(lambda: fleet.observe(right.set_column(2, "limit", pa.array(limit)))) == "OCO845"
        assert by_key(fleet.observe(right), plan) == wanted[0][1]
        fleet.decide()
        assert by_key(fleet.observe(batch_of(plan, 2)), plan) == wanted[1][1]


def test_a_place_that_has_a_fleet_is_left_as_it_is(tmp_path):
    plan, place = plan_of(TRACKING), str(tmp_path / "s")
    with oco.ClusterFleet(plan, KEYS, snapshots=place, backend="c") as fleet:
        fleet.snapshot()
    assert code_of(lambda: oco.ClusterFleet(plan, KEYS[1:], snapshots=place)) == "OCO880"
    assert oco.ClusterFleet.restore(place).size == len(KEYS)


def test_ray_is_asked_for_by_its_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert code_of(lambda: oco.ClusterFleet(plan_of(TRACKING), KEYS, engine="ray")) == "OCO909"


def test_without_snapshots_a_loss_is_an_error(tmp_path):
    fleet = oco.ClusterFleet(plan_of(TRACKING), KEYS, shards=4, workers=2)
    fleet.workers.holders.pop(0)
    assert code_of(fleet.decide) == "OCO881"
    assert code_of(lambda: oco.ClusterFleet.restore(str(tmp_path / "none"))) == "OCO880"


def test_wrong_files_are_refused_and_the_fleet_goes_back(tmp_path):
    plan = plan_of(TRACKING)
    tables = [batch_of(plan, t, round=[t] * len(KEYS)) for t in range(1, 7)]
    broken = tables[4].set_column(1, "round", pa.array([5] * 49 + [9]))
    parquet.write_table(
        pa.concat_tables([*tables[:4], broken.select(tables[0].column_names), tables[5]]), tmp_path / "b.parquet"
    )
    parquet.write_table(pa.concat_tables(tables), tmp_path / "a.parquet")
    parquet.write_table(tables[0].drop_columns("round"), tmp_path / "c.parquet")
    for name in "ab":
        divide(tmp_path / f"{name}.parquet", tmp_path / name, 3)
    assert code_of(lambda: divide(tmp_path / "c.parquet", tmp_path / "c", 3)) == "OCO878"
    assert code_of(lambda: divide(tmp_path / "none.parquet", tmp_path / "c", 3)) == "OCO880"
    with oco.ClusterFleet(plan, KEYS, shards=3, snapshots=str(tmp_path / "s"), every=10, backend="c") as fleet:
        assert code_of(lambda: fleet.play(tmp_path / "b", tmp_path / "out")) == "OCO879"
        assert fleet.round == 1
        fleet.play(tmp_path / "a", tmp_path / "out")
        assert fleet.round == 7
    shard_file(tmp_path / "a", 0).unlink()
    with oco.ClusterFleet(plan, KEYS, shards=3) as fleet:
        assert code_of(lambda: fleet.play(tmp_path / "a", tmp_path / "out")) == "OCO880"


def test_the_command_plays_files_and_goes_on(tmp_path, monkeypatch, capsys):
    plan = plan_of(TRACKING)
    (tmp_path / "model.oco").write_text(TRACKING)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    words = ["fleet", "model.oco", "--data", "data", "--out", "out", "--snapshots", "kept", "--every", "2"]
    for t in range(1, 5):
        parquet.write_table(batch_of(plan, t, round=[t] * len(KEYS)), tmp_path / f"data/{t}.parquet")
        if t > 2:
            assert main([*words, "--backend", "c", *(["--shards", "3"] if t == 3 else [])]) == 0
    assert "rounds 1 to 3" in (shown := capsys.readouterr().out) and "rounds 4 to 4" in shown
    assert main(words) == 0 and "before" in capsys.readouterr().out
    written = pa.concat_tables(parquet.read_table(path) for path in sorted((tmp_path / "out").iterdir()))
    for t, (decided, seen) in enumerate(plain_rounds(plan, 4), 1):
        own = written.filter(pa.compute.equal(written.column("round"), t))
        assert by_key(own, plan) == {key: decided[key] + seen[key] for key in KEYS}
    (tmp_path / "model.oco").write_text(TRACKING.replace("[0, 3]", "[0, 2]"))
    assert main(words) == 1 and "OCO851" in capsys.readouterr().err
    assert main(words[:-4]) == 1 and "OCO905" in capsys.readouterr().err
