// Learners of NAME.wasm: `const model = await load()`, then `const learner = model.create()`. Needs nothing else.
// Arrays go in as sequences, nested or row by row, and come out as typed arrays, row by row.

// begin tables
const TABLES = {};
// end tables

const VIEWS = { d: Float64Array, f: Float32Array, q: BigInt64Array, b: Uint8Array };

/** Error for data that the learner refuses; `code` is what its function returned. The learner is as before. */
export class LearnerError extends Error {
  constructor(code, message) {
    super(message);
    this.name = "LearnerError";
    this.code = code;
  }
}

/** Number as a value of a kind. */
function converted(kind, value, name) {
  if (typeof value !== "number" && typeof value !== "bigint" && typeof value !== "boolean") {
    throw new LearnerError(0, `${name} holds ${typeof value === "string" ? "text" : String(value)}, not a number`);
  }
  if (kind !== "q") {
    return Number(value);
  }
  if (typeof value === "number" && !Number.isSafeInteger(value)) {
    throw new LearnerError(0, `${name} holds integers, not ${value}`);
  }
  return BigInt(value);
}

/** Numbers of a value, row by row. */
function flat(value) {
  if (ArrayBuffer.isView(value)) {
    return value;
  }
  return Array.isArray(value) ? value.flatMap((part) => Array.from(flat(part))) : [value];
}

/** An instance of the module. Its learners share it: one of them is in its memory, the others keep their bytes. */
class Machine {
  constructor(module) {
    this.exports = new WebAssembly.Instance(module, {}).exports;
    this.exports._initialize?.();
    this.resident = null;
    this.top = this.exports.__heap_base.value;
    const number = TABLES.number;
    const slots = (forms) => Object.entries(forms).map(([name, [kind, shape]]) => this.slot(name, kind, shape));
    const parts = {
      self: [this.slot("self", "b", [Number(this.call("sizeof"))])],
      state: [this.slot("state", "b", [TABLES.stateSize])],
      text: [this.slot("text", "b", [TABLES.errorSize])],
      rounds: [this.slot("rounds", "q", [TABLES.turns])],
      statement: [this.slot("statement", "b", [4])],
      decisions: slots(TABLES.decisions),
      context: slots(TABLES.context),
      inputs: slots(TABLES.inputs),
      draws: slots(TABLES.draws),
      certificate: slots(TABLES.certificate),
      values: [this.slot("loss", number, []), ...TABLES.values.map((count) => this.slot("values", number, [count]))],
    };
    const memory = this.exports.memory;
    memory.grow(Math.max(0, Math.ceil((this.top - memory.buffer.byteLength) / 65536)));
    for (const group of Object.values(parts)) {
      for (const slot of group) {
        slot.view = new VIEWS[slot.kind](memory.buffer, slot.place, slot.count);
      }
    }
    Object.assign(this, parts);
  }

  /** Space for an array, whose view is made once the memory has its size. */
  slot(name, kind, shape) {
    const count = shape.reduce((product, length) => product * length, 1);
    const place = Math.ceil(this.top / 8) * 8;
    this.top = place + VIEWS[kind].BYTES_PER_ELEMENT * Math.max(count, 1);
    return { name, kind, shape, count, place };
  }

  call(name, ...values) {
    return this.exports[`${TABLES.name}_${name}`](...values);
  }

  /** Arguments of a function: arrays by their places, numbers by value. */
  given(slots, values) {
    const missing = slots.filter(({ name }) => values?.[name] === undefined).map(({ name }) => name);
    if (missing.length) {
      throw new LearnerError(0, `nothing is given for ${missing.join(", ")}`);
    }
    return slots.map(({ name, kind, shape, count, place, view }) => {
      const numbers = flat(values[name]);
      if (numbers.length !== count) {
        throw new LearnerError(0, `${name} has ${count} entries, not ${numbers.length}`);
      }
      if (!shape.length) {
        return converted(kind, numbers[0], name);
      }
      for (let i = 0; i < count; ++i) {
        view[i] = converted(kind, numbers[i], name);
      }
      return place;
    });
  }

