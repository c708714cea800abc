// Client of `oco lsp`. The commands of its code lenses run in a terminal instead of in the server.
import { dirname } from "node:path";
import * as vscode from "vscode";
import { LanguageClient } from "vscode-languageclient/node";

let client: LanguageClient | undefined;

/** Start the server, and anew when its path changes. */
export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const changed = vscode.workspace.onDidChangeConfiguration(async (change) => {
    if (change.affectsConfiguration("oco.path")) {
      await deactivate();
      await start();
    }
  });
  context.subscriptions.push(changed);
  await start();
}

/** Stop the server. */
export async function deactivate(): Promise<void> {
  const running = client;
  client = undefined;
  if (running?.isRunning()) {
    await running.stop();
  }
}

/** Command `oco` as the user has set it. */
function command(): string {
  return vscode.workspace.getConfiguration("oco").get("path", "oco");
}

async function start(): Promise<void> {
  const server = { command: command(), args: ["lsp"] };
  client = new LanguageClient("oco", "oco", server, {
    documentSelector: [{ language: "oco" }],
    middleware: { executeCommand: (name, args) => inTerminal(name, args) },
  });
  try {
    await client.start();
  } catch (error) {
    const way = "Install it with `pip install 'ocolang[editor]'`, or name it in the setting `oco.path`.";
    void vscode.window.showErrorMessage(`\`${server.command} lsp\` did not start: ${String(error)}. ${way}`);
  }
}

/** Run a command of the server, such as `oco.run`, on the file of a lens, or on that of the editor. */
async function inTerminal(name: string, args: unknown[]): Promise<void> {
  const [uri] = args;
  const file = typeof uri === "string" ? vscode.Uri.parse(uri) : vscode.window.activeTextEditor?.document.uri;
  if (file?.scheme !== "file") {
    void vscode.window.showErrorMessage("Save the model to a file first.");
    return;
  }
  await vscode.workspace.textDocuments.find((open) => open.uri.toString() === file.toString())?.save();
  const word = name.replace("oco.", "");
  const process = new vscode.ProcessExecution(command(), [word, file.fsPath], { cwd: dirname(file.fsPath) });
  const task = new vscode.Task({ type: "oco", word }, vscode.TaskScope.Workspace, word, "oco", process);
  await vscode.tasks.executeTask(task);
}
