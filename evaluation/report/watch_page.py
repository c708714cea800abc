"""Page of a running learner: it asks its server for the last rounds every second and draws them. It needs no other file."""

from __future__ import annotations

from oco.evaluation.report.html import page

_BODY = """\
<h1 id="title">Waiting for the first round</h1>
<p class="soft" id="about"></p>
<p class="warn" id="problem" role="status"></p>
<div class="gallery">
<figure><svg id="loss" viewBox="0 0 600 220" role="img" aria-label="loss of each round"></svg>
<figcaption>Loss of each of the last rounds</figcaption></figure>
<figure><svg id="violation" viewBox="0 0 600 220" role="img" aria-label="violation of each round"></svg>
<figcaption>Violation of each of the last rounds, all constraints added up</figcaption></figure>
</div>
<h2>Certificate</h2>
<p id="certificate"></p>
<h2>The last rounds</h2>
<div class="scroll"><table><thead><tr><th class="number">round</th><th class="number">loss</th><th class="number">violation</th>
<th>decision</th></tr></thead><tbody id="rounds"></tbody></table></div>
<h2>What is promised</h2>
<pre id="guarantee"></pre>
<div id="warnings"></div>
<style>#loss path, #violation path { fill: none; stroke: var(--blue); stroke-width: 1.5; } #violation path { stroke: var(--bad); }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; } svg line { stroke: var(--grid); }</style>
<script>
"use strict";
const byId = (id) => document.getElementById(id);
const say = (id, text) => { byId(id).textContent = text; };
const extreme = (x) => Math.abs(x) >= 1e6 || (x !== 0 && Math.abs(x) < 1e-3);
const short = (x) => extreme(x) ? x.toExponential(3) : x.toLocaleString("en", { maximumSignificantDigits: 5 });
const element = (name, values, text) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(values)) { made.setAttribute(key, value); }
  if (text !== undefined) { made.textContent = text; }
  return made;
};
function draw(id, rounds, values) {
  const low = Math.min(0, ...values), high = Math.max(...values, low + 1e-12);
  const x = (k) => 70 + 515 * (rounds.length > 1 ? k / (rounds.length - 1) : 0.5);
  const y = (v) => 190 - 170 * (v - low) / (high - low);
  const parts = [];
  for (const v of [low, (low + high) / 2, high]) {
    parts.push(element("line", { x1: 70, x2: 585, y1: y(v), y2: y(v) }));
    parts.push(element("text", { x: 62, y: y(v) + 4, "text-anchor": "end" }, short(v)));
  }
  parts.push(element("text", { x: 70, y: 212 }, "round " + rounds[0]));
  parts.push(element("text", { x: 585, y: 212, "text-anchor": "end" }, "round " + rounds[rounds.length - 1]));
  const path = values.map((v, k) => (k ? "L" : "M") + x(k).toFixed(1) + " " + y(v).toFixed(1)).join("");
  parts.push(element("path", { d: path }));
  byId(id).replaceChildren(...parts);
}
function row(round, names) {
  const made = document.createElement("tr");
  const entry = (n, x, k) => (names[n] ? names[n][k] + " " : "") + short(x);
  const decision = Object.entries(round.decision).map(
    ([n, v]) => n + " = " + v.map((x, k) => entry(n, x, k)).join(", ") + (v.length === 6 ? ", ..." : ""));
  const cells = [["round", round.round.toLocaleString("en")], ["loss", short(round.loss)],
                 ["violation", short(round.violation.reduce((a, b) => a + b, 0))], ["decision", decision.join("; ")]];
  for (const [label, text] of cells) {
    const cell = document.createElement("td");
    cell.textContent = text;
    cell.dataset.label = label;
    if (label !== "decision") { cell.className = "number"; }
    made.append(cell);
  }
  return made;
}
function certificate(state) {
  if (!state.certificate) { return "This learner keeps none: compile with certify=\\"static\\"."; }
  const c = state.certificate, n = c.rounds.toLocaleString("en");
  if (c.regret === null) { return "After " + n + " rounds: no fixed decision satisfied all constraints."; }
  const lost = "After " + n + " rounds the learner lost " + short(c.loss);
  const beside = c.regret < 0 ? "at least " + short(-c.regret) + " less than every" : "at most " + short(c.regret) + " more than the best";
  return lost + ", " + beside + " fixed decision" + (state.constraints.length ? " that satisfied the constraints." : ".");
}
function show(state) {
  say("problem", state.problem);
  if (!state.rounds.length) { return; }
  const last = state.rounds[state.rounds.length - 1].round, of = state.horizon ? " of " + state.horizon.toLocaleString("en") : "";
  say("title", state.model + ": round " + last.toLocaleString("en") + of);
  say("about", state.algorithm + ", journal in " + state.folder);
  const rounds = state.rounds.map((r) => r.round);
  draw("loss", rounds, state.rounds.map((r) => r.loss));
  draw("violation", rounds, state.rounds.map((r) => r.violation.reduce((a, b) => a + b, 0)));
  byId("rounds").replaceChildren(...state.rounds.slice(-20).reverse().map((r) => row(r, state.names)));
  say("certificate", certificate(state));
  say("guarantee", state.guarantee.join("\\n"));
  byId("warnings").replaceChildren(...state.warnings.map((text) => {
    const made = document.createElement("p");
    made.className = "warn";
    made.textContent = text;
    return made;
  }));
  document.body.dataset.round = last;
}
async function ask() {
  try {
    show(await (await fetch("rounds.json")).json());
  } catch (error) {
    say("problem", "The server of this page has ended: run oco watch again.");
  }
}
ask();
setInterval(ask, 1000);
</script>"""


def watch_page() -> str:
    """Page as HTML; all that it shows comes as JSON and is set as text."""
    return page("oco watch", [_BODY])