  /** Results that a function wrote, by name. */
  results(slots) {
    return Object.fromEntries(slots.map(({ name, shape, view }) => [name, shape.length ? view.slice() : view[0]]));
  }

  string(place) {
    const bytes = new Uint8Array(this.exports.memory.buffer);
    return new TextDecoder().decode(bytes.subarray(place, bytes.indexOf(0, place)));
  }

  error(code) {
    return this.string(this.call("error", BigInt(code), this.text[0].place));
  }

  checked(code) {
    if (code !== 0n) {
      throw new LearnerError(Number(code), this.error(code));
    }
  }
}

/** Learner that decides round by round: `decide()`, then `observe(...)` with the data that the round revealed. */
export class Learner {
  #machine;
  #bytes;

  /** `Model.create` makes learners. */
  constructor(machine, start) {
    this.#machine = machine;
    this.#bytes = new Uint8Array(machine.self[0].count);
    const starts = machine.decisions.map((slot) => {
      if (start[slot.name] === undefined) {
        return 0;
      }
      const [value] = machine.given([slot], start);
      return slot.shape.length ? value : ((slot.view[0] = value), slot.place);
    });
    machine.call("init", this.#self, ...starts);
  }

  /** Address of the struct, with this learner in it. */
  get #self() {
    const { resident, self } = this.#machine;
    if (resident !== this) {
      resident?.#bytes.set(self[0].view);
      self[0].view.set(this.#bytes);
      this.#machine.resident = this;
    }
    return self[0].place;
  }

  /** Decisions of this round by name, from its contexts and the rule's own random numbers, where there are some. */
  decide(given = {}) {
    const machine = this.#machine;
    const told = machine.context.some(({ name }) => given[name] !== undefined);
    if (told || (TABLES.prepares && !machine.context.length)) {
      machine.checked(machine.call("prepare", this.#self, ...machine.given(machine.context, given)));
    }
    const outs = machine.decisions.map(({ place }) => place);
    machine.checked(machine.call("decide", this.#self, ...machine.given(machine.draws, given), ...outs));
    return machine.results(machine.decisions);
  }

  /** Takes the round's data and goes on; wrong data change nothing. `round`: an open round where feedback comes later, by default the oldest. */
  observe(given, { round } = {}) {
    const machine = this.#machine;
    if (round !== undefined && TABLES.turns === 1) {
      throw new LearnerError(0, "feedback of this learner comes at once, for the round that was decided last");
    }
    const values = [...machine.given(machine.inputs, given), ...machine.given(machine.draws, given)];
    const place = round === undefined ? [] : [BigInt(round)];
    machine.checked(machine.call(round === undefined ? "observe" : "observe_round", this.#self, ...place, ...values));
  }

  /** Open rounds, the oldest first, where feedback comes later. */
  get pending() {
    if (TABLES.turns === 1) {
      return [];
    }
    const [{ place, view }] = this.#machine.rounds;
    const count = Number(this.#machine.call("pending", this.#self, place));
    return Array.from(view.subarray(0, count), Number);
  }

  /** Goes on without the data of an open round, by default of the oldest, where feedback comes later. */
  skip(round = this.pending[0] ?? 0) {
    if (TABLES.turns === 1) {
      throw new LearnerError(0, "feedback of this learner comes at once: decide again");
    }
    this.#machine.checked(this.#machine.call("skip", this.#self, BigInt(round)));
  }

  /** Loss of decisions in a round of these data, values of g (g holds where it is at most 0) and of h. */
  measure(decisions, given) {
    const machine = this.#machine;
    if (!TABLES.measures) {
      throw new LearnerError(0, "this learner has no function that measures decisions");
    }
    const values = [...machine.given(machine.decisions, decisions), ...machine.given(machine.inputs, given)];
    machine.call("measure", this.#self, ...values, ...machine.values.map(({ place }) => place));
    const [loss, constraints, equalities] = machine.values.map(({ view }) => view.slice());
    return { loss: loss[0], constraints, equalities };
  }

  /**
   * Plays rounds: each is the data that it reveals, with its contexts and draws, or a function of the decision that gives them. Decisions,
   * losses and values of g and h of each; feedback comes as late as it may. An error names the round; those before it were played.
   */
  run(rounds) {
    const played = [];
    const open = [];
    const over = () => {
      const now = open.shift();
      const data = typeof now.data === "function" ? now.data(now.decision) : now.data;
      const measured = TABLES.measures ? this.measure(now.decision, data) : {};
      this.observe(data);
      played.push({ decision: now.decision, ...measured });
    };
    try {
      for (const data of rounds) {
        open.push({ decision: this.decide(typeof data === "function" ? {} : data), data });
        if (open.length === TABLES.turns) {
          over();
        }
      }
      while (open.length) {
        over();
      }
    } catch (error) {
      if (error instanceof LearnerError) {
        error.message = `round ${played.length + 1} of the data: ${error.message}`;
      }
      throw error;
    }
    return played;
  }

  /** Round in which what the model states of its streams was refuted, and the statement; null while nothing is, or nothing watched. */
  get alarm() {
    if (!TABLES.watches) {
      return null;
    }
    const [{ place, view }] = this.#machine.statement;
    const round = Number(this.#machine.call("alarm", this.#self, place));
    const address = view[0] | (view[1] << 8) | (view[2] << 16) | (view[3] << 24);
    return round ? { round, statement: this.#machine.string(address) } : null;
  }

  /** Bounds of what fixed decisions lost so far and what proves them, by name: the regret is at most loss - (least - rounding). */
  certificate() {
    const { certificate } = this.#machine;
    if (!certificate.length) {
      throw new LearnerError(0, "this learner keeps no sums of a certificate: it was compiled without --certify");
    }
    this.#machine.call("certificate", this.#self, ...certificate.map(({ place }) => place));
    return this.#machine.results(certificate);
  }

  /** State as bytes, the same on every machine and in C. */
  save() {
    const [{ place, view }] = this.#machine.state;
    this.#machine.call("save", this.#self, place);
    return view.slice();
  }

  /** Goes to a state that `save` gave here or in C, and changes nothing where it is none of this learner. */
  restore(bytes) {
    const [{ place, view, count }] = this.#machine.state;
    const whole = bytes.length === count;
    if (whole) {
      view.set(bytes);
    }
    const code = whole ? this.#machine.call("load", this.#self, place, BigInt(count)) : 1;
    if (code !== 0) {
      throw new LearnerError(code, "this is no whole state of this learner");
    }
  }
}

/** A compiled learner, of which `create` makes as many as are wanted. */
export class Model {
  #machine;

  constructor(module) {
    this.#machine = new Machine(module);
  }

  /** Model, algorithm, and digits that change with either. */
  get version() {
    return this.#machine.string(this.#machine.call("version"));
  }

  /** Learner before its first round, at the model's first decision or the one in `start`. */
  create({ start = {} } = {}) {
    return new Learner(this.#machine, start);
  }
}

/** Model of the compiled module beside this file, or of its bytes, a response that brings them, or a WebAssembly.Module. */
export async function load(source = new URL("./NAME.wasm", import.meta.url)) {
  const given = await source;
  if (given instanceof WebAssembly.Module) {
    return new Model(given);
  }
  const bytes = given instanceof URL ? await fetched(given) : given;
  return new Model(await WebAssembly.compile("arrayBuffer" in bytes ? await bytes.arrayBuffer() : bytes));
}

/** Bytes at an address; Node.js fetches no files. */
async function fetched(url) {
  if (url.protocol === "file:" && globalThis.process?.versions?.node) {
    return (await import("node:fs/promises")).readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) {
    throw new Error(`${url}: ${response.status} ${response.statusText}`);
  }
  return response;
}
