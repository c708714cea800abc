// Plays rounds with a learner in WebAssembly: a task as JSON on standard input, what came of it on standard output.
import { readFileSync } from "node:fs";

const task = JSON.parse(readFileSync(0, "utf8"));
const { load, Model, LearnerError } = await import(task.module);
const plain = (value) => JSON.parse(JSON.stringify(value, (_, v) => (ArrayBuffer.isView(v) ? Array.from(v) : v)));
const refused = (act) => {
  try {
    act();
  } catch (error) {
    return error instanceof LearnerError ? [error.code, error.message] : String(error);
  }
  return null;
};

const model = await load();
const half = Math.floor(task.rounds.length / 2);
const [learner, other] = [model.create(), model.create()];
const played = learner.run(task.rounds.slice(0, half));
const saved = learner.save();
const wrong = task.wrong.map((data) => refused(() => (learner.decide(data), learner.observe(data))));
const unchanged = plain(learner.save()).join() === plain(saved).join();
played.push(...learner.run(task.rounds.slice(half)));
other.restore(saved);
const again = other.run(task.rounds.slice(half));
const fresh = new Model(new WebAssembly.Module(readFileSync(new URL(task.module.replace(/mjs$/, "wasm"))))).create();
const late = [];
if (task.late) {
  for (const [k, data] of task.rounds.entries()) {
    fresh.decide(data);
    late.push(fresh.pending);
    if (k + 1 === task.late) {
      fresh.observe(data, { round: k + 1 });
      fresh.skip();
    } else if (fresh.pending.includes(k + 2 - task.late)) {
      fresh.observe(task.rounds[k + 1 - task.late]);
    }
  }
}
const results = {
  version: model.version,
  played: plain(played),
  again: plain(again),
  saved: plain(saved),
  wrong,
  unchanged,
  late,
  certificate: task.certificate ? plain(learner.certificate()) : refused(() => learner.certificate()),
  alarm: learner.alarm,
  damaged: refused(() => learner.restore(saved.slice(1))),
  started: task.start ? plain(model.create({ start: task.start }).decide(task.rounds[0])) : null,
};
process.stdout.write(JSON.stringify(results));
