// Writes out/: the extension in one file, the licenses of the packages in it, and the grammar; and the license of the repository beside it.
import { copyFileSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const { metafile } = await build({
  entryPoints: ["src/extension.ts"],
  outfile: "out/extension.js",
  bundle: true,
  metafile: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
});

const folders = Object.keys(metafile.inputs).map((path) => path.match(/^.*node_modules\/(@[^/]+\/)?[^/]+/)?.[0]);
const notices = [...new Set(folders.filter(Boolean))].sort().map((folder) => {
  const { name, version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const license = readdirSync(folder).find((file) => /^licen[cs]e/i.test(file));
  return `${name} ${version}\n\n${readFileSync(join(folder, license), "utf8").trim()}\n`;
});
writeFileSync("out/NOTICES.txt", notices.join(`\n${"-".repeat(80)}\n\n`));
copyFileSync("../../grammar/oco.tmLanguage.json", "out/oco.tmLanguage.json");
copyFileSync("../../LICENSE", "LICENSE");
