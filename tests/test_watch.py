"""`oco watch`: the rounds of a learner in another process, on a page that a browser shows."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

import oco
from oco.cli import main
from oco.cli.watching import WatchServer
from oco.following import Follower

MODEL = """
model watched
horizon T = 500
decision x[3] in box(0, 1)
stream c[3] in [-1, 1]
minimize c @ x + sum_squares(x)
subject to
    side: sum(x) + c[0] <= 1 each round
using coldq with alpha = 2, epsilon = 1, gamma = 1
"""
PLAYER = """
import sys
import numpy as np
import oco
plan = oco.compile(oco.parse(sys.argv[2]), backend="numpy", certify="static")
rows = np.random.default_rng(2).uniform(-1, 1, (200, 3))
with oco.open(plan, sys.argv[1], snapshot_every=20) as learner:
    for line in sys.stdin:
        for _ in range(int(line)):
            learner.decide()
            learner.observe(c=rows[learner.round - 1])
        print(learner.round - 1, flush=True)
"""
BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


class Player:
    """Learner in another process that plays rounds when it is told to."""

    def __init__(self, folder: Path) -> None:
        words = [sys.executable, "-c", PLAYER, str(folder), MODEL]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def play(self, rounds: int) -> int:
        """Play so many rounds; the number of all that were played."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{rounds}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Player, Path]]:
    folder = tmp_path_factory.mktemp("journal")
    player = Player(folder)
    assert player.play(30) == 30
    yield player, folder
    assert player.process.stdin is not None
    player.process.stdin.close()
    assert player.process.wait(20) == 0


def reference(rounds: int) -> tuple[list[float], list[float], Any]:
    """Losses, violations and certificate of the same rounds in this process."""
    plan = oco.compile(oco.parse(MODEL), backend="numpy", certify="static")
    learner, rows = plan.learner(), np.random.default_rng(2).uniform(-1, 1, (200, 3))
    losses, violations = [], []
    for row in rows[:rounds]:
        learner.decide()
        feedback = learner.observe(c=row)
        losses.append(feedback.loss)
        violations.append(float(feedback.violation.sum()))
    return losses, violations, learner.certificate()


def test_a_running_learner_is_followed_and_left_alone(player: tuple[Player, Path]) -> None:
    playing, folder = player
    follower = Follower(folder)
    for more in (0, 1, 45):
        count = playing.play(more)
        state = follower.read()
        losses, violations, proof = reference(count)
        assert state["problem"] == "" and [r["round"] for r in state["rounds"]] == list(range(1, count + 1))
        np.testing.assert_array_equal([r["loss"] for r in state["rounds"]], losses)
        np.testing.assert_array_equal([sum(r["violation"]) for r in state["rounds"]], violations)
        assert state["certificate"] == {"rounds": count, "regret": proof.bound, "loss": proof.loss}
    assert state["model"] == "watched" and state["constraints"] == ["side"] and state["horizon"] == 500


def test_entries_of_an_index_have_their_names(tmp_path: Path) -> None:
    model = MODEL.replace("decision x[3]", "index site = [north, mid, south]\ndecision x[site]")
    plan = oco.compile(oco.parse(model), backend="numpy")
    with oco.open(plan, tmp_path) as learner:
        learner.decide()
        learner.observe(c=[0.1, 0.2, 0.3])
        state = Follower(tmp_path).read()
    assert list(state["names"]["x"]) == ["north", "mid", "south"] and len(state["rounds"][0]["decision"]["x"]) == 3


def test_folders_without_a_journal_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no journal in" in Follower(tmp_path).read()["problem"]
    assert main(["watch", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["rounds"] == []


@pytest.fixture
def served(player: tuple[Player, Path]) -> Iterator[str]:
    with WatchServer(Follower(player[1]), 0) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.address
        server.shutdown()
        thread.join()


def fetched(address: str, **headers: str) -> tuple[int, str, str]:
    """Status, policy and text of an address."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=10) as answer:
            return answer.status, answer.headers["Content-Security-Policy"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, "", ""


def test_the_page_is_for_this_machine_alone(served: str) -> None:
    status, policy, text = fetched(served)
    assert (
        status == 200
        and "default-src 'none'" in policy
        and "http" not in text.replace("http://www.w3.org/2000/svg", "")
    )
    assert served.startswith("http://127.0.0.1:")
    assert len(json.loads(fetched(f"{served}rounds.json")[2])["rounds"]) >= 30
    assert fetched(served, Host="evil.example")[0] == 403 and fetched(f"{served}../etc/passwd")[0] == 404


@pytest.mark.skipif(BROWSER is None, reason="no Chromium")
def test_a_browser_shows_the_last_rounds(served: str, player: tuple[Player, Path], tmp_path: Path) -> None:
    count = player[0].play(1)
    words = [str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    words += ["--virtual-time-budget=4000", "--dump-dom", served]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
    assert f"watched: round {count} of 500" in shown and f"After {count} rounds the learner lost" in shown
    assert shown.count("<tr>") == 21 and shown.count("<path ") == 2 and "coldq, journal in" in shown
