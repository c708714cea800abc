"""Names that users of CVXPY and other modelers expect, each with the line to write here."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar

from oco.dsl.atoms import ATOMS
from oco.dsl.caller import caller_span, is_ours
from oco.dsl.diagnostics import Diagnostic, OcoError
from oco.dsl.suggest import did_you_mean

OF_PACKAGE: Mapping[str, str] = {
    "Variable": 'a decision belongs to a model: `m = oco.Model("shop", horizon=1000)`, then `x = m.decision("x", 3, domain=oco.box(0, 1))`',
    "Parameter": 'fixed data are `m.param("A", A)`, data of each round `m.stream("p", 3, bounds=(0, 1))`',
    "Constant": 'fixed data are `m.param("A", A)`',
    "Minimize": "write `m.minimize(loss)` on a model `m`",
    "Maximize": "write `m.maximize(gain)` on a model `m`",
    "Problem": 'write `m = oco.Model("shop", horizon=1000)`, then `m.minimize(...)` and `m.subject_to(...)`',
    "solve": "an online problem is played, not solved: `plan = oco.compile(m)`, then `plan.run(data)`",
    "run": "write `oco.compile(m).run(data)`",
}
OF_MODEL: Mapping[str, str] = {
    "solve": "an online problem is played, not solved: `plan = oco.compile(m)`, then `plan.run(data)`",
    "run": "write `oco.compile(m).run(data)`",
    "compile": "write `oco.compile(m)`",
    "check": "write `oco.check(m)`",
    "learner": "write `oco.compile(m).learner()`",
    "variable": 'write `m.decision("x", 3, domain=oco.box(0, 1))`',
    "add_constraint": "write `m.subject_to(x <= 1)`",
    "constraint": "write `m.subject_to(x <= 1)`",
    "objective": "write `m.minimize(loss)`",
    "value": "losses are those of a run: `oco.compile(m).run(data).loss`",
}
OF_TERM: Mapping[str, str] = {
    "value": "it has one in a run: `plan.learner().decide()`, or `plan.run(data).decisions`",
    "dot": "write `a @ x`",
    "transpose": "write `x.T`",
    "reshape": "write `oco.reshape(x, rows, columns)`" if "reshape" in ATOMS else "index it: `x[0:3]`",
    "flatten": "`oco.sum`, `oco.norm2` and the like take every shape",
}
_ROUND = "a round is `x = learner.decide()`, then `learner.observe(price=p, demand=d)`"
_PLAYED = "an online problem is played, not solved: `plan.run(data)`, or round by round with `learner = plan.learner()`"
_LOSS = "losses are those of a run: `plan.run(data).loss`"
OF_PLAN: Mapping[str, str] = {
    **dict.fromkeys(("solve", "optimize", "fit", "play", "simulate"), _PLAYED),
    **dict.fromkeys(("decide", "predict", "observe", "update", "step"), f"{_ROUND}, where `learner = plan.learner()`"),
    **dict.fromkeys(("value", "loss", "losses", "regret"), _LOSS),
    "status": "`plan.facts` are what is proved, `plan.guarantee` what is promised",
    "compile": "it is compiled: `plan.learner()`, or `plan.write(path)` for a module",
    "save": "write `plan.write(path)` for a module; what is saved of a learner is `learner.save(path)`",
    "tune": "write `oco.tune(m, data).plan`",
}
"""Line to write for a name that users expect of a plan."""
OF_LEARNER: Mapping[str, str] = {
    **dict.fromkeys(
        ("predict", "act", "select", "choose", "next", "step", "fit", "partial_fit", "learn", "receive"), _ROUND
    ),
    **dict.fromkeys(("run", "solve", "play", "simulate"), "many rounds at once are a run: `plan.run(data)`"),
    **dict.fromkeys(("loss", "losses"), "write `learner.observe(...).loss`, or `plan.run(data).loss` for all rounds"),
    **dict.fromkeys(("violation", "violations"), "write `learner.observe(...).violation`"),
    "regret": "write `plan.run(data).regret()`",
    "reset": "a learner from the first round is `plan.learner()`",
    "load": "write `oco.restore(path)`",
    "t": "write `learner.round`",
}
"""Line to write for a name that users expect of a learner or a fleet."""
OF_TRACE: Mapping[str, str] = {
    "losses": "write `trace.loss`, an array with an entry a round",
    **dict.fromkeys(
        ("cumulative_loss", "total_loss", "value"),
        "write `trace.loss.cumsum()`, `trace.loss.sum()` or `trace.summary()`",
    ),
    **dict.fromkeys(("regrets", "cumulative_regret"), "write `trace.regret(prefix=True)`, an entry a round"),
    "violations": "write `trace.violation()`, or `trace.constraints`, an entry a round",
    **dict.fromkeys(("x", "actions", "predictions"), "write `trace.decisions`"),
    **dict.fromkeys(("to_pandas", "to_csv", "df"), "write `trace.to_dataframe()`"),
    "to_xarray": "write `trace.to_dataset()`",
    "show": "write `trace.plot()`",
    "T": "write `trace.rounds`",
}
"""Line to write for a name that users expect of a run."""
MODELERS = ("cvxpy", "pandas", "polars", "scipy", "math")
"""Packages whose functions are called on expressions of a model by mistake."""
RENAMED = {"norm": "norm2", "pnorm": "norm_p", "tv": "norm1", "sum_entries": "sum", "matmul": "`@`", "multiply": "`*`"}


class NoSuchName(OcoError, AttributeError):
    """Error for a name that an object does not have: `hasattr` is False, and the message has the line to write."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        OcoError.__init__(self, *diagnostics)


