// The page: an editor with the model, and the run of its learner beside rules of practice, its facts and its plan.
import { StreamLanguage, syntaxHighlighting, HighlightStyle } from "@codemirror/language";
import { tags } from "@lezer/highlight";
import { basicSetup, EditorView } from "codemirror";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { oco } from "../../../editors/codemirror/oco.mjs";
import { listed, mapped, moved, row, stacked, summed, unpacked, violation } from "./series.mjs";

const COLORS = ["#4c6ef5", "#e8590c", "#2b8a3e", "#ae3ec9", "#0b7285", "#c92a2a", "#868e96", "#b08800"];
const RUNS = ["losses", "violations"]; // plots whose lines have their colors in the table
const PAUSE = 60; // milliseconds in which a control has to stand still
const SHOWN = 8; // entries of a decision or stream in a plot
const element = (id) => document.getElementById(id);
const settings = await (await fetch("settings.json")).json();
const view = { example: null, text: "", shown: null, learners: null };

// The model.

const colors = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier], color: "var(--accent)", fontWeight: "600" },
  { tag: tags.comment, color: "var(--soft)", fontStyle: "italic" },
  { tag: tags.number, color: "#b35900" },
  { tag: tags.invalid, color: "#c62828" },
]);
const editor = new EditorView({
  parent: element("editor"),
  extensions: [
    basicSetup,
    StreamLanguage.define(oco),
    syntaxHighlighting(colors),
    EditorView.contentAttributes.of({ "aria-label": "Text of the model" }),
    EditorView.updateListener.of(({ docChanged }) => docChanged && compared()),
  ],
});

const written = () => editor.state.doc.toString();

function replaced(text) {
  editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: text } });
}

/** Offers what can be done with a changed model. */
function compared() {
  const changed = written() !== view.text;
  element("check").disabled = !changed;
  element("reset").disabled = written() === view.example?.text;
  showStatus(changed && view.text ? "The results are those of the model before your changes." : "");
}

function showStatus(message, error = false) {
  element("status").textContent = message;
  element("status").className = error ? "error" : "";
}

// What is shown of it.

async function opened(name) {
  showStatus(`Loading ${name} ...`);
  const [example, binding] = await Promise.all([
    fetch(`examples/${name}.json`).then((response) => response.json()),
    import(new URL(`examples/${name}/${name}.mjs`, document.baseURI).href),
  ]);
  view.example = example;
  view.learners = await binding.load();
  history.replaceState(null, "", `#${name}`);
  examined(example.text, example);
  replaced(example.text);
  compared();
}

/** Shows the results of a model. */
function examined(text, values) {
  view.text = text;
  element("facts").innerHTML = values.facts;
  element("plan").innerHTML = values.plan ?? "There is no plan for this model.";
  view.shown = values.streams && {
    rounds: values.rounds,
    timings: values.timings,
    entries: values.entries,
    streams: mapped(values.streams, unpacked),
    ranges: mapped(values.ranges, (ends) => ends.map(unpacked)),
    decisions: mapped(values.learner.decisions, unpacked),
    runs: [{ ...values.learner, name: `the learner (${values.algorithm})` }, ...values.rules].map((result) => ({
      name: result.name,
      loss: unpacked(result.loss),
      constraints: unpacked(result.constraints),
    })),
  };
  element("run").hidden = !view.shown || selectedTab().id !== "tab-run";
  if (view.shown) {
    prepared();
    played();
  }
}

/** Sets the controls for the data of the run. */
function prepared() {
  const { streams, ranges, rounds } = view.shown;
  const finite = ([low, high]) => [...low.numbers, ...high.numbers].every(Number.isFinite);
  const names = Object.keys(streams).filter((name) => ranges[name] && finite(ranges[name]));
  element("stream").replaceChildren(...names.map((name) => new Option(name)));
  element("since").max = rounds;
  element("since").value = Math.ceil(rounds / 2);
  element("percent").value = 0;
  element("shift").disabled = !view.learners || view.text !== view.example.text || !names.length;
}

