"""Learners: what they are given, their saved states and their journals (OCO84x, OCO85x)."""

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
        "Give a number for each entry: three for `price[3]`, in brackets or an array, and one without brackets for `price`.",
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
        "A stream declared with `in 0..k-1` takes integers.",
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
    "OCO853": Code(
        "two threads use one learner at once",
        "Threads may take turns with a learner or a fleet. While one of them is within decide, observe or save, another waits for "
        "`timeout` seconds (none by default), then gets this error, and the learner stays as it was.",
        "threading.Thread(target=learner.decide).start(); learner.observe(price=3.0)",
        "Make calls wait for their turn with `learner.timeout = 5`; a round of two calls needs a lock of your own around both.",
        Stage.RUN,
    ),
    "OCO854": Code(
        "the journal or store is damaged or foreign",
        "Every record of a journal has a checksum. One that was changed, lost or made by something else stops the replay.",
        'oco.open(plan, "folder_of_something_else")',
        "Take the folder from a backup, or begin another one.",
        Stage.RUN,
    ),
    "OCO855": Code(
        "the journal or store is in use",
        "One learner at a time writes a journal: another one, of this process or of another, has it open.",
        'oco.open(plan, "journal") twice',
        "Close the other learner (`learner.close()`), or give this one a folder of its own.",
        Stage.RUN,
    ),
    "OCO856": Code(
        "this round was observed with other data",
        "A round that is in the journal may be given again, as after a crash, if it is the same round. Its data cannot change.",
        "learner.observe(price=4.0, round=7)",
        "Give the data that the round had, or go on with the round that the learner is in.",
        Stage.RUN,
    ),
    "OCO857": Code(
        "the journal replays to another decision",
        "The rounds of a journal, played again, must give the decisions that were recorded, bit for bit. They do not, as when the "
        "backend, the machine or the versions of oco and NumPy are others.",
        'oco.open(plan, "journal_of_another_machine")',
        "Open it with the backend that recorded it (backend=NAME, for a run --backend NAME), on the same machine and "
        "with the same versions, or begin another journal.",
        Stage.RUN,
    ),
    "OCO858": Code(
        "the journal or store cannot be written",
        "A decision and its data count once they are on the disk. They could not be put there, so the learner is as before the call.",
        "a full disk",
        "Make room, then give the round again.",
        Stage.RUN,
    ),
    "OCO859": Code(
        "a round ends in numbers that are not finite",
        "Settings and data are each finite, and what the algorithm makes of them is beyond the numbers that a computer holds (1.8e308), "
        "as when a step of 1e290 meets a gradient of 1e30. The learner stays in the round, as before the call.",
        "learner.observe(c=[1e300, -1e300])  # after `using ogd with eta = 1e20`",
        "Leave the settings to `oco`, give smaller ones, or state the streams in other units.",
        Stage.RUN,
    ),
    "OCO860": Code(
        "the context of a round is missing, or another one than before",
        "A `context` of the model is known before the decision: `decide` takes it by name, once a round. `observe` takes the others.",
        "learner.decide()",
        "Give every context of the model to `decide`: `learner.decide(load=7.0)`.",
        Stage.RUN,
    ),
    "OCO869": Code(
        "feedback that is late, early or given twice",
        "Under `delayed d` the feedback of round t is given by `observe(..., round=t)` before round t + d + 1 is decided, in any order; "
        "`skip(round=t)` says that it never comes.",
        "learner.observe(price=31.5, round=9)",
        "Give the rounds that the message lists, or skip them; `learner.pending` has the open ones.",
        Stage.RUN,
    ),
    "OCO550": Code(
        "a learner with open rounds is carried to another rule",
        "Under delayed feedback rounds are decided whose data are still to come. Another rule has decided nothing in them, and their "
        "data are of no use to it.",
        "oco.migrate(learner, longer)  # while `learner.pending` lists rounds",
        "Give the open rounds their feedback before, or `learner.skip(round=t)` them.",
        Stage.RUN,
    ),
    "OCO861": Code(
        "values by name that do not fit the index",
        "Where an axis is an `index`, the values of a round may come by name, in any order: as a dict, a series of pandas, an array of "
        "xarray with coordinates. Each name of the index has one value.",
        'learner.observe(price={"NYC": 31.5})',
        "Add the names that are listed as missing, and take out or correct those that the index does not have.",
        Stage.RUN,
    ),
    "OCO862": Code(
        "the state is of other decisions or streams",
        "A learner is carried to a plan whose horizon, settings, bounds or data changed. Decisions and streams must be the same in name "
        "and shape, since nothing else says what becomes of them.",
        'oco.migrate("state_of_ten_regions", plan_for_eleven)',
        "Begin anew with `plan.learner(start=...)`, from a decision of the shape that the plan has.",
        Stage.RUN,
    ),
    "OCO863": Code(
        "a round is observed before it was decided",
        "A learner takes the data of a round once `decide` has answered it: data that come twice, or before the decision that they judge, "
        "belong to another round. `decide` again in one round gives one decision.",
        "plan.learner().observe(price=3.0)",
        "Call `decide`, then `observe`, once each a round; threads with a lock of their own around both. `observe(..., round=t)` names the "
        "round, `skip()` leaves one out.",
        Stage.RUN,
    ),
}
