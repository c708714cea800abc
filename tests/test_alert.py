"""Learners that watch their streams: the same alarm and the same decisions wherever they run."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oco
from oco.cli import main
from oco.compiler.evidence.watched_streams import ALARM, BetTables
from oco.compiler.evidence.wealth import Evidence, stakes
from oco.compiler.problem.canonical import canonical
from oco.dsl.diagnostics import OcoError
from oco.plan import Plan

ROUNDS, CHANGE, ALPHA = 300, 150, 0.01
TEXT = """model shop
horizon T = 400
decision x[2] in box(0, 1)
stream s[2] in [0, 1] iid mean = 0.5
stream j ~ poisson(8) in [0, 40]
minimize s @ x + 0.01 * j * sum(x)
subject to
    cap: s @ x >= 0.2 on average
using dpp
"""


def drawn(seed: int, late: float = 0.4) -> dict[str, Any]:
    """Streams as stated, `s` times `late` from round `CHANGE` + 1 on."""
    rng = np.random.default_rng(seed)
    scale = np.where(np.arange(ROUNDS) < CHANGE, 1.0, late)
    return {"s": rng.random((ROUNDS, 2)) * scale[:, None], "j": np.minimum(rng.poisson(8, ROUNDS), 40).astype(float)}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return oco.compile(oco.parse(TEXT), settings="paper", alert=ALPHA, certify="static")


def played(learner: Any, data: dict[str, Any], first: int = 0, last: int = ROUNDS) -> np.ndarray:
    """Decisions of the rounds from `first` to `last`."""
    results = []
    for t in range(first, last):
        results.append(np.array(learner.decide()))
        learner.observe(**{name: values[t] for name, values in data.items()})
    return np.array(results)


def test_the_state_keeps_the_wealth_of_the_evidence(plan: Plan) -> None:
    """Wealth, stakes and alarm are those of `Evidence`, whose recursion is NumPy's."""
    tables, data, learner = BetTables.of(plan.canonical), drawn(4), plan.learner(backend="numpy")
    start = Evidence.of(plan.canonical, ALPHA)
    assert tables.stakes.sum() == pytest.approx(1.0) == stakes(start.entries).sum()
    for rounds in (1, 7, 60):
        played(learner, data, learner.round - 1, rounds)
        begun = start.after_rounds({name: values[:rounds] for name, values in data.items()})
        mine = float(np.sum(learner.value("bets_wealth") * tables.stakes)) + 1 - rounds / 400
        assert mine == pytest.approx(begun.wealth, rel=1e-9)
    played(learner, data, 60)
    reference = start.after_rounds(data).alarm
    assert reference is not None and learner.alarm == reference and CHANGE < reference.round < 250


@pytest.mark.parametrize(("horizon", "stated"), [("unknown", "in [0, 1] iid mean = 0.5"), ("= 90", "~ uniform(0, 1)")])
def test_other_shares_and_statements(horizon: str, stated: str) -> None:
    """Without a horizon, and behind one, as `Evidence`."""
    text = f"model m\nhorizon T {horizon}\ndecision x in box(0, 1)\nstream s {stated}\nminimize square(x) - x * s\n"
    plan = oco.compile(oco.parse(text), "ogd", settings="paper", alert=1e-6)
    values = np.random.default_rng(0).random(120) * 0.8
    learner = plan.learner(backend="numpy")
    for t in range(120):
        learner.decide()
        learner.observe(s=values[t])
    assert learner.alarm == Evidence.of(plan.canonical, 1e-6).after_rounds({"s": values}).alarm


def test_backends_go_over_in_the_same_round(plan: Plan) -> None:
    """Learners in NumPy and C, and whole runs, decide the same; before the alarm as without a watch, after it as the other rule."""
    data = drawn(4)
    in_numpy, in_c = plan.learner(backend="numpy"), plan.learner(backend="c")
    decisions = played(in_numpy, data)
    np.testing.assert_allclose(played(in_c, data), decisions, rtol=1e-12)
    assert in_numpy.alarm == in_c.alarm and in_numpy.warnings == in_c.warnings
    since = in_numpy.alarm.round
    plain = oco.compile(oco.parse(TEXT), settings="paper")
    np.testing.assert_array_equal(decisions[: since + 1], played(plain.learner(backend="numpy"), data, 0, since + 1))
    bare = TEXT.replace(" iid mean = 0.5", "").replace("~ poisson(8) in", "in").replace("using dpp\n", "")
    other = oco.compile(oco.parse(bare), "coldq", settings="paper")
    fresh = other.learner(backend="numpy", start=decisions[since])
    rest = {name: values[since:] for name, values in data.items()}
    np.testing.assert_allclose(decisions[since:], played(fresh, rest, 0, ROUNDS - since), atol=1e-12)
    for backend in ("numpy", "c"):
        trace = plan.run(data, backend=backend)
        np.testing.assert_allclose(trace.decisions, decisions, atol=1e-12)
        assert any(f"since round {since} no longer claimed" in w and "`coldq` takes over" in w for w in trace.warnings)


