"""Files of a plan that run elsewhere, each made once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from oco.backends.capabilities import EXACT
from oco.backends.contract import Contract
from oco.backends.registry import backend as find_backend
from oco.backends.registry import built_files, parts_of, precision_called, registered, standalone_files
from oco.compiler.ir.program import Program
from oco.dsl.records import dataclass


@dataclass(frozen=True)
class PlanFiles:
    """Files of a program with its contract; backend and precision where none is asked for are those of the plan.

    made  texts by file name, by backend and precision, by a backend and "in parts", or by backend, precision and target
    """

    program: Program
    contract: Contract
    target: str | None
    precision: str
    made: dict[tuple[str | None, ...], dict[str, Any]] = field(default_factory=dict)

    def texts(self, backend: str | None, precision: str | None) -> dict[str, str]:
        """Texts of the files by name. Raises what `Plan.files` raises."""
        name = find_backend(backend or self.target).name
        own = self.precision if self.precision in registered(name).precisions else None
        key = name, precision or own
        if key not in self.made:
            self.made[key] = standalone_files(name, self.program, self.contract, key[1])
        return dict(self.made[key])

    def placed(
        self, path: Path, backend: str | None, precision: str | None, target: str | None
    ) -> Mapping[Path, str | bytes]:
        """Contents of the files that `Plan.write` puts at `path`, by their places. Raises what `Plan.write` raises of them."""
        if target is not None:
            key = backend, precision or self.precision, target
            if key not in self.made:
                self.made[key] = built_files(backend, self.program, self.contract, target, key[1])
            return {path / file: content for file, content in self.made[key].items()}
        name = find_backend(backend or self.target).name
        in_parts = registered(name).parts and not path.suffix and precision_called(precision) in (None, EXACT)
        files = self._in_parts(name) if in_parts else self.texts(name, precision)
        return dict.fromkeys([path], *files.values()) if len(files) == 1 else {path / f: files[f] for f in files}

    def _in_parts(self, backend: str) -> dict[str, str]:
        """Texts of the modules of a backend that writes its one module in parts."""
        key = backend, "in parts"
        if key not in self.made:
            self.made[key] = parts_of(backend, self.program, self.contract)
        return self.made[key]
