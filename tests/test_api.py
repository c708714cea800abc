"""The package as its users hold it: the examples from file to trace, modules that stand alone, learners that go on."""

import subprocess
import sys
import venv
import warnings
from pathlib import Path

import numpy as np
import pytest
from driving import example
from thorough import corners, thorough

import oco

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
ROUNDS = 40


def small_data(name, rng):
    """Values for the streams of an example that no law gives."""
    T = ROUNDS
    return {
        "tracking": {},
        "online_qp": {"theta": rng.uniform(-5, 5, (T, 2))},
        "job_scheduling": {"price": rng.uniform(-50, 200, (T, 10))},
        "datacenter": {"price": rng.uniform(-50, 200, (T, 5))},
        "portfolio": {"relative": rng.uniform(0.9, 1.1, (T, 30))},
    }[name]


RUNNABLE = ("tracking", "online_qp", "job_scheduling", "datacenter", "portfolio")


@pytest.fixture(scope="module")
def plans():
    return {name: example(name, settings="paper") for name in RUNNABLE}


@pytest.mark.parametrize("name", RUNNABLE)
def test_examples_run_and_stay_in_their_domain(plans, name):
    plan = plans[name]
    data = small_data(name, np.random.default_rng(1))
    trace = plan.run(data or None, rounds=ROUNDS, seed=3)
    domain = plan.canonical.blocks[0].domain
    assert trace.decisions.shape == (ROUNDS, *domain.shape)
    assert all(domain.contains(x) for x in trace.decisions)
    assert np.isfinite(trace.loss).all() and np.isfinite(trace.constraints).all()
    again = plan.run(data or None, rounds=ROUNDS, seed=3)
    assert np.array_equal(trace.decisions, again.decisions)


