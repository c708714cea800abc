// Grammar of model files for tree-sitter: `grammar/oco.lark` in one piece, with the forms of bounds, domains, sets and keys of facts that
// `dsl/text/clauses.py` asks for. The words come from `words.json`; a word such as `in` counts as itself where a rule expects it, and is a
// name everywhere else. Line ends, brackets, numbers, texts and comments are scanned by `src/scanner.c`.

const words = require("./words.json");

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const REST = `${LETTERS}0123456789_`;
const RESERVED = [...words.statements, ...words.later];

/** Regular expression of all names but `reserved`: the names that leave the tree of their letters. */
function namesBut(reserved, first = true) {
  const branches = [];
  const others = [...(first ? LETTERS : REST)].filter((letter) => !reserved.some((word) => word[0] === letter));
  branches.push(`[${others.join("")}][${REST}]*`);
  for (const letter of new Set(reserved.filter((word) => word).map((word) => word[0]))) {
    const tails = reserved.filter((word) => word[0] === letter).map((word) => word.slice(1));
    branches.push(`${letter}${namesBut(tails, false)}`);
  }
  const all = `(${branches.join("|")})`;
  return first || reserved.includes("") ? all : `${all}?`;
}

const used = new Set();

/** Word of the language. Throws where `words.json` lacks it. */
function word(text) {
  if (!Object.values(words).some((list) => list.includes(text))) throw new Error(`words.json lacks ${text}`);
  used.add(text);
  return text;
}

const listed = (rule) => seq(rule, repeat(seq(",", rule)));
const relation = () => field("relation", choice("<=", ">=", "=="));

/** Rules of expressions. With `facts`, names may be keys of facts, as in the settings of `using`. */
function expressions(facts) {
  const name = (kind) => (facts ? `_formula_${kind}` : `_${kind}`);
  const shown = (kind) => (facts ? `formula_${kind}` : kind);
  const node = ($, kind) => (facts ? alias($[shown(kind)], $[kind]) : $[kind]);
  const expr = ($) => $[name("expression")];
  const sum = ($) => $[name("sum")];
  const postfix = ($) => $[name("postfix")];
  const operation = ($, sign, level, side = prec.left) =>
    side(level, seq(field("left", sum($)), field("operator", sign), field("right", sum($))));
  return {
    [name("expression")]: ($) => choice(sum($), node($, "range")),
    [shown("range")]: ($) => seq(field("start", sum($)), "..", field("stop", sum($))),
    [name("sum")]: ($) => choice(postfix($), node($, "binary"), node($, "negative")),
    [shown("binary")]: ($) =>
      choice(
        ...["+", "-"].map((sign) => operation($, sign, 1)),
        ...["*", "/", "@", "%"].map((sign) => operation($, sign, 2)),
        operation($, "**", 4, prec.right),
      ),
    [shown("negative")]: ($) => prec(3, seq("-", sum($))),
    [name("postfix")]: ($) =>
      choice(
        $.number,
        $.text,
        $.name,
        node($, "call"),
        node($, "group"),
        node($, "array"),
        alias($[name("pair")], $.array),
        node($, "set"),
        node($, "subscript"),
        node($, "transpose"),
        ...(facts ? [$.fact] : []),
      ),
    [shown("transpose")]: ($) => seq(postfix($), ".", word("T")),
    [shown("subscript")]: ($) => seq(field("base", postfix($)), "[", listed($[name("item")]), "]"),
    [name("item")]: ($) => choice(expr($), node($, "slice"), node($, "chosen")),
    [shown("slice")]: ($) => seq(optional(expr($)), ":", optional(expr($))),
    [shown("chosen")]: ($) => seq($.name, word("in"), expr($)),
    [shown("call")]: ($) =>
      seq(field("function", choice($.name, alias(word("prev"), $.name))), "(", optional($[name("arguments")]), ")"),
    [name("arguments")]: ($) =>
      choice(
        seq(listed(expr($)), repeat(seq(",", node($, "option")))),
        listed(node($, "option")),
      ),
    [shown("option")]: ($) => seq(field("name", $.name), "=", field("value", expr($))),
    [shown("group")]: ($) => seq("(", expr($), ")"),
    [name("pair")]: ($) => seq("[", expr($), ",", expr($), "]"),
    [shown("array")]: ($) => seq("[", expr($), optional(seq(",", expr($), ",", listed(expr($)))), "]"),
    [shown("set")]: ($) => seq("{", listed(expr($)), "}"),
  };
}

