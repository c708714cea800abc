// Runs as series over rounds: arrays out of JSON, moved data, and sums of loss and violation.

/** Array of JSON: its shape and numbers, row by row. */
export function unpacked({ shape, data }) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  return { shape, numbers: new Float64Array(bytes.buffer) };
}

/** Object with a function of each value and its name. */
export function mapped(values, result) {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, result(value, name)]));
}

/** Numbers of a value as an array. */
export function listed(value) {
  return typeof value === "object" ? Array.from(value) : [value];
}

/** Array of rows of numbers. */
export function stacked(rows) {
  return { shape: [rows.length, rows[0].length], numbers: Float64Array.from(rows.flatMap(listed)) };
}

/** Entries of row t of an array with the round first; a number where a row is one. */
export function row({ shape, numbers }, t) {
  const size = shape.slice(1).reduce((product, length) => product * length, 1);
  return shape.length === 1 ? numbers[t] : numbers.subarray(t * size, (t + 1) * size);
}

/** Stream whose values from round `since` (from 1) on are moved by a share of their range, and stay within it. */
export function moved(stream, [low, high], share, since) {
  const size = stream.numbers.length / stream.shape[0];
  const end = (ends, i) => ends.numbers[ends.numbers.length === 1 ? 0 : i % size];
  const numbers = stream.numbers.map((value, i) => {
    const [least, most] = [end(low, i), end(high, i)];
    if (i < (since - 1) * size || !Number.isFinite(most - least)) {
      return value;
    }
    return Math.min(Math.max(value + share * (most - least), least), most);
  });
  return { shape: stream.shape, numbers };
}

/** Sums so far of numbers. */
export function summed(values) {
  let sum = 0;
  return Float64Array.from(values, (value) => (sum += value));
}

const ROUNDING = 1e-9; // of a value of a constraint, up to which a round has not broken it

/**
 * Violation so far of constraints (T, N): what each round broke where it binds each round, but for rounding, the excess of the sum so far
 * where it binds on average; and the number of rounds in which one that binds each round was broken.
 */
export function violation({ shape, numbers }, timings) {
  const [rounds, count = 0] = shape;
  const sums = new Float64Array(count);
  const total = new Float64Array(rounds);
  let broken = 0;
  for (let t = 0; t < rounds; ++t) {
    let worst = 0;
    for (let n = 0; n < count; ++n) {
      const g = numbers[t * count + n];
      const mean = timings[n] === "on average";
      sums[n] += mean || g > ROUNDING ? g : 0;
      total[t] += Math.max(sums[n], 0);
      worst = mean ? worst : Math.max(worst, g);
    }
    broken += worst > ROUNDING;
  }
  return { total, broken };
}
