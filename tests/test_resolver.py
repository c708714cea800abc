"""Names, shapes and kinds: what a text means as a model."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest

import oco
from oco.dsl.build import call
from oco.dsl.diagnostics import OcoError
from oco.dsl.expressions import Call, Constant, Index, Kind, Name, constant, names, walk
from oco.dsl.load import load, parse
from oco.dsl.model import Model
from oco.dsl.statements import Feedback, Measure, Relation, Timing
from oco.dsl.text.printer import print_model

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.oco"))
HEAD = "model m\nhorizon T = 9\ndecision x[3] in box(0, 1)\nstream c[3] in [-1, 1]\n"


def model(body: str = "minimize c @ x\n", head: str = HEAD) -> Model:
    return parse(head + body)


def codes(body: str, head: str = HEAD) -> list[str]:
    with pytest.raises(OcoError) as caught:
        model(body, head)
    return [d.code for d in caught.value.diagnostics]


def test_job_scheduling_means_what_it_says() -> None:
    found = load(Path(__file__).parent.parent / "examples" / "job_scheduling.oco")
    assert found.name == "job_scheduling"
    assert found.horizon.rounds == Constant(found.horizon.rounds.value, integer=True)  # type: ignore[union-attr]
    region, (x,), (price, jobs) = found.params[0], found.decisions, found.streams
    assert region.data is not None
    assert region.data.tolist() == [i // 10 for i in range(100)]
    assert (x.name, x.shape, x.domain.kind) == ("x", (100,), "box")
    assert (price.shape, jobs.shape) == ((10,), ())
    assert jobs.distribution is not None and jobs.distribution.kind == "poisson"
    (service,) = found.constraints
    assert (service.label, service.relation, service.timing, service.shape) == (
        "service",
        Relation.LE,
        Timing.EACH_ROUND,
        (),
    )
    assert (found.measure, found.feedback) == (Measure.STATIC, Feedback.FULL)
    assert names(found.objective) == ["price", "region", "x"]  # type: ignore[arg-type]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_examples_resolve_with_known_shapes_and_a_place_for_every_part(path: Path) -> None:
    found = load(path)
    for d in (*found.params, *found.decisions, *found.streams):
        assert all(isinstance(dim, int) for dim in d.shape)
    for expr in (found.objective, *(side for c in found.constraints for side in (c.left, c.right))):
        assert expr is not None
        for node in walk(expr):
            assert node.span is not None
            if isinstance(node, Name):
                assert node.span.text.strip("()") == node.name.rstrip(")")


def test_nodes_know_their_shapes_and_whole_numbers() -> None:
    found = model("param k = 1\nstream i in 0..2\nminimize (c * x)[i] + x[k] + sum(x[0:2]) + t\n")
    nodes = {n.span.text: n for n in walk(found.objective) if n.span is not None}  # type: ignore[arg-type]
    assert nodes["x[0:2]"].shape == (2,)
    assert nodes["c * x"].shape == (3,) if "c * x" in nodes else nodes["(c * x)"].shape == (3,)
    assert isinstance(nodes["x[k]"], Index) and nodes["x[k]"].shape == ()
    assert nodes["i"].integer and nodes["k"].integer and nodes["t"].integer
    assert nodes["t"].kind is Kind.ROUND  # type: ignore[attr-defined]
    assert not nodes["x[k]"].integer


def test_an_abbreviation_stays_a_name() -> None:
    found = model("let y = 2 * x\nminimize c @ y\n")
    assert names(found.objective, Kind.LET) == ["y"]  # type: ignore[arg-type]
    assert isinstance(found.lets[0].value, Call) and found.lets[0].value.shape == (3,)


def test_constraints_by_entry() -> None:
    found = model(
        "stream A[2, 3] in [0, 1]\nminimize c @ x\nsubject to\n    a: A @ x <= 1\n    b: x[0] == 0.5  each round\n    d: 1 >= x\n"
    )
    assert [c.shape for c in found.constraints] == [(2,), (), (3,)]
    assert [c.timing for c in found.constraints] == [Timing.ON_AVERAGE, Timing.EACH_ROUND, Timing.ON_AVERAGE]
    assert [c.relation.value for c in found.constraints] == ["<=", "==", ">="]


def test_a_model_is_equal_to_itself_wherever_it_is_written() -> None:
    assert model() == parse("# a comment\n" + HEAD.replace("box(0, 1)", "box( 0,  1 )") + "\n\nminimize c@x\n")
    assert model() != model("minimize c @ x + 1\n")


def test_arguments_by_name_are_put_in_order() -> None:
    assert model(head=HEAD.replace("box(0, 1)", "box(hi = 1, lo = 0)")) == model()
    assert model("stream a ~ normal(sd = 2, mean = 1)\nminimize a * c @ x\n") == model(
        "stream a ~ normal(1, 2)\nminimize a * c @ x\n"
    )


def test_the_last_arguments_of_a_function_may_be_given_by_name() -> None:
    text = "model m\nhorizon T = 9\ndecision x[3] in box(0, 1)\nminimize sum({})\n"
    assert parse(text.format("huber(x, M = 2)")) == parse(text.format("huber(x, 2)"))
    assert parse(text.format("power(x, p = 3)")) == parse(text.format("power(x, 3)"))
    assert parse(text.format("huber(x, M = 2)")).objective == oco_objective(2)
    for wrong, hint in (("huber(x, 2, M = 2)", "M is given already"), ("huber(x, m = 2)", "it takes M")):
        with pytest.raises(OcoError, match=hint) as caught:
            parse(text.format(wrong))
        assert caught.value.code == "OCO304"


def oco_objective(m: float) -> object:
    """The same by the builder."""
    model = oco.Model("m", horizon=9)
    x = model.decision("x", 3, domain=oco.box(0, 1))
    model.minimize(oco.sum(oco.huber(x, M=m)))
    return model.build().objective


def test_shapes_that_params_give() -> None:
    found = parse("model m\nhorizon T = 2 * n\n".replace("horizon T = 2 * n\n", "") + "param n = 4\nhorizon T = 2 * n\n"
                  "decision x[n, n - 1] in box(0, 1)\nlet y = ones(n) @ x\nminimize sum(y[0:n - 1])\n")  # fmt: skip
    assert found.decisions[0].shape == (4, 3)
    assert found.lets[0].value.shape == (3,)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("let a = b\nlet b = a\nminimize c @ x + b\n", ["OCO204"]),
        ("let a = a + 1\nminimize c @ x + a\n", ["OCO206"]),
        ("let a = missing\nlet b = 2 * a\nlet d = b[0] + sum(b, c)\nminimize c @ x + d\n", ["OCO201"]),
        ("minimize missing @ x + missing[0]\nsubject to\n    cap: missing <= 1\n", ["OCO201"]),
        ("minimize one @ x + two[0] + three(x)\n", ["OCO201", "OCO201", "OCO202"]),
        ("stream d[missing] in [0, 1]\nminimize d @ x\n", ["OCO201"]),
        ("stream d[3] in [0, missing]\nminimize d @ x[0:2]\n", ["OCO201", "OCO302"]),
        ("param d[3] = missing\nminimize d @ x[0:2]\n", ["OCO201", "OCO302"]),
        ("param n = missing\nstream d[n] in [0, 1]\nminimize d @ x\n", ["OCO201"]),
        ("strem d[3] in [0, 1]\nminimize d @ x\n", ["OCO108"]),
        ("stream d[3 in [0, 1]\nminimize d @ x\n", ["OCO105"]),
        ("minimise c @ x\n", ["OCO108"]),
        ("minimize c @ x\nsubject to\n    cap: sum(x) < 2\nassume constraints.cap.bound <= 3\n", ["OCO113"]),
        ("minimize c @ x\nsubject to\n    cap: sum(y) <= 2\nassume constraints.cap.bound <= 3\n", ["OCO201"]),
        (
            "minimize c @ x\nsubject to\n    cap: sum(x) <= 2\n    cup: x <= [1, 2]\n    cap: x <= 1\n",
            ["OCO301", "OCO209"],
        ),
        ("stream c[4] in [0, 1]\nminimize c @ x\n", ["OCO203"]),
        ("let sum = 2\nminimize sum(c * x) + sum\n", []),
        ("stream mean in [0, 1]\nminimize mean(c * x) * mean\n", []),
    ],
)
def test_one_mistake_is_said_once(body: str, expected: list[str]) -> None:
    assert (codes(body) if expected else [d.name for d in model(body).lets[:0]]) == expected


def test_the_nearest_name_is_offered() -> None:
    for text, hint in {
        "minimize d @ x\n": "declare it",
        "minimize C @ x\n": "did you mean `c`?",
        "minimize c @ x + logg(1)\n": "did you mean `log`?",
        "minimize sum\n": "write sum(...)",
    }.items():
        with pytest.raises(OcoError) as caught:
            model(text)
        assert hint in caught.value.hint


def test_a_hidden_function_is_not_there() -> None:
    assert codes("minimize _sign(c) @ x\n") == ["OCO101"]
    assert codes("minimize add(c @ x, 1)\n") == ["OCO202"]


def test_index_ranges_follow_declarations() -> None:
    for index, good in {
        "i": True,
        "i + 1": False,
        "2 - i": True,
        "i - 1": False,
        "2 * i": False,
        "zone": True,
        "zone + i": False,
        "free": True,
    }.items():
        body = f"stream i in 0..2\nparam zone[2] in 0..9 = [0, 2]\nstream free in 0..k - 1\nminimize c @ x + sum(x[{index}])\n"
        head = HEAD.replace("horizon", "param k in 1..3\nhorizon")
        if good:
            model(body, head)
        else:
            assert codes(body, head) == ["OCO312"], index


def test_settings_and_assumptions() -> None:
    found = model("minimize c @ x\nassume path_length <= 4 * 10\nusing coldq with epsilon = 0.5, alpha = 2 * sqrt(t)\n")
    assert found.using is not None
    assert (found.using.algorithm, found.using.settings) == ("coldq", (("epsilon", "0.5"), ("alpha", "2 * sqrt(t)")))
    assert [(a.key, a.relation) for a in found.assumptions] == [("path_length", Relation.LE)]
    assert model("minimize c @ x\nusing projection-free with oracle = ospf\n").using is not None
    assert (
        model("minimize c @ x\nusing ogd with eta = domain.diameter.l2 / (loss.lipschitz.l2 * sqrt(t))\n").using
        is not None
    )


def test_errors_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "wrong.oco"
    path.write_text(HEAD + "minimize d @ x\n")
    with pytest.raises(OcoError) as caught:
        load(path)
    assert str(caught.value).startswith(
        f"{path}:5:10: error OCO201: `d` is not declared\n    5 | minimize d @ x\n      |          ^\n"
    )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "binary.oco").write_bytes(b"model \xff\n")
    for name, code in {"none.oco": "OCO901", "binary.oco": "OCO902", ".": "OCO901"}.items():
        with pytest.raises(OcoError) as caught:
            load(tmp_path / name)
        assert caught.value.code == code


def test_several_errors_are_one_exception() -> None:
    with pytest.raises(OcoError) as caught:
        model("minimize d @ x\nsubject to\n    cap: x <= [1, 2]\n")
    assert [e.code for e in caught.value.errors] == ["OCO201", "OCO301"]
    assert caught.value.code == "OCO201"
    assert str(caught.value).count("error OCO") == 2


def test_values_of_params_agree_with_numpy() -> None:
    found = model("param P[3, 3] = outer([1, 2, 3], ones(3)) + 2 * eye(3)\nminimize quad_form(x, P.T @ P)\n")
    assert found.params[0].data == pytest.approx(np.outer([1, 2, 3], np.ones(3)) + 2 * np.eye(3))


def test_abbreviations_of_abbreviations_cost_no_more_than_their_number() -> None:
    lets = "let y0 = c[0]\nlet i0 = i\n" + "".join(
        f"let y{n + 1} = y{n} + y{n}\nlet i{n + 1} = i{n} + i{n} - i{n}\n" for n in range(60)
    )
    assert model(f"stream i in 0..0\n{lets}minimize y60 * x[0] + x[i60]\n").lets[-1].name == "i60"


@pytest.mark.parametrize(
    "key", ("feasible.common", "feasible.mean", "slater.point", "multipliers.bounded", "loss.convex")
)
def test_assumptions_without_a_bound_say_that_a_fact_holds(key: str) -> None:
    found = model(f"minimize c @ x\nassume {key}\n")
    assert [(a.key, a.relation) for a in found.assumptions] == [(key, Relation.GE)]
    assert f"\nassume {key}\n" in print_model(found) and parse(print_model(found)) == found


@pytest.mark.parametrize("key", ("slater.margin", "loss.bound", "path_length"))
def test_numbers_are_not_assumed_without_a_bound(key: str) -> None:
    assert codes(f"minimize c @ x\nassume {key}\n") == ["OCO653"]


def expanded(text: str) -> str:
    """Text with each `#1#` replaced by what stands after `#1=`, up to the bracket that closes it."""
    while labels := re.findall(r"#(\d+)=(?!.*#\d+=)", text, re.DOTALL):
        start = text.index(f"#{labels[0]}=")
        first = stop = start + len(f"#{labels[0]}=")
        while stop == first or text[first:stop].count("(") != text[first:stop].count(")") or text[stop - 1] != ")":
            stop += 1
        text = (text[:start] + text[first:]).replace(f"#{labels[0]}#", text[first:stop])
    return text


def test_what_is_printed_of_expressions_grows_with_their_nodes_and_loses_nothing() -> None:
    x = Name("x", Kind.DECISION)
    shared, apart = [x], [x]
    for k in range(60):
        y = shared[-1]
        shared.append(call("mul", call("add", y, constant(k)), y))
    for k in range(4):
        one, other = (deepcopy(apart[-1]) for _ in range(2))
        apart.append(call("mul", call("add", one, constant(k)), other))
    assert len(repr(shared[-1])) < 60 * len(repr(shared[1])) * 2
    assert "#" not in repr(apart[-1]) and repr(apart[-1]) == expanded(repr(shared[4])) != expanded(repr(shared[3]))
