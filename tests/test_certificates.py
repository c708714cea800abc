"""Certificates: never below the regret to comparators that CVXPY finds, equal to it where the sums are exact, alike everywhere."""

import math
from functools import cache
from itertools import cycle, product

import cvxpy as cp
import numpy as np
import pytest
from driving import solved
from thorough import corners, thorough

import oco
from oco.backends.play import can_play
from oco.compiler import algorithms as table
from oco.compiler.certificates.form import HessianForm, certificate_form
from oco.compiler.problem.canonical import canonical
from oco.dsl.diagnostics import OcoError
from oco.plan import Plan

HEAD = "model m\nhorizon T = {T}\ndecision x[3] in {domain}\n"
LINEAR = "stream a[3] in [-1, 1]\nstream b in [0, 1]\n"
CASES = {
    "affine, additive": ("box(0, 1)", LINEAR + "minimize a @ x\nsubject to\n    cap: sum(x) <= 1 + b each round\n"),
    "affine, bent": (
        "box(0, 2)",
        LINEAR + "minimize a @ x + sum(x)\nsubject to\n    need: 1 + b - 2 * sum(log(1 + x)) <= 0 each round\n",
    ),
    "quadratic, diagonal": ("box(-1, 1)", LINEAR + "minimize sum_squares(x - a) + b * sum(x)\n"),
    "quadratic, full": (
        "ball(2)",
        LINEAR + "minimize square(a @ x - b) + 0.1 * sum_squares(x)\nsubject to\n    cap: x[0] + b <= 1 each round\n",
    ),
    "on average": (
        "box(0, 1)",
        LINEAR + "minimize -sum(x) + a @ x\nsubject to\n    cap: a @ x + sum(x) - 1 <= 0 on average\n",
    ),
    "at means": (
        "box(0, 1)",
        LINEAR + "minimize -sum((2 + a) * log(1 + x))\nsubject to\n    cap: sum(x) <= 1 + b on average\n",
    ),
    "exp-concave": ("simplex", "stream a[3] in [0.5, 2]\nminimize -log(a @ x)\n"),
    "linearised": ("box(0, 1)", LINEAR + "minimize norm2(x - a) + b * sum(x)\n"),
    "rows": ("box(0, 1)", LINEAR + "minimize -sum(x)\nsubject to\n    cap: a @ x <= b each round\n"),
}
ALGORITHMS = dict.fromkeys(CASES, "coldq") | {
    "quadratic, diagonal": "ogd",
    "on average": "mirror-descent",
    "at means": "mirror-descent",
    "exp-concave": "ogd",
    "linearised": "ogd",
}
"""Algorithm of each case: a certificate holds whatever the learner is."""
ROUNDS = 24
DYNAMIC = ("affine, additive", "affine, bent", "quadratic, full", "exp-concave", "rows")
"""Cases whose dynamic regret is certified."""


def made(case: str, T: int = ROUNDS) -> oco.Model:
    """Model of a case."""
    domain, text = CASES[case]
    return oco.parse(HEAD.format(T=T, domain=domain) + text)


@cache
def plan_of(case: str, certify: str | None = None, T: int = ROUNDS) -> Plan:
    """Plan of a case; a plan is a value, so that tests share it."""
    return oco.compile(made(case, T), ALGORITHMS[case], "paper", certify=certify)


def data_of(case: str, seed: int, T: int = ROUNDS) -> dict[str, np.ndarray]:
    """Rounds of a case: uniform, drifting, or jumping between the ends of the ranges."""
    rng = np.random.default_rng(seed)
    low, high = (0.5, 2.0) if case == "exp-concave" else (-1.0, 1.0)
    u, v = rng.random((T, 3)), rng.random(T)
    if seed % 3 == 1:
        u, v = (u + np.linspace(0, 1, T)[:, None]) / 2, (v + np.linspace(1, 0, T)) / 2
    if seed % 3 == 2:
        u, v = np.round(u), np.round(v)
    data = {"a": low + (high - low) * u, "b": v}
    return data if case != "exp-concave" else {"a": data["a"]}