/** Data as the controls move it; null where they leave it as it is. */
function shifted() {
  const { streams, ranges } = view.shown;
  const share = element("percent").valueAsNumber / 100;
  const name = element("stream").value;
  element("by").textContent = Math.round(100 * share);
  element("from").textContent = element("since").value;
  return share && name ? { ...streams, [name]: moved(streams[name], ranges[name], share, element("since").valueAsNumber) } : null;
}

/** Run of the learner in WebAssembly on these data. */
function run(streams) {
  const given = Array.from({ length: view.shown.rounds }, (_, t) => mapped(streams, (stream) => row(stream, t)));
  const began = performance.now();
  const rounds = view.learners.create().run(given);
  const seconds = (performance.now() - began) / 1000;
  return {
    seconds,
    loss: stacked(rounds.map(({ loss }) => [loss])),
    constraints: stacked(rounds.map(({ constraints }) => constraints)),
    decisions: mapped(rounds[0].decision, (_, name) => stacked(rounds.map(({ decision }) => listed(decision[name])))),
  };
}

/** Plays the learner where it is compiled, and draws the run. */
function played() {
  const data = shifted();
  const compiled = view.learners && view.text === view.example.text;
  let { runs, decisions } = view.shown;
  let seconds;
  if (compiled) {
    const result = run(data ?? view.shown.streams);
    ({ seconds, decisions } = result);
    runs = [{ ...runs[0], ...result }, ...(data ? [] : runs.slice(1))];
  }
  const measured = runs.map(({ name, loss, constraints }) => ({
    name,
    losses: summed(loss.numbers),
    ...violation(constraints, view.shown.timings),
  }));
  totals(measured, data, seconds);
  plotted("losses", measured.map(({ name, losses }) => [name, losses]));
  plotted("violations", measured.map(({ name, total }) => [name, total]));
  plotted("decisions", Object.entries(decisions).flatMap(([name, array]) => entries(name, array)));
  const name = element("stream").value || Object.keys(view.shown.streams)[0];
  element("shown").textContent = name ?? "none";
  plotted("data", name ? entries(name, (data ?? view.shown.streams)[name]) : []);
  window.playground = { reference: view.shown, measured, decisions, runs };
}

let waiting;

/** Plays once a control stands still: rounds of some learners take longer than it moves by. */
function playedSoon() {
  shifted();
  window.playground = undefined;
  clearTimeout(waiting);
  waiting = setTimeout(played, PAUSE);
}

/** Series of the first entries of an array with the round first. */
function entries(name, { shape, numbers }) {
  const size = numbers.length / shape[0];
  return Array.from({ length: Math.min(size, SHOWN) }, (_, i) => [
    view.shown.entries[name][i],
    Float64Array.from({ length: shape[0] }, (_, t) => numbers[t * size + i]),
  ]);
}

/** Texts of numbers in a format; of tiny ones, as rounding leaves them, in powers of ten. */
const texts = (format) => (number) =>
  number === 0 || Math.abs(number) >= 1e-4 ? format.format(number) : number.toExponential(1);
const digits = texts(new Intl.NumberFormat("en", { maximumSignificantDigits: 6 }));
const compact = texts(new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 }));

/** Table of the learner and the rules, and what it comes to in words. */
function totals(measured, data, seconds) {
  const cells = measured.map(({ name, losses, total, broken }) => [
    name,
    digits(losses.at(-1)),
    digits(total.at(-1)),
    String(broken),
  ]);
  const rows = cells.map((texts, i) => {
    const line = document.createElement("tr");
    line.className = i ? "" : "learner";
    line.append(...texts.map((text) => Object.assign(document.createElement("td"), { textContent: text })));
    line.firstChild.prepend(Object.assign(document.createElement("i"), { style: `background: ${COLORS[i]}` }));
    return line;
  });
  document.querySelector("#totals tbody").replaceChildren(...rows);
  const rounds = view.shown.rounds;
  const speed = seconds ? `${rounds} rounds took ${(1e3 * seconds).toFixed(1)} ms in this page. ` : `${rounds} rounds. `;
  const beside = data ? "The rules were played on the data as it was, and are not shown." : "";
  element("verdict").textContent = speed + beside;
}