module.exports = grammar({
  name: "oco",
  word: ($) => $.name,
  externals: ($) => [
    $._newline,
    $._continuation,
    $.comment,
    $.integer,
    $.decimal,
    $.text,
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
  ],
  extras: ($) => [/[ \t]/, $.comment, $._continuation],
  conflicts: ($) => [
    [$._bounds, $._postfix],
    [$._bounds, $._expression],
    [$._key, $._formula_postfix],
    [$._signed, $._postfix],
  ],
  rules: {
    source_file: ($) =>
      seq(
        repeat($._newline),
        optional(seq($._statement, repeat(seq(repeat1($._newline), $._statement)), repeat($._newline))),
      ),
    _statement: ($) =>
      choice(
        $.model_statement,
        $.horizon_statement,
        $.index_statement,
        $.param_statement,
        $.decision_statement,
        $.stream_statement,
        $.state_statement,
        $.predict_statement,
        $.let_statement,
        $.objective_statement,
        $.subject_to_statement,
        $.constraint,
        $.measure_statement,
        $.feedback_statement,
        $.assume_statement,
        $.using_statement,
      ),

    model_statement: ($) => seq(word("model"), field("name", $.name)),
    horizon_statement: ($) => seq(word("horizon"), word("T"), choice(seq("=", $._expression), word("unknown"))),
    index_statement: ($) => seq(word("index"), field("name", $.name), optional(seq("=", $._names))),
    param_statement: ($) =>
      seq(word("param"), $._declared, optional(seq(word("in"), $._bounds)), optional(seq("=", $._expression))),
    decision_statement: ($) =>
      seq(
        word("decision"),
        $._declared,
        word("in"),
        choice($._domain, $.binary_set),
        optional($.cuts),
        optional(word("rounded")),
      ),
    binary_set: ($) => {
      const [zero, one] = [alias("0", $.number), alias("1", $.number)];
      return seq("{", choice(seq(zero, ",", one), seq(one, ",", zero)), "}");
    },
    cuts: ($) => seq(word("with"), listed($.comparison)),
    comparison: ($) => seq($._expression, relation(), $._expression),
    stream_statement: ($) => seq(choice(word("stream"), word("context")), $._declared, repeat($._clause)),
    _clause: ($) => choice($.bounds, $.distribution, $.iid),
    bounds: ($) => seq(word("in"), choice($._bounds, $._value_set)),
    distribution: ($) => seq("~", $._domain),
    iid: ($) => seq(word("iid"), optional(seq(word("mean"), "=", $._expression))),
    state_statement: ($) =>
      seq(word("state"), $._declared, "=", $._expression, word("in"), $._bounds, word("start"), $._expression),
    predict_statement: ($) => seq(word("predict"), $.name, "=", $._expression),
    let_statement: ($) => seq(word("let"), field("name", $.name), "=", $._expression),
    objective_statement: ($) => seq(choice(word("minimize"), word("maximize")), $._expression),
    subject_to_statement: () => seq(word("subject"), word("to")),
    constraint: ($) =>
      seq(
        field("label", $.name),
        optional(seq("[", $.name, word("in"), $.name, "]")),
        ":",
        $._expression,
        relation(),
        $._expression,
        optional($.timing),
        optional($.penalty),
      ),
    timing: ($) =>
      choice(
        seq(word("each"), word("round")),
        seq(word("on"), word("average")),
        seq(word("in"), word("total")),
        seq(word("in"), $.number, "%", word("of"), word("rounds")),
      ),
    penalty: ($) => seq(",", word("penalty"), $._expression),
    measure_statement: () => seq(word("measure"), choice(word("static"), word("dynamic")), word("regret")),
    feedback_statement: ($) =>
      seq(
        word("feedback"),
        choice(word("full"), word("gradient"), word("two_point"), word("bandit")),
        optional(seq(word("delayed"), $._expression)),
      ),
    assume_statement: ($) =>
      seq(word("assume"), $.key, optional(seq(field("relation", choice("<=", ">=")), $._expression))),
    key: ($) => seq($.name, repeat(choice(seq(".", $.name), seq("[", listed($.number), "]")))),
    using_statement: ($) =>
      seq(word("using"), choice(seq($.algorithm, optional($._settings)), $._settings)),
    algorithm: ($) =>
      seq(choice($.name, word("prev")), repeat(seq(token.immediate("-"), token.immediate(/[A-Za-z0-9_]+/)))),
    _settings: ($) => seq(word("with"), listed($.setting)),
    setting: ($) => seq(field("name", $.name), "=", field("value", $._formula_expression)),

    _declared: ($) => seq(field("name", $.name), optional($.shape)),
    shape: ($) => seq("[", listed($._expression), "]"),
    _bounds: ($) => choice($.name, $.range, alias($._pair, $.array), seq("(", $._bounds, ")")),
    _domain: ($) => choice($.name, $.call, seq("(", $._domain, ")")),
    _value_set: ($) => choice($.value_set, seq("(", $._value_set, ")")),
    value_set: ($) => seq("{", listed($._value), "}"),
    _value: ($) => choice($._signed, seq("-", $._value_group), $._value_group),
    _value_group: ($) => seq("(", $._value, ")"),
    _signed: ($) => choice($.number, seq("-", $._signed)),
    _names: ($) => choice($.name_list, alias($.file_call, $.call), seq("(", $._names, ")")),
    file_call: ($) => seq(field("function", alias("file", $.name)), "(", optional($._arguments), ")"),
    name_list: ($) => seq("[", listed($._listed_name), "]"),
    _listed_name: ($) => choice($.name, $.text, seq(repeat("-"), $.integer), seq("(", $._listed_name, ")")),

    ...expressions(false),
    ...expressions(true),
    fact: ($) => seq($._key, ".", $.name),
    _key: ($) => choice($.name, $.fact, $.key_index),
    key_index: ($) => seq($._key, "[", listed($.integer), "]"),

    number: ($) => choice($.integer, $.decimal),
    name: () => new RegExp(namesBut(RESERVED)),
  },
});

const unused = Object.values(words).flat().filter((text) => !used.has(text));
if (unused.length) throw new Error(`no rule uses ${unused.join(", ")}`);
