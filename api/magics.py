"""`%load_ext oco`: cells in the language. An error in the model points into the cell.

    %%oco scheduling
    model scheduling
    ...

defines the model `scheduling` in the notebook and shows it; the cell may leave out its `model` statement. Files that it
names are looked up in the folder of the notebook. A cell with an error removes the model that it defined before.
"""

from __future__ import annotations

import re
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING

from oco.dsl.diagnostics import fail
from oco.dsl.load import parse
from oco.dsl.model import Model

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Register the cell magic with an IPython shell."""

    def oco(line: str, cell: str) -> Model:
        """%%oco NAME: the cell is a model, and becomes the variable NAME. With an error in the cell there is no model NAME."""
        name = line.strip()
        if not name.isidentifier() or iskeyword(name):
            message = (
                f"`{name}` cannot be the name of a variable"
                if name
                else "the cell does not say what the model is to be called"
            )
            raise fail("OCO906", message, hint="write `%%oco scheduling` in the first line of the cell")
        if isinstance(shell.user_ns.get(name), Model):
            del shell.user_ns[name]  # a later cell must not go on with what an earlier version of this one said
        named = re.search(r"^\s*model\b", cell, re.M) or not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name)
        head = "" if named else f"model {name}"  # on the line of the magic, so that lines count from it
        model = parse(f"{head}\n{cell}", folder=Path.cwd(), name=f"cell {name}")
        shell.user_ns[name] = model
        return model

    shell.register_magic_function(oco, "cell", "oco")
