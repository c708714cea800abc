// Written by oco.dsl.text.editor from the words of the language.
const PATTERNS = [
  ["meta", /^%%oco.*$/y],
  ["comment", /#.*$/y],
  ["string", /"[^"\n]*"/y],
  ["keyword", /^\s*(assume|context|decision|feedback|horizon|index|let|maximize|measure|minimize|model|param|predict|state|stream|subject|using)\b/y],
  ["invalid", /\b(prev)\b(?!\s*\()/y],
  ["modifier", /\b(each)\s+(round)\b/y],
  ["modifier", /\b(on)\s+(average)\b/y],
  ["modifier", /\s+(in)\s+(total)\b/y],
  ["modifier", /\s+(in)\s+[0-9.]+%\s+(of)\s+(rounds)\b/y],
  ["modifier", /(?<=,)\s+(penalty)\b/y],
  ["modifier", /\b(static|dynamic)\s+(regret)\b/y],
  ["modifier", /(?<=iid)\s+(mean)\b/y],
  ["modifier", /(?<=feedback)\s+(full|gradient|two_point|bandit)\b(?:\s+(delayed)\b)?/y],
  ["modifier", /(?<=subject)\s+(to)\b/y],
  ["modifier", /(?<=horizon)\s+(T)\b/y],
  ["labelName", /^\s+([A-Za-z][A-Za-z0-9_]*)(?=\s*:)/y],
  ["modifier", /(?<=[\w\])])\s+(iid|in|rounded|start|unknown|with)(?=\s|$)/y],
  ["number", /(?:(?<![\w.])|(?<=\.\.))([0-9]+(\.(?!\.)[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?/y],
  ["variableName.function", /\b[A-Za-z][A-Za-z0-9_]*(?=\()/y],
  ["operator", /\.\.|\*\*|<=|>=|==|[-+*\/@~=]|\.T\b/y],
  [null, /[A-Za-z][A-Za-z0-9_]*|\s+|./y],
];

/** Stream parser: each part of a line takes the style of the first pattern that matches there. `%%oco` is a style of its own. */
export const oco = {
  name: "oco",
  languageData: { commentTokens: { line: "#" } },
  token(stream) {
    for (const [style, pattern] of PATTERNS) {
      pattern.lastIndex = stream.pos;
      const match = pattern.exec(stream.string);
      if (match !== null && match[0].length > 0) {
        stream.pos += match[0].length;
        return style;
      }
    }
    return null;
  },
};
