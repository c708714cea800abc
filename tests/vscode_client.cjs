// `node vscode_client.cjs EXTENSION OCO FILE`: load the compiled extension with a stub of the module `vscode`, let it start its server on
// the file, run the command of its lens, and print as JSON what the editor is shown.
const Module = require("node:module");
const { readFileSync } = require("node:fs");
const { pathToFileURL, fileURLToPath } = require("node:url");

const [extension, oco, file] = process.argv.slice(2);
const shown = { diagnostics: null, registered: [], task: null, errors: [] };

const nothing = () => ({ dispose() {} });
const event = () => nothing();

class Uri {
  constructor(href) {
    this.href = href;
    this.scheme = new URL(href).protocol.slice(0, -1);
    this.fsPath = this.scheme === "file" ? fileURLToPath(href) : "";
  }
  static parse(href) {
    return new Uri(href);
  }
  static file(path) {
    return new Uri(pathToFileURL(path).href);
  }
  toString() {
    return this.href;
  }
}

class Fields {
  constructor(...fields) {
    this.fields = fields;
  }
}
class Diagnostic {
  constructor(range, message, severity) {
    Object.assign(this, { range, message, severity });
  }
}
class CodeActionKind {
  static Empty = new CodeActionKind();
  append() {
    return this;
  }
}
class EventEmitter {
  listeners = [];
  event = (listener) => {
    this.listeners.push(listener);
    return nothing();
  };
  fire(value) {
    this.listeners.forEach((listener) => listener(value));
  }
  dispose() {}
}
class CancellationTokenSource {
  token = { isCancellationRequested: false, onCancellationRequested: event };
  cancel() {}
  dispose() {}
}

const document = {
  uri: Uri.file(file),
  fileName: file,
  languageId: "oco",
  version: 1,
  isClosed: false,
  getText: () => readFileSync(file, "utf8"),
  save: async () => true,
};

/** Namespace with some members; functions of the names `on...` are events, `register...` and `create...` give something to dispose of. */
const namespace = (members) =>
  new Proxy(members, { get: (own, name) => own[name] ?? (/^(on|register|create)[A-Z]/.test(name) ? nothing : undefined) });

const collection = {
  set: (uri, diagnostics) => {
    shown.diagnostics = diagnostics.map(({ code, message, range }) => ({ code, message, line: range.fields[0] }));
    finish();
  },
  delete() {},
  clear() {},
  dispose() {},
};
const commands = new Map();
/** Classes of the editor that the client only makes objects of, by any name. */
const classes = new Proxy(Object.create(null), {
  get: (own, name) => (/^[A-Z]/.test(String(name)) ? (own[name] ??= class extends Fields {}) : undefined),
});
const vscode = Object.setPrototypeOf(
  {
    __esModule: true,
    Uri,
    Diagnostic,
    EventEmitter,
    CancellationTokenSource,
    CodeActionKind,
    version: "1.91.0",
    env: { appName: "stub", language: "en" },
    languages: namespace({
      createDiagnosticCollection: () => collection,
      match: (selector, { languageId }) => (JSON.stringify(selector).includes(`"${languageId}"`) ? 10 : 0),
    }),
    workspace: namespace({
      textDocuments: [document],
      notebookDocuments: [],
      workspaceFolders: undefined,
      getConfiguration: () => ({ get: (key, other) => (key === "path" ? oco : other) }),
    }),
    window: namespace({
      activeTextEditor: { document },
      visibleTextEditors: [],
      tabGroups: { all: [], onDidChangeTabGroups: event, onDidChangeTabs: event },
      showErrorMessage: async (message) => void shown.errors.push(message),
      createOutputChannel: () => new Proxy({}, { get: () => nothing }),
    }),
    commands: namespace({
      registerCommand: (name, run) => {
        if (commands.has(name)) throw new Error(`command '${name}' already exists`);
        commands.set(name, run);
        return nothing();
      },
    }),
    tasks: {
      executeTask: async ({ fields }) => {
        const execution = fields.find((field) => field instanceof vscode.ProcessExecution);
        shown.task = execution.fields.slice(0, 2);
      },
    },
  },
  classes,
);

const load = Module._load;
Module._load = (request, ...rest) => (request === "vscode" ? vscode : load(request, ...rest));
const client = require(extension);

async function finish() {
  shown.registered = [...commands.keys()];
  await commands.get("oco.run")?.(document.uri.toString());
  await client.deactivate();
  console.log(JSON.stringify(shown));
  process.exit(0);
}
client.activate({ subscriptions: [] }).then(() => shown.errors.length && finish());
