"""Plans, algorithms, backends and settings (OCO7xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage

_CONSTRAINED = """model m
horizon T = 100
decision x[2] in box(0, 1)
stream c[2] in [-1, 1]
minimize c @ x
subject to
    cap: c @ x <= 0.5 each round
"""
_LOSS = "model m\nhorizon T = 100\ndecision x[2] in box(0, 1)\nstream c[2] in [-1, 1]\nminimize c @ x\n"

PLANS: dict[str, Code] = {
    "OCO704": Code(
        "nothing is guaranteed of the algorithm here",
        "The model names an algorithm whose theorem asks for more than the facts prove. The learner runs, without a guarantee.",
        _CONSTRAINED.replace("each round", "on average") + "using dpp\n",
        "Leave the choice to the compiler, or change the model: `oco explain` says what each algorithm lacks.",
        Stage.COMPILE,
    ),
    "OCO705": Code(
        "the algorithm cannot run on this model",
        "The rule needs what the model does not have: a kind of feedback or of constraint, or a step that can be solved exactly.",
        _LOSS + "using coldq\n",
        "Name another algorithm, or leave the choice to the compiler: `oco explain` says what each one needs.",
        Stage.COMPILE,
    ),
    "OCO706": Code(
        "a setting has no value",
        "The theorem computes a setting from a fact that nothing proves, and the model gives no formula in its place.",
        _LOSS.replace("in [-1, 1]", "iid") + "using ogd\n",
        "Give the setting: `using ogd with eta = 0.1`; or declare the fact with `assume`.",
        Stage.COMPILE,
    ),
    "OCO707": Code(
        "the settings are outside the theorem",
        "A given setting breaks a condition of the theorem, so that its guarantee does not hold.",
        _CONSTRAINED + "using coldq with alpha = 1 / t\n",
        "Choose a setting that the theorem allows, or run without the guarantee.",
        Stage.COMPILE,
    ),
    "OCO708": Code(
        "no algorithm applies",
        "Every algorithm was judged by its theorems, and each asks for something that the model does not have or that nothing proves.",
        _LOSS.replace(" in [-1, 1]", ""),
        "`oco explain` lists every reason, and the smallest change of the model that would make each algorithm apply.",
        Stage.COMPILE,
    ),
    "OCO709": Code(
        "no such kind of settings",
        'Settings are "optimal" (least guarantee), "unit-free" (the paper\'s constants on the problem without units), "tuned" (on pilot '
        'data), "paper" (as the theorem prints them), or formulas by name.',
        'oco.compile(model, settings="fast")',
        'Use settings="optimal", or give formulas: settings={"alpha": "2*sqrt(t)"}.',
        Stage.COMPILE,
    ),
    "OCO710": Code(
        "too few rounds to tune on",
        "Settings are searched on the first part of the rounds and judged on the part after it; both need some.",
        "oco tune model.oco --data three_rounds.csv",
        "Give more rounds; 40 are the least, and a few hundred say more.",
        Stage.COMPILE,
    ),
    "OCO711": Code(
        "nothing to tune",
        "The theorem of the algorithm leaves no constant free on this model, or all of them are given.",
        "oco tune model.oco --algorithm scbfw-tvc --set K=3",
        'Give fewer settings, or use settings="optimal".',
        Stage.COMPILE,
    ),
    "OCO712": Code(
        "a setting without effect",
        "The theorem that speaks for the algorithm on this model has no such setting, and its rule does not read it.",
        _CONSTRAINED + "using coldq with mu = 2\n",
        "Leave it out, or meet what the theorem that uses it asks for.",
        Stage.COMPILE,
    ),
    "OCO713": Code(
        "no frontier of guarantees",
        "A frontier needs numbers for the bounds of regret and violation, and a constant that the theorem leaves free.",
        "plan.plot_frontier()",
        "`oco explain` says which bounds have no number; another algorithm may have one.",
        Stage.COMPILE,
    ),
    "OCO714": Code(
        "given settings overflow",
        "With streams at the ends of their ranges, numbers of the algorithm pass 1.8e308 in the first or the last rounds, so no decision "
        "could be made there. Settings that are given by hand are tried on a few such rounds.",
        "model m\nhorizon T = 10\ndecision x[3] in simplex\nstream c[3] in [-1e200, 1e200]\nminimize c @ x\nusing oeg with eta = 1e250\n",
        "Give settings of another size, or leave them out: those that `oco` resolves fit the model's units.",
        Stage.COMPILE,
    ),
    "OCO715": Code(
        "a given setting is not positive",
        "The theorem asks for a positive number, such as a step size, a weight or a radius. With another sign the step would go uphill, "
        "or the problem that it solves would have no minimum; with zero it would have no unique one, or never move.",
        _CONSTRAINED + "using coldq with alpha = -1\n",
        "Give a formula that is positive in every round from 1 to T, or leave the setting out.",
        Stage.COMPILE,
    ),
    "OCO721": Code(
        "the formula of a setting is not usable",
        "A setting is a formula in t, T, d, params and facts, with + - * / ** and sqrt, log, exp, min, max, floor, ceiling, abs.",
        _LOSS + "using ogd with eta = 1 / sqrt(s)\n",
        "Use the names that the message lists, and functions of numbers.",
    ),
    "OCO722": Code(
        "a setting is not a finite number",
        "A formula of the settings has no finite value in some round of the horizon.",
        _CONSTRAINED + "using coldq with alpha = 1 / (t - 3)\n",
        "Write a formula that is a finite number for every t from 1 to T.",
        Stage.COMPILE,
    ),
    "OCO716": Code(
        "a tradeoff without effect",
        "`--tradeoff` says what violations count where the model states no penalty. Here each constraint has one, and they alone count.",
        "oco run model.oco --tradeoff 0.1",
        "Change the penalties in the model, or leave them out.",
        Stage.COMPILE,
    ),
    "OCO717": Code(
        "predictions without effect",
        "The model states predictions of streams, and the algorithm makes no use of predictions.",
        _LOSS.replace("minimize", "predict c = 0.5 * last(c)\nminimize") + "using ogd\n",
        "Choose an algorithm that takes predictions, or leave the lines out.",
        Stage.COMPILE,
    ),
    "OCO733": Code(
        "a backend that does not work on this machine",
        "A backend may need more than Python, such as a compiler, which is missing here or fails.",
        "oco run model.oco --backend c",
        "Install what the message names, or take another backend.",
        Stage.RUN,
    ),
    "OCO732": Code(
        "no such backend",
        "The backend of a plan is chosen by name.",
        'oco.compile(model, backend="fortran")',
        "Use one of the names that the message lists.",
        Stage.COMPILE,
    ),
    "OCO735": Code(
        "no certificate",
        "A certificate is made of sums of the losses and constraints as functions of the decision, and of linear minimisations over the "
        "domain that are exact. The message says what this model or this learner lacks for it.",
        'oco.compile(oco.load("blind_pricing.oco"), certify="static")',
        'Compile with certify="static" where learners are to keep one; write `feedback full`, and decide in a set of another kind.',
        Stage.COMPILE,
    ),
    "OCO736": Code(
        "no such certificate",
        "Certificates are of the static regret, or of the dynamic regret beside it.",
        'oco.compile(model, certify="adaptive")',
        'Write certify="static" or certify="dynamic".',
        Stage.COMPILE,
    ),
    "OCO737": Code(
        "a certificate that is refused",
        "Its data were added up again in exact arithmetic, and it claims what its point and multipliers do not prove, or it is damaged.",
        "oco verify-certificate certificate.json trace.nc",
        "Take the certificate and the trace of one run, as `oco run --out DIR` writes them.",
        Stage.RUN,
    ),
    "OCO738": Code(
        "no exact verification",
        "Certificates are verified exactly where losses are affine or quadratic, the worst data of each constraint say all of it, and "
        "decisions lie in boxes and simplices.",
        "oco verify-certificate certificate.json trace.nc",
        "`trace.certificate()` makes the certificate again in doubles, with an allowance for rounding.",
        Stage.RUN,
    ),
    "OCO870": Code(
        "no promise in Lean",
        "Guarantees are written in Lean for online gradient descent and `nested` with additive constraints over boxes, and for "
        "exponentiated gradient over a simplex, where gradients and constraints are rational functions of decisions and data in ranges. "
        "The message says what this plan has instead.",
        "oco prove tracking.oco --lean out.lean",
        "Compile with an algorithm of the family where it applies; `oco explain` has the guarantee and its derivation in any case.",
        Stage.COMMAND,
    ),
    "OCO871": Code(
        "a promise that is refused",
        "Its statements were evaluated in exact rational arithmetic, and one of them is false, does not follow from those before it, or is "
        "not what the model in the file gives.",
        "oco verify-promise out.lean",
        "Write the file again with `oco prove`.",
        Stage.COMMAND,
    ),
    "OCO872": Code(
        "streams that are not watched",
        "A learner watches the distributions, the means and the independence that the model states of its streams, as the rounds reveal "
        "them. The message says what is missing for it.",
        "oco.alert(oco.compile(oco.load('tracking.oco')), alpha=2)",
        "State a distribution with a range, or `iid mean = m`, and write `feedback full`.",
        Stage.RUN,
    ),
    "OCO873": Code(
        "operations that a backend does not have",
        "A backend writes each operation of an algorithm's step in its own language. The message names those that it has none for.",
        'oco.compile(model).learner(backend="jax")',
        "Leave the backend out, or name another algorithm.",
        Stage.COMPILE,
    ),
    "OCO874": Code(
        "a run that is not differentiated",
        "The cost of a run is differentiated in the constants that the theorem leaves free, over rounds played in one piece within "
        "the horizon. The message says what is missing for it.",
        'oco.compile(model).loss_of_settings(data, backend="numpy")',
        "Leave the backend out, give no more rounds than the horizon, and name settings that `oco explain` lists as free.",
        Stage.RUN,
    ),
    "OCO734": Code(
        "no files of this backend",
        "A backend may run learners here and yet write none that run without this package.",
        'oco.compile(model, backend="notebook_only").write("learner.py")',
        "Write the files with one of the backends that the message lists.",
        Stage.COMPILE,
    ),
    "OCO690": Code(
        "no such target",
        "A backend may compile learners for other platforms than this machine: C does for WebAssembly, `wasm`.",
        'oco.compile(model).write("learner", target="riscv")',
        "Name a target that the message lists, and no backend or the one that compiles for it.",
        Stage.COMPILE,
    ),
    "OCO691": Code(
        "no compiler for the target",
        "A target needs a compiler of its own: zig compiles C for WebAssembly, and comes as a package of Python.",
        "oco compile model.oco --target wasm",
        "Run `pip install ziglang`, or write the source with `--backend c` and compile it elsewhere.",
        Stage.RUN,
    ),
    "OCO692": Code(
        "the compiler for the target fails",
        "The compiler was called and made no module. The message has its last words: often its cache cannot be written.",
        "oco compile model.oco --target wasm",
        "Do what the message asks for, or install the compiler anew: `pip install --force-reinstall ziglang`.",
        Stage.RUN,
    ),
    "OCO740": Code(
        "no numbers of this precision",
        "Learners have the numbers of double, with every operation rounded on its own (exact); in C they may be rounded as is fast (fast). "
        "C in files may have shorter numbers (float32).",
        'oco.compile(model).write("learner.py", precision="float32")',
        "Take a backend and a precision that the message lists: `--backend c --precision float32`.",
        Stage.COMPILE,
    ),
}
