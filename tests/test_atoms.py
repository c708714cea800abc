"""The table of atoms: complete, right about shapes, and sound in what it claims of ranges, curvature and monotonicity."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from atom_cases import ANY, CASES, FIXED_CASES, Case, each_case

from oco.dsl.atoms import ATOMS, Atom, Curvature, Monotone
from oco.dsl.atoms.shapes import entrywise
from oco.dsl.build import array, call, index
from oco.dsl.diagnostics import OcoError
from oco.dsl.enclose import enclose
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Constant, Expr, Kind, Name, Slice, constant
from oco.dsl.intervals import Interval, interval, point

every = each_case(CASES)
ROUNDING = 1e-9
LINEAR = ("_broadcast", "_reshape", "_scatter")
ENTRYWISE = [
    c for c in CASES if ATOMS[c.atom].shape is entrywise and [shape for shape, _ in c.boxes.values()] == [(3,)]
]


def ranges(case: Case) -> dict[str, Interval]:
    return {name: interval(*box, shape) for name, (shape, box) in case.boxes.items()}


def arguments(case: Case) -> list[Interval]:
    return [interval(*a[1], a[0]) if isinstance(a, tuple) else point(a) for a in case.args]


def value(case: Case, at: dict[str, np.ndarray]) -> np.ndarray:
    return evaluate(case.call(), at)


# ---- completeness


@pytest.mark.parametrize("atom", ATOMS.values(), ids=lambda a: a.name)
def test_every_row_is_complete(atom: Atom) -> None:
    for column in fields(Atom):
        filled = getattr(atom, column.name)
        assert filled is not None or column.default is None or column.name == "cvxpy", (
            f"{atom.name} lacks {column.name}"
        )
    assert atom.doc
    nonlinear = atom.name.startswith("_") and atom.name not in LINEAR
    assert (atom.cvxpy is None) == nonlinear, "signs, masks and weights alone have no twin"
    assert bool(atom.operator) == bool(atom.precedence)


def test_every_atom_of_the_language_has_a_case() -> None:
    assert {c.atom for c in CASES + FIXED_CASES} == {name for name in ATOMS if not name.startswith("_")}


def test_the_language_has_the_atoms_of_its_reference() -> None:
    named = [
        "sum",
        "mean",
        "max",
        "min",
        "abs",
        "pos",
        "neg",
        "square",
        "sqrt",
        "exp",
        "log",
        "log1p",
        "logistic",
        "huber",
        "entr",
        "kl_div",
        "rel_entr",
        "norm1",
        "norm2",
        "norm_inf",
        "sum_squares",
        "quad_form",
        "log_sum_exp",
        "inv_pos",
        "power",
        "maximum",
        "minimum",
        "trace",
        "diag",
        "outer",
        "dot",
        "hinge",
        "nuclear_norm",
        "sigma_max",
        "ones",
        "zeros",
        "eye",
        "repeat",
    ]
    assert set(named) <= ATOMS.keys()
    assert {a.operator for a in ATOMS.values()} - {""} == {"+", "-", "*", "/", "**", "@", "%", ".T", ".."}


# ---- soundness of the columns


@every
def test_shape_is_that_of_the_value(case: Case) -> None:
    assert value(case, case.draw(np.random.default_rng(0))).shape == case.call().shape


@every
def test_bounds_hold_at_every_sample(case: Case) -> None:
    rng = np.random.default_rng(1)
    bounds = enclose(case.call(), ranges(case))
    assert bounds.shape == case.call().shape
    for _ in range(25):
        at = case.draw(rng)
        for name, (shape, box) in case.boxes.items():
            corner = rng.choice(box, size=shape)
            at[name] = np.where(rng.random(shape) < 0.5, corner, at[name])
        found = value(case, at)
        slack = ROUNDING * (1 + np.abs(found))
        assert np.all(bounds.lo - slack <= found)
        assert np.all(found <= bounds.hi + slack)


@each_case(ENTRYWISE)
def test_bounds_of_functions_of_one_entry_are_tight(case: Case) -> None:
    """Against the extremes on a fine grid."""
    ((name, (_, box)),) = case.boxes.items()
    bounds = enclose(case.call(), ranges(case))
    grid = np.linspace(*box, 999).reshape(-1, 3)
    found = np.concatenate([value(case, {name: x}) for x in grid])
    width = 1e-3 * (1 + np.ptp(found))
    assert np.all(bounds.lo >= found.min() - width)
    assert np.all(bounds.hi <= found.max() + width)


def subsets(case: Case) -> list[tuple[bool, ...]]:
    """Which arguments vary: each alone, and all together."""
    able = [isinstance(a, tuple) for a in case.args]
    alone = [tuple(i == k for i in range(len(able))) for k in range(len(able)) if able[k]]
    return list(dict.fromkeys([*alone, tuple(able)]))


@every
def test_curvature_holds_on_segments(case: Case) -> None:
    """Midpoint convexity between random points, for what the column claims."""
    rng = np.random.default_rng(2)
    expr = case.call()
    for varies in subsets(case):
        claimed = ATOMS[case.atom].curvature(expr, tuple(arguments(case)), varies)
        if claimed is Curvature.UNKNOWN:
            continue
        for _ in range(25):
            a, b = case.draw(rng), case.draw(rng)
            b = {name: b[name] if varies[int(name[1:])] else a[name] for name in b}
            middle = {name: (a[name] + b[name]) / 2 for name in a}
            ends = (value(case, a) + value(case, b)) / 2
            violation = value(case, middle) - ends
            slack = ROUNDING * (1 + np.abs(ends))
            if claimed is not Curvature.CONCAVE:
                assert np.all(violation <= slack), (claimed, varies)
            if claimed is not Curvature.CONVEX:
                assert np.all(violation >= -slack), (claimed, varies)


@every
def test_monotonicity_holds_on_steps(case: Case) -> None:
    rng = np.random.default_rng(3)
    expr = case.call()
    claimed = ATOMS[case.atom].monotone(expr, *arguments(case))
    assert len(claimed) == len(case.args)
    for name, (shape, box) in case.boxes.items():
        direction = claimed[int(name[1:])]
        if direction is Monotone.NEITHER:
            continue
        sign = 1 if direction is Monotone.UP else -1
        for _ in range(25):
            at = case.draw(rng)
            above = at | {name: np.minimum(at[name] + rng.uniform(0, 1, shape), box[1])}
            before, after = value(case, at), value(case, above)
            assert np.all(sign * (after - before) >= -ROUNDING * (1 + np.abs(before)))


@pytest.mark.parametrize(
    ("atom", "box", "words"),
    [
        ("log", (-1.0, 1.0), "positive"),
        ("sqrt", (-1.0, 1.0), "nonnegative"),
        ("log1p", (-2.0, 1.0), "above -1"),
        ("inv_pos", (0.0, 1.0), "positive"),
        ("entr", (-1.0, 1.0), "nonnegative"),
    ],
)
def test_ranges_outside_the_domain_are_refused_in_words(atom: str, box: tuple[float, float], words: str) -> None:
    x = Name("x", Kind.DECISION, shape=(3,))
    allowed = ATOMS[atom].allowed
    assert allowed is not None
    assert words in allowed(call(atom, x), interval(*box, (3,)))
    assert allowed(call(atom, x), interval(1.0, 2.0, (3,))) == ""


def test_division_by_a_range_with_zero_is_refused() -> None:
    x = Name("x", Kind.DECISION)
    allowed = ATOMS["div"].allowed
    assert allowed is not None
    assert "0" in allowed(call("div", 1, x), point(1.0), interval(-1, 1))
    assert allowed(call("div", 1, x), point(1.0), interval(-2, -1)) == ""


# ---- what signs and ranges add to disciplined convex programming


@pytest.mark.parametrize(
    ("atom", "boxes", "varies", "curvature"),
    [
        ("mul", ((0.0, 2.0), ANY), (False, True), Curvature.AFFINE),
        ("mul", (ANY, ANY), (True, True), Curvature.UNKNOWN),
        ("div", ((1.0, 2.0), (1.0, 2.0)), (False, True), Curvature.CONVEX),
        ("div", ((-2.0, -1.0), (1.0, 2.0)), (False, True), Curvature.CONCAVE),
        ("div", (ANY, (1.0, 2.0)), (False, True), Curvature.UNKNOWN),
        ("maximum", ((2.0, 3.0), (0.0, 1.0)), (True, True), Curvature.AFFINE),
    ],
)
def test_curvature_reads_signs(atom: str, boxes: tuple, varies: tuple, curvature: Curvature) -> None:
    args = [Name(f"a{i}", Kind.DECISION) for i in range(2)]
    assert ATOMS[atom].curvature(call(atom, *args), tuple(interval(*b) for b in boxes), varies) is curvature


@pytest.mark.parametrize("atom", ["abs", "pos", "neg", "hinge", "norm1"])
def test_kinks_outside_the_range_do_not_count(atom: str) -> None:
    x = Name("x", Kind.DECISION, shape=(2,))
    assert ATOMS[atom].curvature(call(atom, x), (interval(2, 3, (2,)),), (True,)) is Curvature.AFFINE
    assert ATOMS[atom].curvature(call(atom, x), (interval(-2, 3, (2,)),), (True,)) is Curvature.CONVEX


def test_a_product_of_an_expression_with_itself_is_a_square() -> None:
    x = Name("x", Kind.DECISION, shape=(3,))
    for expr in (call("mul", x, x), call("matmul", x, x), call("dot", x, x)):
        assert ATOMS[expr.atom].curvature(expr, (interval(-1, 1, (3,)),) * 2, (True, True)) is Curvature.CONVEX
        assert enclose(expr, {"x": interval(-1, 1, (3,))}).least == 0


# ---- shapes and their errors


def named(name: str, *shape: int, integer: bool = False) -> Name:
    return Name(name, Kind.STREAM, shape=shape, integer=integer)


X, B, A = named("x", 3), named("b", 2), named("A", 2, 3)


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (lambda: call("add", X, B), "OCO301", ["`x` has shape [3]", "`b` has shape [2]"]),
        (lambda: call("mul", A, B), "OCO301", ["`A` has shape [2, 3]"]),
        (lambda: call("maximum", X, 1, B), "OCO301", ["`x`", "`b`"]),
        (lambda: call("matmul", X, A), "OCO302", ["3 entries", "2 rows"]),
        (lambda: call("matmul", A, B), "OCO302", ["3 columns", "2 entries"]),
        (lambda: call("matmul", A, 2), "OCO302", ["is a number"]),
        (lambda: call("dot", X, B), "OCO302", ["`x`", "`b`"]),
        (lambda: call("quad_form", X, named("P", 2, 2)), "OCO302", ["`P`"]),
        (lambda: call("max", X, 0), "OCO303", ["1 argument, here it has 2"]),
        (lambda: call("sum", X, weight=1), "OCO304", ["weight"]),
        (lambda: call("sum", X, axis=1), "OCO305", ["`x` has no axis 1"]),
        (lambda: call("trace", A), "OCO306", ["square"]),
        (lambda: call("nuclear_norm", X), "OCO306", ["a matrix"]),
        (lambda: call("outer", X, A), "OCO306", ["two vectors"]),
        (lambda: call("ones", 1.5), "OCO307", ["integer", "`1.5`"]),
        (lambda: call("ones", X), "OCO307", ["integer", "`x` has shape [3]"]),
        (lambda: call("zeros", 0), "OCO308", ["at least 1"]),
        (lambda: call("range", 3, 1), "OCO308", ["3..1"]),
        (lambda: index(X, (constant(0), constant(0))), "OCO310", ["1 axis", "2 indices"]),
        (lambda: index(named("s"), (constant(0),)), "OCO310", ["no axes"]),
        (lambda: index(X, (constant(0.5),)), "OCO311", ["`0.5`"]),
        (lambda: index(X, (named("i"),)), "OCO311", ["`i`"]),
        (lambda: index(X, (constant(3),)), "OCO312", ["index 3", "0..2"]),
        (lambda: index(X, (constant(-1),)), "OCO312", ["index -1"]),
        (lambda: index(A, (constant(0), constant([0, 3]))), "OCO312", ["index 3"]),
        (lambda: index(X, (Slice(constant(1), constant(4)),)), "OCO313", ["1:4", "0:3"]),
        (lambda: index(X, (Slice(constant(2), constant(2)),)), "OCO313", ["2:2"]),
        (lambda: index(A, (constant([0, 1]), constant([0, 1, 2]))), "OCO314", ["do not pair"]),
        (lambda: array((X, B)), "OCO315", ["one shape"]),
        (lambda: array(()), "OCO315", ["at least one"]),
    ],
)
def test_errors_of_shapes_say_what_is_wrong(make, code: str, words: list[str]) -> None:
    with pytest.raises(OcoError) as caught:
        make()
    assert caught.value.code == code
    for word in words:
        assert word in caught.value.message


def test_hints_name_the_nearest_right_thing() -> None:
    def hint(*args: Expr | int, atom: str) -> str:
        with pytest.raises(OcoError) as caught:
            call(atom, *args)
        return caught.value.hint

    assert "A.T" in hint(A, B, atom="matmul")
    assert "@" in hint(A, named("c", 3, 4), atom="mul")
    assert "maximum(" in hint(X, 0, atom="max")
    assert "axis = 0" in hint(X, 0, atom="sum")


def test_lengths_may_be_names_of_params() -> None:
    n = Name("n", Kind.PARAM, integer=True)
    twice = call("ones", call("mul", 2, n))
    assert [str(d) for d in twice.shape] == ["2 * n"]
    assert str(call("range", 0, call("sub", n, 1)).shape[0]) == "n"
    assert evaluate(twice, {"n": 2}).tolist() == [1.0] * 4
    half = index(twice, (Slice(n, None),))
    assert str(half.shape[0]) == "n"
    assert evaluate(half, {"n": 3}).shape == (3,)
    with pytest.raises(OcoError, match="OCO301"):
        call("add", twice, Name("x", Kind.DECISION, shape=(5,)))


MIXED = [
    ((Slice(), constant([0, 1, 1])), np.s_[:, [0, 1, 1]]),
    ((constant([1, 0]), constant([0, 2])), np.s_[[1, 0], [0, 2]]),
    ((constant(1), Slice(constant(1), constant(3))), np.s_[1, 1:3]),
    ((Slice(constant(0), constant(1)), constant([2, 0]), Slice()), np.s_[0:1, [2, 0], :]),
    ((constant([1, 0]), Slice(), constant([3, 2])), np.s_[[1, 0], :, [3, 2]]),
    ((constant(1), Slice(), constant([3, 2])), np.s_[1, :, [3, 2]]),
    ((constant(1), Slice(), constant(2)), np.s_[1, :, 2]),
    ((Slice(), constant([[0, 1], [2, 0]])), np.s_[:, [[0, 1], [2, 0]]]),
]


@pytest.mark.parametrize(("items", "place"), MIXED, ids=lambda p: str(p) if not isinstance(p, tuple) else "")
def test_indexing_is_numpys(items: tuple[Expr, ...], place: object) -> None:
    data = np.arange(24.0).reshape(2, 3, 4)
    base = Name("x", Kind.STREAM, shape=data.shape)
    node = index(base, items)
    assert node.shape == data[place].shape
    assert np.array_equal(evaluate(node, {"x": data}), data[place])
    bounds = enclose(node, {"x": point(data)})
    assert bounds.is_point
    assert np.array_equal(bounds.lo, data[place])


def test_ranges_of_an_unknown_index_are_the_hull() -> None:
    x, i = Name("x", Kind.STREAM, shape=(4,)), Name("i", Kind.STREAM, integer=True)
    bounds = enclose(index(x, (i,)), {"x": interval([0.0, 5, 1, 9], [1.0, 6, 2, 9]), "i": interval(1, 2)})
    assert (bounds.least, bounds.greatest) == (1, 6)


def test_whole_numbers_are_told_apart() -> None:
    i = Name("i", Kind.STREAM, shape=(3,), integer=True)
    assert call("add", i, 1).integer
    assert call("range", 0, 4).integer
    assert not call("add", i, 0.5).integer
    assert not call("div", i, 2).integer
    assert not call("mean", i).integer


def test_plain_numbers_in_brackets_are_one_constant() -> None:
    made = array((array((constant(1), constant(2))), array((constant(3), constant(4)))))
    assert isinstance(made, Constant)
    assert made.value.array.tolist() == [[1, 2], [3, 4]]
    assert made.integer


def test_a_box_of_a_million_entries_costs_two_numbers() -> None:
    x = Name("x", Kind.DECISION, shape=(10**6,))
    expr = call("sub", 2500, call("mul", 4, call("sum", call("log", call("add", 1, call("mul", 4, x))))))
    bounds = enclose(expr, {"x": interval(0, 1000, (10**6,))})
    assert bounds.greatest == 2500
    assert bounds.least == pytest.approx(2500 - 4e6 * np.log(4001), rel=1e-12)
