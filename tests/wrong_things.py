"""Wrong models and calls of a newcomer's first week, each with what was meant."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import oco

GOOD = """model shop
horizon T = 100
decision x[3] in box(0, 10)
stream price[3] in [0, 5]
stream demand in [0, 20]
minimize price @ x
subject to
    serve: demand - sum(x) <= 0  each round
"""


def changed(old: str, new: str) -> str:
    """Good model with one part replaced."""
    assert old in GOOD
    return GOOD.replace(old, new)


MODELS: dict[str, str] = {
    "an empty file": "",
    "no model line": changed("model shop\n", ""),
    "no horizon": changed("horizon T = 100\n", ""),
    "a horizon of zero": changed("T = 100", "T = 0"),
    "a horizon in words": changed("T = 100", "T = hundred"),
    "no domain": changed(" in box(0, 10)", ""),
    "a domain with one end": changed("box(0, 10)", "box(10)"),
    "a domain the wrong way round": changed("box(0, 10)", "box(10, 0)"),
    "a misspelt domain": changed("box(0, 10)", "bax(0, 10)"),
    "a stream without bounds": changed("stream price[3] in [0, 5]", "stream price[3]"),
    "bounds the wrong way round": changed("[0, 20]", "[20, 0]"),
    "a misspelt distribution": changed("stream demand in [0, 20]", "stream demand ~ poison(5) in [0, 20]"),
    "a misspelt stream": changed("price @ x", "prise @ x"),
    "shapes that do not fit": changed("price[3]", "price[4]"),
    "a loss that is a vector": changed("price @ x", "price * x"),
    "a product of decisions": changed("price @ x", "x[0] * x[1]"),
    "a concave loss": changed("price @ x", "0 - sum_squares(x)"),
    "a loss without the decision": changed("price @ x", "sum(price)"),
    "a convex profit to maximize": changed("minimize price @ x", "maximize price @ square(x)"),
    "two objectives": changed("minimize price @ x", "minimize price @ x\nminimize sum(x)"),
    "a strict inequality": changed("<= 0", "< 0"),
    "a condition": changed("demand - sum(x) <= 0", "if demand > 3: sum(x) >= 3"),
    "a timing that is none": changed("each round", "each hour"),
    "a misspelt word when it must hold": changed("each round", "every round"),
    "a constraint without a label": changed("serve: ", ""),
    "two constraints with one label": changed("each round\n", "each round\n    serve: sum(x) <= 9  each round\n"),
    "a constraint that nothing meets": changed("demand - sum(x) <= 0", "sum(x) >= 31"),
    "a concave constraint": changed("demand - sum(x) <= 0", "sqrt(sum(x)) - demand <= 0"),
    "an equality that bends": changed("demand - sum(x) <= 0", "sum_squares(x) == demand"),
    "an index past the end": changed("price @ x", "price @ x + x[3]"),
    "a name declared twice": changed("stream demand", "stream price in [0, 1]\nstream demand"),
    "a power with a caret": changed("price @ x", "price @ x + x[0]^2"),
    "a bracket that is not closed": changed("sum(x) <= 0", "sum(x <= 0"),
    "a decision of integers": changed("box(0, 10)", "box(0, 10), integer"),
    "the decision of the round before as a function": changed("demand - sum(x)", "sum(x) - sum(x(t-1))"),
    "the decision of the round before as an index": changed("demand - sum(x)", "x - x[t - 1]"),
    "another word for subject to": changed("subject to\n    serve: ", "where "),
    "a colon after subject to": changed("subject to", "subject to:"),
    "a chance constraint": changed("each round", "with probability 0.9"),
    "a set with the size in it": changed("box(0, 10)", "simplex(3, 10)"),
    "bounds as a comparison": changed("x[3] in box(0, 10)", "x[3] >= 0"),
    "an unknown algorithm": GOOD + "using adam\n",
    "an unknown setting": GOOD + "using coldq with lr = 0.1\n",
    "an equals sign after minimize": changed("minimize price", "minimize = price"),
    "braces of a sum": changed("price @ x", "sum{i in I} price[i] * x[i]"),
    "a loop over entries": changed("price @ x", "sum(price[i] * x[i] for i in 0..2)"),
    "for all in front of a constraint": changed("demand - sum(x) <= 0", "forall i: x[i] <= 1"),
    "a comma before the timing": changed("<= 0  each round", "<= 0, each round"),
    "an infinite bound": changed("[0, 20]", "[0, inf]"),
    "a function of a package": changed("price @ x", "np.sum(price * x)"),
    "a method": changed("sum(x)", "x.sum()"),
    "two domains": changed("box(0, 10)", "box(0, 10) and simplex(1)"),
    "a share of the rounds in other words": changed("each round", "with 95%"),
    "a file that is not there": changed("stream price[3]", 'param cost[3] = file("costs.csv")\nstream price[3]'),
}
"""Texts of models by what is wrong with them."""


def builder() -> tuple[Any, Any, Any]:
    """Model with a decision and a stream."""
    m = oco.Model("shop", horizon=100)
    return m, m.decision("x", 3, domain=oco.box(0, 10)), m.stream("price", 3, bounds=(0, 5))


def learner(**options: Any) -> Any:
    """Learner of the good model that has decided its first round."""
    result = oco.compile(oco.parse(GOOD), settings="paper", backend="numpy").learner(**options)
    result.decide()
    return result


ROUND = {"price": [1.0, 2.0, 3.0], "demand": 4.0}
CALLS: dict[str, Callable[[Path], Any]] = {
    "m.minimize twice": lambda p: (lambda m, x, c: (m.minimize(c @ x), m.minimize(c @ x)))(*builder()),
    "a decision without a domain": lambda p: oco.Model("shop", horizon=9).decision("x", 3),
    "a domain as a pair": lambda p: oco.Model("shop", horizon=9).decision("x", 3, domain=(0, 1)),
    "a horizon as a text": lambda p: oco.Model("shop", horizon="100"),
    "a constraint that is a number": lambda p: (lambda m, x, c: m.subject_to(3 <= 4))(*builder()),
    "a timing as a text": lambda p: (lambda m, x, c: m.subject_to(x <= 1, name="cap", each_round="on average"))(
        *builder()
    ),
    "shapes of arrays that do not fit": lambda p: (lambda m, x, c: m.minimize(np.ones(4) @ x))(*builder()),
    "compile before minimize": lambda p: oco.compile(builder()[0]),
    "compile of a text": lambda p: oco.compile(GOOD),
    "a misspelt backend": lambda p: oco.compile(oco.parse(GOOD), backend="numpi"),
    "a misspelt kind of settings": lambda p: oco.compile(oco.parse(GOOD), settings="best"),
    "a file that is not there to load": lambda p: oco.load(p / "shop.oco"),
    "a stream left out": lambda p: learner().observe(price=[1, 2, 3]),
    "a misspelt stream": lambda p: learner().observe(prices=[1, 2, 3], demand=4),
    "a stream given before the decision": lambda p: learner().decide(demand=4),
    "a stream too many": lambda p: learner().observe(**ROUND, weather=1),
    "a stream of another shape": lambda p: learner().observe(price=[1, 2], demand=4),
    "a word for a number": lambda p: learner().observe(price=["a", "b", "c"], demand=4),
    "a missing value": lambda p: learner().observe(price=[1, float("nan"), 3], demand=4),
    "a value out of bounds": lambda p: learner().observe(price=[1, 2, 9], demand=4),
    "a start outside the domain": lambda p: learner(start=[0, 0, 99]),
    "a round out of order": lambda p: learner().observe(**ROUND, round=5),
    "a certificate that was not asked for": lambda p: learner().certificate(),
    "a saved state that is none": lambda p: oco.restore(_written(p / "state", "hello")),
    "a run without a column": lambda p: _plan().run(_written(p / "d.csv", "price[0],price[1],price[2]\n1,2,3\n")),
    "a run with a missing cell": lambda p: _plan().run(_written(p / "d.csv", _HEAD + "1,2,,4\n1,2,3,4\n")),
    "a run with a word in a cell": lambda p: _plan().run(_written(p / "d.csv", _HEAD + "1,2,three,4\n")),
    "a run with values out of bounds": lambda p: _plan().run(_written(p / "d.csv", _HEAD + "1,2,3,44\n")),
    "a run over a file that is not there": lambda p: _plan().run(str(p / "none.csv")),
    "a run over an array without names": lambda p: _plan().run(np.ones((5, 4))),
    "a run over no rounds": lambda p: _plan().run({"price": np.ones((0, 3)), "demand": np.ones(0)}),
    "a run over more rounds than there are": lambda p: _plan().run(
        {"price": np.ones((5, 3)), "demand": np.ones(5)}, 50
    ),
    "a run over arrays of different lengths": lambda p: _plan().run({"price": np.ones((5, 3)), "demand": np.ones(4)}),
    "a run over columns by other names": lambda p: _plan().run(pd.DataFrame(np.ones((5, 4)), columns=list("abcd"))),
    "a run over a table with a gap": lambda p: _plan().run(
        pd.DataFrame([[1, 2, 3, 4], [1, 2, None, 4]], columns=_HEAD.strip().split(","))
    ),
    "a list observed": lambda p: learner().observe([1, 2, 3, 4]),
    "a trace that is none": lambda p: oco.load_trace(_written(p / "t.nc", "hello")),
    "a state that is not there": lambda p: oco.restore(p / "state_of_none"),
    "a measure that is none": lambda p: _plan().run({"price": np.ones((5, 3)), "demand": np.ones(5)}).regret("statc"),
    "a fleet of none": lambda p: _plan().fleet(0),
    "a plan written below a file": lambda p: (
        (p / "f").write_text("x") and _plan().write(p / "f" / "learner.py", "numpy")
    ),
}
"""Calls of Python by what is wrong with them."""
_HEAD = "price[0],price[1],price[2],demand\n"


def _plan() -> Any:
    return oco.compile(oco.parse(GOOD), settings="paper", backend="numpy")


def _written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


COMMANDS: dict[str, list[str]] = {
    "a model that is not there": ["check", "none.oco"],
    "data that are not there": ["run", "shop.oco", "--data", "none.csv"],
    "a fact that is not there": ["check", "shop.oco", "--why", "loss.lipshitz.l2"],
    "a file that is there already": ["compile", "shop.oco", "-o", "shop.oco"],
    "a misspelt command": ["chek", "shop.oco"],
    "an unknown code": ["help", "OCO1"],
}
"""Command lines by what is wrong with them."""
