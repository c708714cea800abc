"""Files and the command line (OCO9xx)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage

FILES: dict[str, Code] = {
    "OCO901": Code(
        "a file cannot be read",
        "The operating system refused: the file is not there, or it may not be read, or it is a folder.",
        "oco check no_such_model.oco",
        "Check the name and the folder; paths are relative to where the command runs.",
        Stage.COMMAND,
    ),
    "OCO902": Code(
        "a model file is not text",
        "Model files are text in UTF-8. This file holds bytes that are not.",
        "oco check picture.oco",
        "Save the file as UTF-8 text.",
        Stage.COMMAND,
    ),
    "OCO903": Code(
        "a file cannot be written",
        "The folder is not there or may not be written to, or the disk is full. Nothing was written half.",
        "oco compile model.oco -o no_such_folder/learner.py",
        "Make the folder, or name another place with -o or --out.",
        Stage.COMMAND,
    ),
    "OCO905": Code(
        "a file is there already",
        "Commands do not overwrite files unless they are told to.",
        "oco new first && oco new first",
        "Name another file, or add --force.",
        Stage.COMMAND,
    ),
    "OCO906": Code(
        "a name that no model can have",
        "The name of a model starts with a letter and has letters, digits and _ only; so has its file.",
        'oco new "my model"',
        "Choose such a name: my_model.",
        Stage.COMMAND,
    ),
    "OCO907": Code(
        "there is no such code",
        "`oco help` without a code lists the codes of all errors and warnings.",
        "oco help OCO999",
        "Use a code from the list.",
        Stage.COMMAND,
    ),
    "OCO908": Code(
        "there is no such fact",
        "Facts are named by keys such as loss.lipschitz.l2 or constraints.LABEL.bound; `oco check` lists those of a model.",
        "oco check model.oco --why loss.lipshitz",
        "Use a key from the ledger.",
        Stage.COMMAND,
    ),
    "OCO909": Code(
        "no Ray cluster",
        "A table of runs goes to Ray where that is asked for: to the cluster at an address, or to one that is started on this machine. "
        "ray://HOST:PORT is the address of a Ray client server (port 10001, where nothing else was said).",
        "oco run model.oco --seeds 10 --engine ray://nowhere:10001",
        "`pip install ocolang[ray]`; see with `ray status` that the cluster is up; or leave --engine out: runs happen on this machine.",
        Stage.COMMAND,
    ),
    "OCO910": Code(
        "an output is an input",
        "A file that the command reads is never replaced by what it writes, not with --force either: the model, the data, and the files "
        "that the model names.",
        "oco compile model.oco -o model.oco --force",
        "Name another file with -o, or another folder with --out.",
        Stage.COMMAND,
    ),
    "OCO911": Code(
        "an extra is not installed",
        "`pip install ocolang` installs what `check`, `explain`, `compile` and `run` need. Plots, traces as files and tables of runs need "
        "more packages, which extras install: `plots`, `traces`, or `all`.",
        "oco run model.oco --out results",
        "Install the extra that the message names: pip install 'ocolang[all]'.",
        Stage.COMMAND,
    ),
    "OCO912": Code(
        "the `run:` line of a model",
        "A comment `# run: --data FILE` says on which rounds `oco run` and `oco data` work where the command line does not: a file beside "
        "the model, or `drawn`. It may have --map, --rounds and --on-missing too, and nothing that writes.",
        "oco run model.oco",
        "Write it as # run: --data prices.csv --map price=zone.* --rounds 500.",
        Stage.COMMAND,
    ),
    "OCO913": Code(
        "a misused command",
        "There is no such command or option, or an argument is missing or of another kind. The exit status is 2; with --json the message "
        "is a document on stdout too.",
        "oco check --json",
        "`oco --help` lists the commands, and `oco COMMAND --help` the options of one.",
        Stage.COMMAND,
    ),
}
