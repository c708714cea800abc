// Writes the scripts of the page and the licenses of the packages in them to the folder that is named.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const outdir = process.argv[2];
const { metafile } = await build({
  entryPoints: ["playground.mjs", "live_worker.mjs"],
  outdir,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  minify: true,
  metafile: true,
  format: "esm",
  target: "es2022",
  logLevel: "warning",
});

const folders = Object.keys(metafile.inputs).map((path) => path.match(/^.*node_modules\/(@[^/]+\/)?[^/]+/)?.[0]);
const notices = [...new Set(folders.filter(Boolean))].sort().map((folder) => {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const license = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  return `${name} ${version}\n\n${readFileSync(join(folder, license), "utf8").trim()}\n`;
});
writeFileSync(join(outdir, "NOTICES.txt"), notices.join(`\n${"-".repeat(80)}\n\n`));