@pytest.mark.parametrize("name", corners(RUNNABLE, ["tracking", "job_scheduling", "portfolio"]))
def test_the_written_module_gives_the_bits_of_the_run(plans, name, tmp_path):
    rng = np.random.default_rng(2)
    plan = plans[name].with_horizon(ROUNDS)
    trace = plan.run(small_data(name, rng) or None, rounds=ROUNDS, seed=5)
    plan.write(tmp_path / "learner.py")
    np.savez(tmp_path / "data.npz", **{s.name: trace.data.array(s.name) for s in plan.canonical.streams})
    np.save(tmp_path / "decisions.npy", trace.decisions)
    script = """
import sys, importlib.abc
class OnlyNumpy(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("oco", "scipy", "cvxpy", "sympy", "lark", "pandas"):
            raise ImportError(name)
sys.meta_path.insert(0, OnlyNumpy())
sys.path.insert(0, ".")
import numpy as np
import learner
data, wanted = np.load("data.npz"), np.load("decisions.npy")
run = learner.Learner()
for t in range(len(wanted)):
    assert np.array_equal(run.decide(), wanted[t]), t
    run.observe(**{name: data[name][t] for name in data.files})
print("same")
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "same", done.stderr


def test_the_module_runs_on_a_csv_by_itself(plans, tmp_path):
    plans["job_scheduling"].write(tmp_path / "learner.py")
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.uniform(0, 100, (20, 10)), rng.poisson(2500, 20)])
    header = ",".join([f"price[{i}]" for i in range(10)] + ["jobs"])
    np.savetxt(tmp_path / "data.csv", rows, delimiter=",", header=header, comments="")
    words = [sys.executable, "learner.py", "data.csv"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "loss" in done.stdout, done.stderr


@pytest.mark.parametrize("name", RUNNABLE)
def test_a_restored_learner_goes_on_bit_for_bit(plans, name, tmp_path):
    plan = plans[name]
    trace = plan.run(small_data(name, np.random.default_rng(4)) or None, rounds=ROUNDS, seed=1)
    rounds = list(trace.data)
    learner = plan.learner(backend=trace.origin.backend)
    for values in rounds[:15]:
        learner.decide()
        learner.observe(**values)
    learner.save(tmp_path / "state")
    restored = oco.restore(tmp_path / "state", backend=trace.origin.backend)
    for t, values in enumerate(rounds[15:], start=15):
        assert np.array_equal(restored.decide(), trace.decisions[t])
        restored.observe(**values)


def test_models_without_an_algorithm_say_why():
    with pytest.raises(oco.OcoError) as error:
        oco.compile(oco.parse((EXAMPLES / "blind_pricing.oco").read_text().replace("<= 0.25", "<= -9")))
    assert error.value.code == "OCO708" and "cap cannot hold" in error.value.message


def test_the_builder_of_the_design_page():
    m = oco.Model("job_scheduling", horizon=2880)
    x = m.decision("x", 100, domain=oco.box(0, 1000))
    price = m.stream("price", 100, bounds=(-1000, 3000))
    jobs = m.stream("jobs", dist=oco.poisson(2500), bounds=(0, 3200))
    m.minimize(price @ x)
    m.subject_to(jobs - 4 * oco.sum(oco.log(1 + 4 * x)) <= 0, name="service", each_round=True)
    assert oco.parse(m.to_oco()) == m.build()
    plan = oco.compile(m)
    assert plan.algorithm == "nested"
    assert oco.check(m)["loss.lipschitz.l2"].value == pytest.approx(3000 * 10)
    learner = plan.learner()
    assert learner.round == 1
    learner.decide()
    feedback = learner.observe(price=np.full(100, 30.0), jobs=2500)
    assert feedback.loss == pytest.approx(30 * 100 * 500)
    assert learner.round == 2


def test_params_are_given_when_compiling():
    text = "model m\nhorizon T = 10\nparam n\nparam c[n]\ndecision x[n] in simplex\nminimize c @ x\n"
    model = oco.parse(text)
    with pytest.raises(oco.OcoError) as error:
        oco.compile(model)
    assert "n" in error.value.message
    plan = oco.compile(model, params={"n": 3, "c": [1, 2, 3]})
    assert plan.learner().decide() == pytest.approx(np.full(3, 1 / 3))


def test_wrong_rounds_leave_the_learner_as_it_was(plans):
    learner = plans["job_scheduling"].learner()
    good = {"price": np.full(10, 20.0), "jobs": 2500}
    learner.decide()
    learner.observe(**good)
    before = learner.values
    for bad in (
        {"price": np.full(9, 1.0), "jobs": 1},
        good | {"jobs": np.nan},
        good | {"jobs": 1e6},
        {"jobs": 1},
        good | {"x": 1},
    ):
        with pytest.raises(oco.OcoError):
            learner.observe(**bad)
        assert all(np.array_equal(before[k], v) for k, v in learner.values.items())


@pytest.mark.parametrize(
    ("domain", "point", "nearest"),
    [
        (oco.box(0, 1), [-1, 0.5, 3], [0, 0.5, 1]),
        (oco.ball(1), [3, 4], [0.6, 0.8]),
        (oco.simplex(), [1, 1], [0.5, 0.5]),
        (oco.simplex(2), [5, 0], [2, 0]),
    ],
)
def test_domains_are_of_use_alone(domain, point, nearest):
    assert domain.project(point) == pytest.approx(np.array(nearest))
    assert domain.contains(domain.project(point))
    assert not domain.contains(point)
    assert domain.contains(domain.lmo(np.ones(len(point))))


def test_gradient_feedback_makes_the_same_decisions_as_the_function():
    text = "model m\nhorizon T = 30\ndecision x[3] in ball(2)\nstream a[3] in [-1, 1]\nminimize sum_squares(x - a)\n{}"
    full, gradient = (oco.compile(oco.parse(text.format(end))) for end in ("", "feedback gradient\n"))
    rng = np.random.default_rng(0)
    one, two = full.learner(), gradient.learner()
    for _ in range(30):
        x = one.decide()
        assert np.array_equal(x, two.decide())
        a = rng.uniform(-1, 1, 3)
        one.observe(a=a)
        two.observe(loss=np.sum((x - a) ** 2), gradient=2 * (x - a))


@pytest.mark.skipif(sys.platform == "win32", reason="paths of the environment")
def test_the_module_needs_numpy_alone(plans, tmp_path):
    """An environment with NumPy and nothing else of ours on its path."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    site = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
    for part in Path(np.__file__).parent.parent.glob("numpy*"):
        (site / part.name).symlink_to(part)
    plans["tracking"].write(tmp_path / "learner.py")
    code = "import sys, learner; run = learner.Learner(); print(run.decide().shape, 'oco' in sys.modules)"
    words = [tmp_path / "env" / "bin" / "python", "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "(10,) False", done.stderr


@pytest.mark.parametrize("rounds", [40, thorough(100), 150])
def test_running_a_plan_does_not_change_it(rounds):
    """Decisions are those of `plan.learner()` on the same rounds, bit for bit, also where the horizon is another."""
    text = "model m\nhorizon T = 100\ndecision x[3] in box(0, 5)\nstream c[3] in [-1, 1]\nminimize c @ x\n"
    plan = oco.compile(oco.parse(text + "subject to\n    cap: sum(x) <= 4    each round\n"), backend="numpy")
    data = {"c": np.random.default_rng(0).uniform(-1, 1, (rounds, 3))}
    trace, learner, found = plan.run(data), plan.learner(), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for c in data["c"]:
            found.append(learner.decide())
            learner.observe(c=c)
    assert np.array_equal(trace.decisions, found)
    assert any("the plan is for 100" in note for note in trace.notes) == (rounds != 100)


def test_compiling_with_data_plans_for_their_rounds():
    text = "model m\nhorizon T = 100\ndecision x[3] in box(0, 5)\nstream c[3] in [-1, 1]\nminimize c @ x\n"
    data = {"c": np.random.default_rng(0).uniform(-1, 1, (40, 3))}
    plan = oco.compile(oco.parse(text), data=data)
    assert plan.horizon == 40 and plan.guarantee.horizon == 40
    again = oco.parse(text.replace("100", "40"))
    assert np.array_equal(plan.run(data).decisions, oco.compile(again, plan.algorithm, plan.mode).run(data).decisions)
