"""Learners: what they are given, and their saved states (OCO84x, OCO85x)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage

LEARNER: dict[str, Code] = {
    "OCO840": Code(
        "the inputs of a round have other names",
        "`observe` takes every stream of the model by its name, and nothing else.",
        "learner.observe(prise=3.0)",
        "Give each stream that the message names.",
        Stage.RUN,
    ),
    "OCO841": Code(
        "an input of a round does not hold numbers",
        "A stream is a number or an array of numbers.",
        'learner.observe(price="cheap")',
        "Convert the value to an array of floats.",
        Stage.RUN,
    ),
    "OCO842": Code(
        "an input of a round has another shape",
        "The shape of what `observe` is given is the shape of the stream in the model; nothing is stretched.",
        "learner.observe(price=[1.0, 2.0])",
        "Give an array of the shape that the message names.",
        Stage.RUN,
    ),
    "OCO843": Code(
        "an input of a round is not finite",
        "NaN and infinite numbers are never learned from: the learner stays as it was.",
        'learner.observe(price=float("nan"))',
        "Leave the round out, or fill the value before it is given.",
        Stage.RUN,
    ),
    "OCO844": Code(
        "an input of a round is not whole",
        "A stream declared with `in 0..k-1` takes whole numbers.",
        "learner.observe(user=1.5)",
        "Correct the value, or declare the stream with `in [lo, hi]`.",
        Stage.RUN,
    ),
    "OCO845": Code(
        "an input of a round is out of bounds",
        "Guarantees rest on the bounds that the model states, so the learner does not take a value outside them unless it is told to.",
        "learner.observe(price=-1051.0)",
        'Correct the data or the model\'s bounds, or make the learner with on_out_of_bounds="clip" or "accept".',
        Stage.RUN,
    ),
    "OCO846": Code(
        "the start does not fit",
        "`start` is an array for the model's decision, or a dict with an array for each of several decisions.",
        "plan.learner(start=[0.5])",
        "Give finite numbers in the shape of the decision.",
        Stage.RUN,
    ),
    "OCO847": Code(
        "feedback of another round",
        "A learner takes the feedback of the round that it is in, once.",
        "learner.update(feedback_of_yesterday)",
        "Give each round's feedback once, in order.",
        Stage.RUN,
    ),
    "OCO848": Code(
        "no such rule for data out of bounds",
        'What a learner does with data outside the model\'s bounds is one of "error", "clip" and "accept".',
        'plan.learner(on_out_of_bounds="ignore")',
        "Choose one of the three.",
        Stage.RUN,
    ),
    "OCO849": Code(
        "the given draws do not fit",
        "`draws` holds the random arrays of an algorithm by name, with the round first, for every round that is played.",
        'plan.learner(draws={"noise": numpy.zeros((5, 3))})',
        "Give arrays of the shape that the message names, or a seed instead.",
        Stage.RUN,
    ),
    "OCO850": Code(
        "the saved state is damaged or foreign",
        "A saved state has a version and a checksum. One that was cut, changed, or made by something else gives no learner.",
        'oco.restore("notes.txt")',
        "Take the last whole file.",
        Stage.RUN,
    ),
    "OCO851": Code(
        "the saved state belongs to another program",
        "The model and settings that were saved give another program now, as after an upgrade, so the state cannot go on bit for bit.",
        'oco.restore("state_of_an_older_version")',
        "Restore it with the version that saved it, or start anew from its decision.",
        Stage.RUN,
    ),
    "OCO852": Code(
        "the fleet cannot be made",
        "A fleet has at least one learner; starts and seeds are one for all or one for each.",
        "plan.fleet(0)",
        "Give a positive number of learners, and as many seeds.",
        Stage.RUN,
    ),
}