def best_loss(case: str, a: np.ndarray, b: np.ndarray) -> float:
    """Least loss of a fixed decision over the rounds, by CVXPY; infinite where none satisfies the constraints."""
    x = cp.Variable(3)
    s, T = a.sum(axis=0), len(a)
    box, unit = [x >= 0, x <= 1], [x >= 0, x <= 2]
    problems = {
        "affine, additive": (s @ x, [*box, cp.sum(x) <= 1 + b.min()]),
        "affine, bent": (s @ x + T * cp.sum(x), [*unit, 2 * cp.sum(cp.log(1 + x)) >= 1 + b.max()]),
        "quadratic, diagonal": (
            T * cp.sum_squares(x) - 2 * s @ x + (a**2).sum() + b.sum() * cp.sum(x),
            [x >= -1, x <= 1],
        ),
        "quadratic, full": (
            cp.sum_squares(a @ x - b) + 0.1 * T * cp.sum_squares(x),
            [cp.norm(x) <= 2, x[0] + b.max() <= 1],
        ),
        "on average": (s @ x - T * cp.sum(x), [*box, s @ x / T + cp.sum(x) <= 1]),
        "at means": (-(2 * T + s) @ cp.log(1 + x), [*box, cp.sum(x) <= 1 + b.mean()]),
        "exp-concave": (-cp.sum(cp.log(a @ x)), [x >= 0, cp.sum(x) == 1]),
        "linearised": (sum(cp.norm(x - row) for row in a) + b.sum() * cp.sum(x), box),
        "rows": (-T * cp.sum(x), [*box, a @ x <= b]),
    }
    objective, constraints = problems[case]
    tight = dict.fromkeys(
        ("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-11
    )  # its own are wider than what a certificate leaves
    return float(cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL, **tight))


def regret(case: str, trace: object, data: dict[str, np.ndarray], rounds: int) -> float:
    """Regret of the first rounds, with the comparator of CVXPY."""
    a = data["a"][:rounds]
    b = data["b"][:rounds] if "b" in data else np.zeros(rounds)
    return float(trace.loss[:rounds].sum()) - best_loss(case, a, b)  # type: ignore[attr-defined]


@pytest.mark.parametrize("T", [ROUNDS, thorough(60)])
@pytest.mark.parametrize(
    ("case", "seed"), corners(product(CASES, range(3)), [(case, k % 3) for k, case in enumerate(CASES)])
)
def test_never_below_the_regret(case: str, seed: int, T: int) -> None:
    """Random, drifting and jumping data, on prefixes of the run; tight where losses and constraints are summed as they are."""
    data = data_of(case, seed, T)
    trace = plan_of(case, T=T).run(data, backend="numpy")
    ends = (1, 5, T)
    for end, certificate in zip(ends, trace.certificates(ends)):
        true = regret(case, trace, data, end)
        assert certificate.bound >= true - 1e-6 * (1 + abs(true))
        if certificate.terms.exact:
            assert certificate.bound <= true + 0.01 * abs(true) + 1e-5 * end