// Plots.

const plots = {};

function plotted(id, series) {
  plots[id]?.destroy();
  const style = getComputedStyle(document.documentElement);
  const axis = { stroke: style.getPropertyValue("--soft"), grid: { stroke: style.getPropertyValue("--line"), width: 0.5 } };
  const values = (_, ticks) => ticks.map(compact);
  const place = element(id);
  const rounds = Float64Array.from({ length: view.shown.rounds }, (_, t) => t + 1);
  const lines = series.map(([label], i) => ({ label, stroke: COLORS[i % COLORS.length], width: i || !RUNS.includes(id) ? 1 : 2 }));
  const options = {
    ...fitting(place),
    scales: { x: { time: false }, y: { range: (_, low, high) => (low === high ? [low, low + 1] : uPlot.rangeNum(low, high, 0.1, true)) } },
    axes: [axis, { ...axis, size: 60, values }],
    series: [{ label: "round" }, ...lines],
    legend: { show: series.length > 1 && !RUNS.includes(id), live: false },
  };
  plots[id] = new uPlot(options, [rounds, ...series.map(([, values]) => values)], place);
}

const fitting = (place) => ({ width: place.clientWidth || 320, height: 200 });

/** Gives plots the width of their places. */
function fitted() {
  for (const [id, plot] of Object.entries(plots)) {
    plot.setSize(fitting(element(id)));
  }
}

// Changed models, in Python.

let worker;

function checked() {
  showStatus(worker ? "Checking ..." : "Loading Python, some 30 MB at the first time ...");
  element("check").disabled = true;
  worker ??= new Worker(new URL("live_worker.mjs", document.baseURI), { type: "module" });
  const text = written();
  worker.onmessage = ({ data: { values, unavailable } }) => {
    element("check").disabled = false;
    if (unavailable) {
      showStatus(`Python cannot be loaded here: ${unavailable}\nIn a terminal: pip install ocolang, then oco check model.oco`, true);
      return;
    }
    if (values.facts) {
      examined(text, values);
      compared();
    }
    showStatus(values.error ?? "Checked and run on drawn data.", Boolean(values.error));
  };
  worker.postMessage({ text, settings });
}

// Controls.

const selectedTab = () => document.querySelector('[role="tab"][aria-selected="true"]');
const tabs = [...document.querySelectorAll('[role="tab"]')];

function selected(tab) {
  for (const other of tabs) {
    other.setAttribute("aria-selected", other === tab);
    other.tabIndex = other === tab ? 0 : -1;
    element(other.getAttribute("aria-controls")).hidden = other !== tab || (tab.id === "tab-run" && !view.shown);
  }
  fitted(); // those that were drawn while their panel was hidden
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => selected(tab));
  tab.addEventListener("keydown", ({ key }) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (step) {
      const next = tabs[(i + step + tabs.length) % tabs.length];
      selected(next);
      next.focus();
    }
  });
}
for (const id of ["stream", "percent", "since"]) {
  element(id).addEventListener("input", playedSoon);
}
element("check").addEventListener("click", checked);
element("reset").addEventListener("click", () => {
  replaced(view.example.text);
  examined(view.example.text, view.example);
  compared();
});
element("examples").append(...settings.examples.map((name) => new Option(name.replaceAll("_", " "), name)));
element("examples").addEventListener("change", ({ target }) => opened(target.value));
addEventListener("resize", fitted);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.shown && played());
const first = settings.examples.includes(location.hash.slice(1)) ? location.hash.slice(1) : settings.examples[0];
element("examples").value = first;
opened(first);
