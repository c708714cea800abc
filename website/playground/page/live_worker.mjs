// Python in a thread of its own: loads once, then examines each model that it is sent, one after another.
let python;

async function loaded({ pyodide: address, wheel }) {
  const base = new URL(address, self.location.href).href;
  const { loadPyodide } = await import(/* @vite-ignore */ `${base}pyodide.mjs`);
  const pyodide = await loadPyodide({ indexURL: base });
  const missing = [];
  const failed = (message) => /fail|error/i.test(message) && missing.push(message);
  await pyodide.loadPackage(["numpy", "scipy", "clarabel", "cvxpy-base", "rich", "sympy"], { errorCallback: failed });
  if (missing.length) {
    throw new Error(missing[0]);
  }
  pyodide.unpackArchive(await bytes(wheel), "wheel");
  pyodide.runPython(new TextDecoder().decode(await bytes("live.py")));
  return pyodide.globals.get("examined");
}

async function bytes(file) {
  const response = await fetch(new URL(file, self.location.href));
  if (!response.ok) {
    throw new Error(`${file}: ${response.status} ${response.statusText}`);
  }
  return response.arrayBuffer();
}

self.onmessage = async ({ data: { text, settings } }) => {
  let examined;
  try {
    python ??= loaded(settings);
    examined = await python;
  } catch (error) {
    python = undefined;
    self.postMessage({ unavailable: String(error.message ?? error) });
    return;
  }
  try {
    self.postMessage({ values: JSON.parse(examined(text)) });
  } catch (error) {
    self.postMessage({ values: { error: String(error.message ?? error) } });
  }
};