@pytest.mark.parametrize("case", corners(DYNAMIC, ["affine, bent", "exp-concave", "rows"]))
def test_dynamic_never_below_the_regret(case: str) -> None:
    """Best decisions of each round, by the comparators' own solver; alike in C."""
    data = data_of(case, 0)
    plan = plan_of(case, "dynamic")
    trace = plan.run(data, backend="numpy")
    true, certified = float(trace.regret("dynamic")[-1]), trace.certificate().dynamic
    assert certified is not None and true - 1e-6 <= certified <= true + 0.1 * abs(true) + 0.1
    if case == "exp-concave":
        assert plan.run(data, backend="c").certificate().dynamic == pytest.approx(certified, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("algorithm", ["ogd", "coldq", "recoo"])
def test_decisions_of_an_adversary(algorithm: str) -> None:
    """Data that follow the decisions: each round charges most for what the learner has just taken."""
    model = made("affine, additive")
    try:
        plan = oco.compile(model, algorithm, "paper", certify="static")
    except OcoError:
        pytest.skip("the algorithm does not run on this model")
    learner, rounds, loss = plan.learner(backend="numpy"), list[np.ndarray](), 0.0
    rng = np.random.default_rng(0)
    caps = list[float]()
    slope, room, u = cp.Parameter(3), cp.Parameter(), cp.Variable(3)
    best = cp.Problem(cp.Minimize(slope @ u), [u >= 0, u <= 1, cp.sum(u) <= 1 + room])
    for _ in range(ROUNDS):
        x = learner.decide()
        rounds.append(np.where(x > 0.3, 1.0, -1.0))
        caps.append(float(rng.integers(0, 2)))
        loss += float(learner.observe(a=rounds[-1], b=caps[-1]).loss)
        slope.value, room.value = np.sum(rounds, axis=0), min(caps)
        solved(best)
        assert learner.certificate().bound >= loss - best.value - 1e-6


@pytest.mark.parametrize("predicted", ["", "predict a = -1 * last(a)\n"], ids=["alike", "trusted"])
def test_best_expert(predicted: str) -> None:
    """Loss and violations at their prices, less those of the best expert, are within AdaHedge's gap, in the user's units."""
    domain, text = CASES["affine, additive"]
    priced = (
        text.replace("minimize", f"{predicted}minimize")
        .replace("each round", "each round, penalty 3")
        .replace("a @ x", "7 * a @ x")
    )
    plan = oco.compile(oco.parse(HEAD.format(T=ROUNDS, domain=domain) + priced), "hedged", certify="static")
    data, learner = data_of("affine, additive", 0), plan.learner(backend="numpy")
    paid = 0.0
    for t in range(ROUNDS):
        learner.decide()
        feedback = learner.observe(a=data["a"][t], b=data["b"][t])
        paid += feedback.loss + 3 * float(feedback.violation.sum())
    certified, scales = learner.certificate().best_expert, plan.choice.winner.scales
    assert certified is not None and scales is not None
    assert paid - scales.loss * float(learner.value("L")[0].min()) <= certified + 1e-9


@pytest.mark.parametrize("case", ["quadratic, full", thorough("rows")])
def test_alike_in_all_backends(case: str) -> None:
    """The same certificate, but for rounding, from NumPy, C, a fleet, a restored state and the replay of the trace."""
    data = data_of(case, 1)
    plan = plan_of(case, "static")
    learners = [plan.learner(backend=name) for name in ("numpy", "c")]
    fleet = plan.fleet(3, backend="c")
    assert plan.terms is not None
    for t in range(ROUNDS):
        for learner in learners:
            learner.decide()
            learner.observe(a=data["a"][t], b=data["b"][t])
        fleet.decide()
        fleet.observe(a=np.stack([data["a"][t]] * 3), b=np.stack([data["b"][t]] * 3))
    bounds = [learner.certificate().bound for learner in learners]
    bounds += [c.bound for c in fleet.certificates()]
    bounds.append(oco.restore(learners[0].state()).certificate().bound)
    bounds.append(plan.run(data, backend="c").certificate().bound)
    bounds.append(plan_of(case).run(data, backend="numpy").certificate().bound)
    assert np.ptp(bounds) <= 1e-7 * (1 + abs(bounds[0]))
    assert can_play(learners[1])


def test_emitted_module(tmp_path) -> None:
    """The module that needs NumPy alone gives the certificate of the learner."""
    plan = oco.compile(made("affine, bent"), "coldq", "paper", certify="static", backend="numpy")
    namespace: dict[str, object] = {"__name__": "emitted"}
    exec(compile(plan.source("numpy"), "emitted", "exec"), namespace)
    emitted, learner = namespace["Learner"](), plan.learner()  # type: ignore[operator]
    data = data_of("affine, bent", 0)
    for t in range(ROUNDS):
        emitted.decide()
        emitted.observe(a=data["a"][t], b=data["b"][t])
        learner.decide()
        learner.observe(a=data["a"][t], b=data["b"][t])
    assert emitted.certificate()["bound"] == pytest.approx(learner.certificate().bound, rel=1e-9)


def test_all_regrets_of_emitted_modules() -> None:
    """Regrets to the best decision of each round and to the best expert, and rounds broken, are those of the learner; C has them too."""
    domain, text = CASES["affine, additive"]
    priced = text.replace("each round", "each round, penalty 3")
    plan = oco.compile(oco.parse(HEAD.format(T=ROUNDS, domain=domain) + priced), "hedged", certify="dynamic")
    namespace: dict[str, object] = {"__name__": "emitted"}
    exec(compile(plan.source("numpy"), "emitted", "exec"), namespace)
    emitted, learner = namespace["Learner"](), plan.learner(backend="numpy")  # type: ignore[operator]
    data = data_of("affine, additive", 0)
    for t in range(ROUNDS):
        for own in (emitted, learner):
            own.decide()
            own.observe(a=data["a"][t], b=data["b"][t])
    known, found = learner.certificate(), emitted.certificate()
    assert known.dynamic is not None and known.best_expert is not None and sum(known.broken.values()) > 0
    assert found["dynamic"] == pytest.approx(known.dynamic, rel=1e-9)
    assert found["best_expert"] == pytest.approx(known.best_expert, rel=1e-9)
    assert list(found["broken"]) == list(known.broken.values())
    assert "double *broken, double *dynamic, double *best_expert" in " ".join(plan.files("c")["m.h"].split())


def test_emitted_c_writes_the_function() -> None:
    """Header and source have `m_certificate` where the plan keeps sums, and do not where it does not."""
    certified = plan_of("affine, additive", "static").files("c")
    plain = plan_of("affine, additive").files("c")
    assert all("m_certificate" in certified[name] for name in ("m.c", "m.h"))
    assert not any("m_certificate" in text for text in plain.values())


COUNTED = [(a.name, settings) for a in table.ALGORITHMS for settings in ("optimal", "paper")]
KEPT = [*zip(("ogd", "oeg", "coldq", "nested", "hedged", "optimistic"), cycle(("optimal", "paper")))]
"""A rule of each kind, with either settings by turns."""


@pytest.mark.parametrize("every", [False, thorough(True)], ids=["some", "every"])
@pytest.mark.parametrize(("algorithm", "settings"), corners(COUNTED, KEPT))
def test_losses_counted_from_a_point(algorithm: str, settings: str, every: bool) -> None:
    """Sums of affine losses, counted from a point of the rule's units, are the sum of the losses of what was played, but for rounding.

    In a box and in a simplex, with a constraint and without: of some, one domain with it and the other without.
    """
    head = "model m\nhorizon T = {}\ndecision x[3] in {}\ndecision y in box(-2, 3)\n".format(ROUNDS, "{}")
    text = head + LINEAR + "minimize 1e3 * a @ x + b * y + 5 * b\nsubject to\n    cap: sum(x) + y <= 1 + b each round\n"
    bounds, models = [], [*product(("box(0.5, 4)", "simplex"), (text, text.partition("subject")[0]))]
    for domain, model in models if every else models[::3]:
        try:
            plan = oco.compile(oco.parse(model.format(domain)), algorithm, settings, certify="static")
            trace = plan.run(data_of("affine, additive", 0), backend="numpy")
        except OcoError:
            continue
        own, size = trace.own_certificate, 1e3 * 12 * ROUNDS
        assert own is not None and abs(own.loss - math.fsum(trace.loss)) <= 2**-45 * size
        bounds.append(own.bound)
        assert own.bound == pytest.approx(trace.certificate().bound, abs=1e-6)
    if not bounds:
        pytest.skip("the algorithm does not run on these models, or there is no certificate of them")


def test_decisions_do_not_change() -> None:
    """A learner that keeps sums decides as one that does not, bit for bit."""
    data = data_of("affine, additive", 0)
    plan = plan_of("affine, additive")
    one, other = plan.run(data, backend="numpy"), plan.certified().run(data, backend="numpy")
    assert np.array_equal(one.decisions, other.decisions)


def test_many_constraints() -> None:
    """Hundreds of constraints share the multipliers of rounds: few numbers of state, and a bound that is sound."""
    text = "stream a[3] in [-1, 1]\nparam A[300, 3]\nminimize a @ x\nsubject to\n    many: A @ x <= 1 each round\n"
    rng = np.random.default_rng(0)
    A = np.abs(rng.normal(size=(300, 3)))
    model = oco.parse(HEAD.format(T=20, domain="box(0, 1)") + text)
    data = {"a": rng.uniform(-1, 1, (20, 3))}
    plan = oco.compile(model, "ogd", params={"A": A}, certify="static")
    trace = plan.run(data, backend="numpy")
    x = cp.Variable(3)
    best = cp.Problem(cp.Minimize(data["a"].sum(axis=0) @ x), [x >= 0, x <= 1, A @ x <= 1]).solve(solver=cp.CLARABEL)
    certificate = trace.certificate()
    assert certificate.bound >= trace.loss.sum() - best - 1e-6 and len(certificate.multipliers) < 100


def test_impossible_constraints() -> None:
    """Rounds that no fixed decision satisfies: proved, and no number of regret is given."""
    text = "stream a in [0, 1]\nminimize sum(x)\nsubject to\n    up: a - x[0] <= 0 each round\n    down: x[0] - a <= 0 each round\n"
    model = oco.parse(HEAD.format(T=4, domain="box(0, 1)") + text)
    trace = oco.compile(model, "ogd").run({"a": np.array([0.2, 0.2, 0.8, 0.2])})
    (first, last) = trace.certificates((2, 4))
    assert not first.impossible and last.impossible and last.bound == -np.inf
    assert trace.certified()[0] is None


def test_impossible_constraints_of_a_loss_at_means() -> None:
    """Multipliers grow without end where no decision is left: what no loss reaches is no statement about losses."""
    text = "stream a in [0, 1]\nminimize a * sum(inv_pos(x))\nsubject to\n    up: x[0] >= a each round\n    down: x[0] <= a each round\n"
    model = oco.parse(HEAD.format(T=4, domain="box(0.1, 1)") + text)
    trace = oco.compile(model, "ogd").run({"a": np.array([0.2, 0.2, 0.8, 0.2])})
    assert trace.certificate().least > 1.4 * 3 / 0.1
    assert trace.certified() == (None, "no fixed decision satisfied the constraints of all rounds: proved")


def test_forms() -> None:
    """Losses and constraints are kept as they are where that is possible."""
    forms = {case: certificate_form(canonical(made(case)).standing) for case in CASES}
    kinds = {case: f.curvature for case, f in forms.items() if not isinstance(f, str)}
    assert kinds["affine, additive"] is HessianForm.NONE
    assert kinds["quadratic, diagonal"] is HessianForm.DIAGONAL
    assert kinds["quadratic, full"] is HessianForm.FULL
    assert kinds["at means"] is HessianForm.MEAN
    assert kinds["exp-concave"] is HessianForm.EXP_CONCAVE
    exact = {case for case, f in forms.items() if not isinstance(f, str) and f.exact and f.exact_constraints}
    assert exact == {*CASES} - {"exp-concave", "linearised", "rows"}


@pytest.mark.parametrize(
    ("loss", "kept"), [("square(X[i, j] - a) + X[0, 0]", True), ("square(X[i, 0] - X[j, 1])", False)]
)
def test_entries_that_streams_choose(loss: str, kept: bool) -> None:
    """A quadratic of one entry is summed in its Hessian's diagonal whichever the entry is; of two in the whole Hessian."""
    model = oco.parse(
        "model m\nhorizon T = 40\ndecision X[3, 2] in box(-1, 1)\nstream i in 0..2\nstream j in 0..1\nstream a in [-1, 1]\n"
        f"minimize {loss}\n"
    )
    form = certificate_form(canonical(model).standing)
    assert not isinstance(form, str) and form.exact
    assert form.curvature is (HessianForm.DIAGONAL if kept else HessianForm.FULL)
    rng = np.random.default_rng(0)
    data = {"i": rng.integers(0, 3, 40), "j": rng.integers(0, 2, 40), "a": rng.uniform(-1, 1, 40)}
    trace = oco.compile(model, "ogd", "paper").run(data, backend="numpy")
    X = cp.Variable((3, 2))
    rounds = zip(data["i"].tolist(), data["j"].tolist(), data["a"].tolist())
    terms = [cp.square(X[i, j] - a) + X[0, 0] if kept else cp.square(X[i, 0] - X[j, 1]) for i, j, a in rounds]
    best = cp.Problem(cp.Minimize(sum(terms)), [X >= -1, X <= 1]).solve(solver=cp.CLARABEL)
    true = float(trace.loss.sum()) - float(best)
    assert true - 1e-6 <= trace.certificate().bound <= true + 0.01 * abs(true) + 1e-3


def test_refusals() -> None:
    """Learners without sums, feedback without functions, and kinds that do not exist have their codes."""
    plan = plan_of("affine, additive")
    for code, act in (
        ("OCO735", lambda: plan.learner().certificate()),
        ("OCO736", lambda: plan.certified("adaptive")),
        (
            "OCO735",
            lambda: oco.compile(
                oco.parse(
                    HEAD.format(T=9, domain="box(0, 1)") + "stream a[3] in [-1, 1]\nminimize a @ x\nfeedback bandit\n"
                ),
                certify="static",
            ),
        ),
    ):
        with pytest.raises(OcoError) as error:
            act()
        assert error.value.code == code


def test_statement_and_derivation() -> None:
    """The statement has the bound; the derivation ends with it."""
    trace = oco.compile(made("affine, additive")).run(data_of("affine, additive", 0))
    certificate = trace.certificate()
    assert (
        f"{certificate.bound:.10g}" in certificate.statement
        and f"{certificate.bound:.10g}" in certificate.derivation[-1]
    )
    assert r"\sum" in certificate.latex and certificate.rounds == ROUNDS
    assert certificate.broken == {"cap": int((trace.constraints[:, 0] > 0).sum())}
