// Looks at the playground as someone does: arguments are the module of Playwright, the browser, the folder of the page, and results of a model.
import { createServer } from "node:http";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join, normalize } from "node:path";

const [, , playwright, executablePath, folder, results] = process.argv;
const { chromium } = await import(playwright);
const KINDS = { ".html": "text/html", ".mjs": "text/javascript", ".css": "text/css", ".json": "application/json", ".wasm": "application/wasm" };
const server = createServer((request, response) => {
  try {
    const path = join(folder, normalize(new URL(request.url, "http://x").pathname));
    const content = readFileSync(path);
    response.writeHead(200, { "Content-Type": KINDS[extname(path)] ?? "application/octet-stream" }).end(content);
  } catch {
    response.writeHead(404).end();
  }
}).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));
const address = `http://127.0.0.1:${server.address().port}/index.html`;
const quiet = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
const browser = await chromium.launch({ executablePath, args: [...quiet, "--disable-component-update", "--disable-sync"] });
const errors = [];
const seen = { errors, apart: {}, panels: [] };

async function opened(name) {
  const page = await browser.newPage();
  page.on("pageerror", (error) => errors.push(error.message));
  page.on("request", (request) => request.url().startsWith("http://127.0.0.1") || errors.push(`asks for ${request.url()}`));
  await page.goto(`${address}#${name}`);
  await page.waitForFunction(() => window.playground);
  return page;
}

const decisions = (page) =>
  page.evaluate(() => {
    const numbers = (arrays) => Object.values(arrays).map(({ shape, numbers }) => ({ rounds: shape[0], numbers: [...numbers] }));
    return { here: numbers(window.playground.decisions), there: numbers(window.playground.reference.decisions) };
  });
const largest = (a, b) => a.reduce((most, x, i) => Math.max(most, Math.abs(x - b[i])), 0);

for (const name of ["tracking", "online_qp", "charging"]) {
  const page = await opened(name);
  const { here, there } = await decisions(page);
  seen.apart[name] = Math.max(...here.map(({ numbers }, k) => largest(numbers, there[k].numbers)));
  await page.close();
}

// Moved data.
const page = await opened("tracking");
const { here: [unmoved] } = await decisions(page);
const since = 101;
await page.evaluate((since) => {
  const set = (id, value) => Object.assign(document.getElementById(id), { value }).dispatchEvent(new Event("input"));
  set("stream", "b");
  set("since", since);
  set("percent", 50);
}, since);
await page.waitForFunction(() => window.playground);
const { here: [moved] } = await decisions(page);
const until = (since * unmoved.numbers.length) / unmoved.rounds; // the round itself is decided before its data are known
seen.before = largest(unmoved.numbers.slice(0, until), moved.numbers.slice(0, until));
seen.after = largest(unmoved.numbers.slice(until), moved.numbers.slice(until));
for (const panel of ["facts", "plan", "run"]) {
  await page.click(`#tab-${panel}`);
  if (await page.isVisible(`#${panel}`) && (await page.locator(`#${panel}`).innerText()).length > 100) {
    seen.panels.push(panel);
  }
}

// Changed models: first without Python, then with a stand-in that gives the results it was handed.
async function checked(text) {
  await page.click(".cm-content");
  await page.keyboard.press("Control+End");
  await page.keyboard.type(text);
  await page.click("#check");
  await page.waitForFunction(() => !/\.\.\.$/.test(document.getElementById("status").textContent));
  return page.locator("#status").innerText();
}
seen.unavailable = await checked("# more");
mkdirSync(join(folder, "python"));
const mistake = JSON.stringify({ error: "OCO000 as the page shows it" });
writeFileSync(
  join(folder, "python", "pyodide.mjs"),
  `export const loadPyodide = async () => ({ loadPackage: async () => {}, unpackArchive: () => {}, runPython: () => {},
    globals: { get: () => (text) => text.includes("wrong") ? ${JSON.stringify(mistake)} : ${JSON.stringify(results)} } });`,
);
seen.status = await checked(" again");
seen.examined = await page.locator("#totals tr.learner td").first().innerText();
seen.mistake = await checked(" wrong");
await browser.close();
server.close();
console.log(JSON.stringify(seen));