def test_no_alarm_no_change(plan: Plan) -> None:
    """As stated: nothing is refuted, and decisions are those of a plan without a watch, bit for bit."""
    data = drawn(5, late=1.0)
    learner = plan.learner(backend="c")
    plain = oco.compile(oco.parse(TEXT), settings="paper").learner(backend="c")
    np.testing.assert_array_equal(played(learner, data), played(plain, data))
    assert learner.alarm is None and learner.guarantee == plan.contract.guarantee


def test_certificates_go_on(plan: Plan) -> None:
    """Sums are of the decisions that were made, whoever made them."""
    data, learner = drawn(4), plan.learner(backend="c")
    played(learner, data)
    trace = plan.run(data, backend="numpy")
    assert learner.certificate().bound == pytest.approx(trace.certificate().bound, rel=1e-6)
    assert learner.certificate().bound >= trace.regret()[-1]


def test_modules_fleets_states_and_journals(plan: Plan, tmp_path: Path) -> None:
    data = drawn(4)
    decisions = played(plan.learner(backend="numpy"), data)
    plan.write(tmp_path / "shop.py")
    spec = importlib.util.spec_from_file_location("alert_shop", tmp_path / "shop.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    alone = module.Learner()
    with pytest.warns(UserWarning, match=r"no longer claimed: .*`coldq` takes over"):
        np.testing.assert_array_equal(played(alone, data), decisions)
    since, statement = alone.alarm
    for backend in ("numpy", "c"):
        fleet = plan.fleet(2, backend=backend)
        for t in range(since + 20):
            both = fleet.decide()
            fleet.observe(s=np.stack([data["s"][t], data["s"][t % CHANGE]]), j=data["j"][[t, t % CHANGE]])
            np.testing.assert_allclose(both[0], decisions[t], atol=1e-12)
        first, second = fleet.alarms()
        assert (first.round, first.statement, second) == (since, statement, None)
    learner = plan.learner()
    played(learner, data, 0, since + 5)
    again = oco.restore(learner.state())
    assert again.alarm == learner.alarm
    np.testing.assert_array_equal(again.decide(), decisions[since + 5])
    with oco.open(plan, tmp_path / "journal") as recorded:
        played(recorded, data, 0, since + 5)
    with oco.open(plan, tmp_path / "journal") as recorded:
        assert recorded.alarm == learner.alarm and any("`coldq` takes over" in w for w in recorded.warnings)
        np.testing.assert_array_equal(recorded.decide(), decisions[since + 5])


def test_c_files_say_it(plan: Plan, tmp_path: Path) -> None:
    """`shop_alarm` of the emitted C gives round and statement, in a program without this package."""
    Plan.of(plan, "c").write(tmp_path / "c")
    data = drawn(4)
    rows = np.column_stack([data["s"], data["j"]])
    main = (
        '#include <stdio.h>\n#include "shop.h"\nint main(void) {\n    shop learner; double x[2], s[2], j; const char *why;\n'
        "    shop_init(&learner, NULL);\n"
        '    while (scanf("%lf %lf %lf", s, s + 1, &j) == 3) { shop_decide(&learner, x); shop_observe(&learner, s, j); }\n'
        '    long long since = shop_alarm(&learner, &why);\n    printf("%lld %s", since, why ? why : "");\n    return 0;\n}\n'
    )
    (tmp_path / "main.c").write_text(main)
    program = tmp_path / "main"
    sources = [tmp_path / "main.c", tmp_path / "c" / "shop.c"]
    subprocess.run(["cc", "-std=c99", f"-I{tmp_path / 'c'}", *map(str, sources), "-lm", "-o", str(program)], check=True)
    for own, late in ((4, 0.4), (5, 1.0)):
        data = drawn(own, late)
        rows = np.column_stack([data["s"], data["j"]])
        text = "\n".join(" ".join(f"{v!r}" for v in row.tolist()) for row in rows)
        said = subprocess.run([str(program)], input=text, capture_output=True, text=True, check=True).stdout
        alarm = Evidence.of(plan.canonical, ALPHA).after_rounds(data).alarm
        assert said == ("0 " if alarm is None else f"{alarm.round} {alarm.statement}")


RUST = """
use shop::Learner;

fn main() {
    let mut learner = Learner::new();
    let mut x = [0.0; 2];
    for line in std::io::stdin().lines() {
        let row: Vec<f64> = line.unwrap().split(' ').map(|v| v.parse().unwrap()).collect();
        learner.decide(&mut x).unwrap();
        learner.observe(&row[..2], row[2]).unwrap();
    }
    let (since, statement) = learner.alarm().unwrap_or((0, String::new()));
    let (mut least, mut most, mut rounding, mut at, mut loss) = (0.0, 0.0, 0.0, [0.0; 2], 0.0);
    let (mut multipliers, mut broken) = ([0.0; MULTIPLIERS], [0.0; 1]);
    learner.certificate(&mut least, &mut most, &mut rounding, &mut at, &mut multipliers, &mut loss, &mut broken);
    println!("{:?} {} {}", loss - least + rounding, since, statement);
}
"""


def test_bindings_give_alarm_and_certificate(plan: Plan, tmp_path: Path) -> None:
    """Learners through ctypes, and through Rust where it is installed, as the plan's own."""
    folder, data, learner = tmp_path / "shop", drawn(4), plan.learner(backend="numpy")
    Plan.of(plan, "c").write(folder)
    played(learner, data)
    proof, alarm = learner.certificate(), learner.alarm
    library = ["cc", "-std=c99", "-ffp-contract=off", "-shared", "-fPIC", "shop.c", "-lm", "-o", "libshop.so"]
    subprocess.run(library, cwd=folder, check=True)
    spec = importlib.util.spec_from_file_location("shop_binding", folder / "shop.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    bound = module.Learner()
    assert bound.alarm is None
    np.testing.assert_array_equal(played_by_name(bound, data), played(plan.learner(backend="c"), data))
    assert alarm is not None and bound.alarm == (alarm.round, alarm.statement)
    own = bound.certificate()
    assert own["loss"] - own["least"] + own["rounding"] == pytest.approx(proof.bound, rel=1e-6)
    assert own["broken"] == list(map(float, proof.broken.values())) and len(own["at"]) == 2
    if shutil.which("cargo") is None:
        return
    (folder / "examples").mkdir()
    (folder / "examples" / "play.rs").write_text(RUST.replace("MULTIPLIERS", str(len(own["multipliers"]))))
    rows = np.column_stack([data["s"], data["j"]]).tolist()
    done = subprocess.run(
        ["cargo", "run", "--quiet", "--offline", "--example", "play"],
        cwd=folder,
        input="\n".join(" ".join(map(repr, row)) for row in rows),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr
    bound_by, since, statement = done.stdout.strip().split(" ", 2)
    assert float(bound_by) == pytest.approx(proof.bound, rel=1e-6)
    assert (int(since), statement) == (alarm.round, alarm.statement)


def played_by_name(learner: Any, data: dict[str, Any]) -> list[list[float]]:
    """Decisions of all rounds by a learner of the binding for Python."""
    results = []
    for t in range(ROUNDS):
        results.append(learner.decide()["x"])
        learner.observe(s=data["s"][t], j=data["j"][t])
    return results


def test_a_rule_that_rests_on_nothing_goes_on() -> None:
    text = "model m\nhorizon T = 90\ndecision x in box(0, 1)\nstream s in [0, 1] iid mean = 0.5\nminimize square(x) - x * s\n"
    plan = oco.compile(oco.parse(text), "ogd", alert=0.01)
    learner, plain = plan.learner(), oco.compile(oco.parse(text), "ogd").learner()
    for _ in range(90):
        np.testing.assert_array_equal(learner.decide(), plain.decide())
        learner.observe(s=1.0)
        plain.observe(s=1.0)
    assert learner.alarm is not None and learner.value(ALARM) == learner.alarm.round
    assert any("rests on none of it and goes on" in w for w in learner.warnings)
    assert learner.guarantee == plan.contract.guarantee


def test_what_is_not_watched_says_so() -> None:
    delayed = TEXT.replace("using dpp", "feedback full delayed 2\nusing dpp")
    with pytest.raises(OcoError) as error:
        oco.compile(oco.parse(delayed), settings="paper").alerting(0.01)
    assert error.value.code == "OCO872"


def test_the_screen_says_what_when_and_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`oco run` with --alert, and without, where the rule stays."""
    monkeypatch.chdir(tmp_path)
    data = drawn(4)
    (tmp_path / "shop.oco").write_text(TEXT)
    rows = np.column_stack([data["s"], data["j"]])
    np.savetxt(tmp_path / "days.csv", rows, delimiter=",", header="s0,s1,j", comments="")
    given = ["shop.oco", "--settings", "paper", "--data", "days.csv"]
    words = ["run", *given, "--map", "s=s0,s1", "--baselines", "none", "--comparators", "none"]
    assert main([*words, "--alert", "0.01", "--journal", "days"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    played_model = oco.parse(TEXT.replace("T = 400", f"T = {ROUNDS}"))
    alarm = Evidence.of(canonical(played_model), ALPHA).after_rounds(data).alarm
    assert f"refuted since round {alarm.round}: {alarm.statement}; `coldq` takes over" in shown
    assert main(words) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "refuted since round " in shown and "the rule stayed: --alert" in shown
    with oco.open(oco.compile(played_model, settings="paper", alert=ALPHA), "days") as recorded:
        assert recorded.round == ROUNDS + 1 and recorded.alarm == alarm
