"""`oco verify-certificate`: add up the data of a run again, in exact arithmetic, and refuse a certificate that is not true."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oco.cli.options import Json
from oco.cli.output import say, show_json
from oco.cli.progress import working


def verify_certificate(
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE.json", help="As `oco run --out` writes it.")],
    trace: Annotated[Path, typer.Argument(metavar="TRACE.nc", help="The run that it is of, with data and decisions.")],
    as_json: Json = False,
) -> None:
    """Verify the certificate of a run in exact rational arithmetic; status 1 where it is refused.

    The losses and constraints of all rounds are added up again as fractions, and nothing that a learner or a search computed is trusted.
    """
    from oco.evaluation.certificate_file import read_certificate
    from oco.evaluation.load import load_trace
    from oco.evaluation.replay import require_data
    from oco.evaluation.verify_certificate import verify_certificate as verified

    content, run = read_certificate(certificate), load_trace(trace)
    require_data(run)
    with working(f"adding up {run.rounds:,} rounds", silent=as_json):
        bound = verified(content, run)
    if as_json:
        exact = {"loss": str(bound.loss), "least": str(bound.least), "regret": str(bound.regret)}
        show_json({"version": 1, "certificate": str(certificate), "verified": True, "exact": exact})
        return
    say(
        f"{certificate}: verified. The static regret of these {run.rounds:,} rounds is at most {float(bound.regret):.15g}"
    )