class Suggesting:
    """Object of which a name that it lacks raises OCO530 with the line to write.

    _known_as  the object in messages, with its article
    _lines     to write, by name
    """

    _known_as: ClassVar[str]
    _lines: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # type checkers name what is absent themselves

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("_") and hasattr(
                type(self), name
            ):  # a property that raised AttributeError, which stands
                return object.__getattribute__(self, name)
            raise no_such_name(self._known_as, name, self._lines, dir(self))


def no_such_name(owner: str, name: str, lines: Mapping[str, str], there: Iterable[str]) -> AttributeError:
    """Error for an attribute that is not there. Names that begin with `_` are asked for by tools, and get a plain one."""
    if name.startswith("_"):
        return AttributeError(f"{owner} has no `{name}`")
    words = {key.lower(): line for key, line in lines.items()}
    hint = lines.get(name) or words.get(name.lower()) or did_you_mean(name, there, f"`dir` lists what {owner} has")
    return NoSuchName(Diagnostic("OCO530", f"{owner} has no `{name}`", caller_span(), hint))


def not_numbers() -> OcoError | None:
    """Error for a function of another package that wants the numbers of an expression; None where none of `MODELERS` asks."""
    package, function = _asking()
    if not package:
        return None
    name = RENAMED.get(function, function)
    if package in ("pandas", "polars"):
        hint = "write `table.to_numpy()` in place of the table"
    elif name in ATOMS:
        hint = f"write `oco.{name}(...)`"
    elif name.startswith("`"):
        hint = f"write {name}"
    elif function.capitalize() in OF_PACKAGE:
        hint = OF_PACKAGE[function.capitalize()]
    else:
        hint = unmixed(package)
    message = f"{package} takes numbers, and an expression of a model has no values yet"
    return OcoError(Diagnostic("OCO524", message, caller_span(), hint))


def unmixed(package: str) -> str:
    """Way out where an object of another package meets an expression."""
    return f"objects of {package} and of a model do not mix: declare all with `m.decision`, `m.param`, `m.stream`"


def no_relation(sign: str) -> OcoError:
    """Error for a comparison that is no constraint: `x < 1`, `x != 1`."""
    values = "for max, min and `if` write oco.maximum, oco.minimum and oco.pos, which need no values"
    hint = f"write `{sign}=`; {values}" if sign in ("<", ">") else ""
    message = f"a constraint is `<=`, `>=` or `==`; here it is `{sign}`"
    return OcoError(Diagnostic("OCO522", message, caller_span(), hint))


def _asking() -> tuple[str, str]:
    """Package and outermost function of `MODELERS` that is being called from the user's code; empty where there is none."""
    frame: FrameType | None = sys._getframe(1)
    package = function = ""
    while frame is not None and is_ours(frame):
        root = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if root in MODELERS:
            package, function = root, frame.f_code.co_qualname.removesuffix(".__init__").rpartition(".")[2]
        frame = frame.f_back
    return package, function.lower() if function != function.capitalize() else function
