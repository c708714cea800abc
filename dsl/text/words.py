"""Words of the language, in one list for the scanner, the messages and the editor grammar."""

from __future__ import annotations

STATEMENT_WORDS: dict[str, str] = {
    "model": "model NAME",
    "horizon": "horizon T = 5000",
    "index": "index zone = [NYC, WEST]",
    "param": "param name[shape] = value",
    "decision": "decision x[shape] in DOMAIN",
    "stream": "stream name[shape] in [lo, hi]",
    "context": "context name[shape] in [lo, hi]",
    "state": "state name[shape] = expression in [lo, hi] start value",
    "predict": "predict name = expression",
    "let": "let name = expression",
    "minimize": "minimize expression",
    "maximize": "maximize expression",
    "subject": "subject to",
    "measure": "measure dynamic regret",
    "feedback": "feedback bandit",
    "assume": "assume slater.margin >= 0.5",
    "using": "using coldq with epsilon = 0.5",
}
"""Words that begin a statement, with the statement's form. They are reserved: nothing can be called so."""

OBJECTIVES = {"maximize": "minimize"}
"""Words of the statement with the objective beside the first of them."""

CONSTRAINT_FORM = "label: expression <= expression  each round"

CONTEXTUAL_WORDS = (
    "T",
    "average",
    "bandit",
    "delayed",
    "dynamic",
    "each",
    "full",
    "gradient",
    "iid",
    "in",
    "mean",
    "of",
    "on",
    "penalty",
    "regret",
    "round",
    "rounded",
    "rounds",
    "start",
    "static",
    "to",
    "total",
    "two_point",
    "unknown",
    "with",
)
"""Words that mean something in their place, and are ordinary names everywhere else."""

LATER_WORDS: dict[str, str] = {
    "prev": "the previous decision, as in `prev(x)`",
}
"""Functions of the language that are not atoms, with their meaning: they are followed by `(`, and nothing is called so."""

SYNONYMS: dict[str, str] = {
    "axis": "index",
    "set": "index",
    "constant": "param",
    "parameter": "param",
    "parameters": "param",
    "data": "param",
    "var": "decision",
    "variable": "decision",
    "variables": "decision",
    "random": "stream",
    "covariate": "context",
    "define": "let",
    "where": "let",
    "min": "minimize",
    "loss": "minimize",
    "cost": "minimize",
    "objective": "minimize",
    "max": "maximize",
    "argmax": "maximize",
    "gain": "maximize",
    "reward": "maximize",
    "profit": "maximize",
    "constraints": "subject",
    "st": "subject",
    "such": "subject",
    "goal": "measure",
    "observe": "feedback",
    "suppose": "assume",
    "use": "using",
    "rounds": "horizon",
    "name": "model",
}
"""Names of statements in other modeling languages, each with the nearest statement here."""


def shown(word: str) -> str:
    """Statement word as users know it."""
    return "subject to" if word == "subject" else word
