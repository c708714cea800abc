"""Verification in exact arithmetic: true certificates are accepted, and no corrupted one."""

import copy
import json
import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from thorough import thorough
from typer.testing import CliRunner

import oco
from oco.cli.app import app_for
from oco.compiler.certificates.rational import NotRational, exact_value, fractions
from oco.dsl.build import call
from oco.dsl.diagnostics import OcoError
from oco.dsl.expressions import Kind, Name, constant
from oco.evaluation.certificate_file import certificate_data, digest, read_certificate, write_certificate
from oco.evaluation.verify_certificate import verify_certificate

MODELS = {
    "affine": "minimize a @ x\nsubject to\n    cap: sum(x) <= 1 + b each round\n    mean: a @ x - 2 * b <= 1 on average\n",
    "bent": "minimize a @ x + sum(x)\nsubject to\n    need: 1 + b - 2 * sum(log(1 + x)) <= 0 each round\n",
    "quadratic": "minimize square(a @ x - b) + sum_squares(x - a)\nsubject to\n    cap: x[0] + b <= 1.5 each round\n",
}
HEAD = "model m\nhorizon T = 25\ndecision x[3] in box(0, 2)\nstream a[3] in [-1, 1]\nstream b in [0, 1]\n"


@cache
def run_of(name: str, seed: int = 0) -> Any:
    """Run of a model over uniform rounds."""
    rng = np.random.default_rng(seed)
    data = {"a": rng.uniform(-1, 1, (25, 3)), "b": rng.random(25)}
    return oco.compile(oco.parse(HEAD + MODELS[name])).run(data, backend="numpy")


@pytest.mark.parametrize("name", MODELS)
def test_accepts_what_is_true(name: str) -> None:
    """The exact bound is no more than the certificate's, and close to it."""
    trace = run_of(name)
    content = json.loads(json.dumps(certificate_data(trace)))
    exact = verify_certificate(content, trace)
    assert exact.regret <= Fraction(content["bound"])
    assert float(exact.regret) == pytest.approx(content["bound"], abs=1e-5)
    assert float(exact.loss) == pytest.approx(float(trace.loss.sum()), abs=1e-12)


def corrupted(content: dict[str, Any], rng: np.random.Generator, kind: int) -> dict[str, Any]:
    """Content with one false claim, and the digest of a forger who knows how it is made."""
    result = copy.deepcopy(content)
    size = float(rng.uniform(1e-3, 3.0)) * (1 + abs(content["bound"]))
    if kind == 0:  # a bound that is too good
        result["bound"] -= size
    elif kind == 1:  # others lost more than they did
        result["least"] += size
        result["bound"] -= size
    elif kind == 2:  # the losses were less than they were
        result["loss"] -= size
        result["bound"] -= size
    elif kind == 3:  # another multiplier proves less
        place = int(rng.integers(len(result["multipliers"])))
        result["multipliers"][place][1] = -abs(result["multipliers"][place][1]) - size
    elif kind == 4:  # another point proves less
        result["point"] = [v + s for v, s in zip(result["point"], rng.uniform(0.5, 2.0, len(result["point"])))]
        result["multipliers"] = [[label, value + size] for label, value in result["multipliers"]]
    elif kind == 5:  # of fewer rounds
        result["rounds"] = int(rng.integers(1, content["rounds"]))
    elif kind == 6:  # of other data
        result["data"] = "".join(rng.choice(list("0123456789abcdef"), 64))
    elif kind == 7:  # rounds that were broken are hidden
        result["broken"] = {label: count + int(rng.integers(1, 9)) for label, count in result["broken"].items()}
    elif kind == 8:  # numbers that are none
        result[str(rng.choice(["bound", "least", "loss", "rounding"]))] = float(
            rng.choice([math.inf, -math.inf, math.nan])
        )
    else:  # a part is missing
        del result[str(rng.choice(["point", "multipliers", "rounds", "data", "model", "bound"]))]
    result.pop("digest")
    return result | {"digest": digest(result)}


def with_another_digit(text: str, rng: np.random.Generator) -> dict[str, object]:
    """Content of a file in which one digit is another one."""
    at = int(rng.choice([i for i, c in enumerate(text) if c.isdigit()]))
    result: dict[str, object] = json.loads(
        text[:at] + str((int(text[at]) + int(rng.integers(1, 10))) % 10) + text[at + 1 :]
    )
    return result


@pytest.mark.parametrize("corruptions", [200, thorough(1000)])
def test_refuses_corruptions(corruptions: int) -> None:
    """False claims under a right digest, and changes of single characters of the file: none is accepted."""
    rng, trace = np.random.default_rng(0), run_of("affine")
    content = json.loads(json.dumps(certificate_data(trace)))
    text, refused = json.dumps(content), 0
    for k in range(corruptions):
        if k % 10 < 4:
            wrong = content
            while wrong == content:  # the last digit of a number may be none of its bits
                wrong = with_another_digit(text, rng)
        else:
            wrong = corrupted(content, rng, k // 10 % 10)
        with pytest.raises(OcoError) as error:
            verify_certificate(wrong, trace)
        refused += error.value.code == "OCO737"
    assert refused == corruptions


def test_refuses_another_run() -> None:
    """The certificate of other data is refused."""
    with pytest.raises(OcoError) as error:
        verify_certificate(certificate_data(run_of("affine", 1)), run_of("affine", 0))
    assert error.value.code == "OCO737"


def test_says_what_it_cannot_add_up() -> None:
    """Linearised losses have no exact sums: OCO738, which is no refusal of the certificate."""
    text = "model m\nhorizon T = 9\ndecision x[3] in simplex\nstream a[3] in [0.5, 2]\nminimize -log(a @ x)\n"
    trace = oco.compile(oco.parse(text)).run({"a": np.random.default_rng(0).uniform(0.5, 2, (9, 3))})
    with pytest.raises(OcoError) as error:
        verify_certificate(certificate_data(trace), trace)
    assert error.value.code == "OCO738"


def test_command(tmp_path) -> None:
    """`oco verify-certificate` accepts the files of a run, and ends with status 1 for others."""
    trace = run_of("bent")
    trace.save(tmp_path / "trace.nc")
    write_certificate(trace, tmp_path / "certificate.json")
    words = ["verify-certificate", str(tmp_path / "certificate.json"), str(tmp_path / "trace.nc")]
    result = CliRunner().invoke(app_for(words), words)
    assert result.exit_code == 0 and "verified" in result.output
    content = read_certificate(tmp_path / "certificate.json")
    (tmp_path / "certificate.json").write_text(json.dumps({**content, "bound": content["bound"] - 1}))
    assert CliRunner().invoke(app_for(words), words).exit_code != 0


def test_fractions_are_exact() -> None:
    """Sums and products that doubles round; functions without fractions are named."""
    x = Name("x", Kind.STREAM, shape=(2,))
    value = exact_value(call("sum_squares", x), {"x": fractions([0.1, 1e-30])}, 1).item()
    assert value == Fraction(0.1) ** 2 + Fraction(1e-30) ** 2
    with pytest.raises(NotRational):
        exact_value(call("log", constant(2.0)), {}, 1)
