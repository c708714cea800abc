"""Names of the algorithms and of their settings, for `using NAME with SETTING = formula`."""

from __future__ import annotations

SETTINGS: dict[str, tuple[str, ...]] = {
    "mirror-prox": ("V", "L_f", "L_g", "G", "H", "rho", "R", "nu", "eta", "gamma"),
    "mirror-descent": ("V", "alpha", "theta"),
    "projection-free": ("oracle", "Q", "K", "theta", "mu", "beta", "R", "D", "C_1", "C_2", "L", "k", "delta"),
    "meta-frank-wolfe": ("K", "theta", "mu", "delta", "R", "D", "beta"),
    "ofw-tvc": ("beta", "gamma", "G", "D", "guess", "rate"),
    "scofw-tvc": ("beta", "gamma", "alpha_f"),
    "bfw-tvc": ("beta", "gamma", "c", "K", "epsilon", "delta", "G", "D", "M", "r", "guess", "rate"),
    "scbfw-tvc": ("beta", "gamma", "alpha_f", "K", "L", "delta", "r", "center"),
    "coldq": ("alpha", "eta", "gamma", "epsilon", "V_x", "mu"),
    "coldq-expert": ("alpha", "eta", "gamma", "epsilon", "V_x", "mu", "M", "kappa"),
    "bgd": ("eta", "delta", "r", "baseline"),
    "tsallis-inf": ("c", "least", "range"),
    "response-surface": ("delta",),
    "two-point": ("eta", "delta", "r"),
    "ogd": ("eta",),
    "oeg": ("eta",),
    "ons": ("gamma", "D"),
    "optimistic": ("D",),
    "ofw": ("eta", "sigma"),
    "dpp": ("V", "alpha", "tighten"),
    "yu-neely": ("gamma", "alpha"),
    "mahdavi": ("eta", "delta", "weight"),
    "jenatton": ("R", "G", "b"),
    "recoo": ("alpha", "gamma", "eta"),
    "sinha-vaze": ("beta", "beta_g", "G", "D", "V", "rate", "alpha_f"),
    "double-queues": ("weight", "rate", "G", "L", "D", "epsilon", "gamma", "eta"),
    "distance-penalty": ("L", "D", "Q"),
    "clasp": ("eta", "Q"),
    "pfs": ("eta", "rho"),
    "nested": ("D", "eta", "Q", "window"),
    "pacing": ("c", "price", "eta", "season"),
    "hedged": ("penalty", "weight", "D", "Q", "season", "theta", "ahead"),
}

WORD_SETTINGS: dict[str, tuple[str, ...]] = {
    "oracle": ("ocg", "ospf", "orgfw", "sftrl"),
    "center": ("origin", "iterates"),
}
"""Settings whose value is a word, with the words."""

UNITS = "units"
UNIT_WORDS = ("user", "free")
"""Values of `units`: with `free` the settings are those of the problem scaled to be free of units; else they are in the user's own."""

FORMULA_FUNCTIONS: tuple[str, ...] = ("sqrt", "log", "exp", "min", "max", "floor", "ceiling", "abs")
FORMULA_SYMBOLS: tuple[str, ...] = ("t", "T", "m", "d")
