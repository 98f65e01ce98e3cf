// Bundles the dashboard: build.mjs OUTPUT. Names have a hash of what is in the file, so that browsers may keep them for ever.
// Prints what the files weigh when compressed, and fails above the limit.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const kLimit = 150_000; // bytes of all scripts and styles, compressed
const here = dirname(fileURLToPath(import.meta.url));
const output = process.argv[2];
if (!output) {
  console.error("usage: build.mjs OUTPUT");
  process.exit(2);
}
const assets = join(output, "assets");
rmSync(output, { recursive: true, force: true });
mkdirSync(assets, { recursive: true });

const result = await build({
  entryPoints: [join(here, "src/main.tsx")],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2021",
  entryNames: "[name]-[hash]",
  outdir: assets,
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
});
const made = Object.keys(result.metafile.outputs).map((path) => basename(path));
const icon = readFileSync(join(here, "src/icon.svg"));
const iconName = `icon-${createHash("sha256").update(icon).digest("hex").slice(0, 8)}.svg`;
writeFileSync(join(assets, iconName), icon);
const names = { icon: iconName, css: made.find((name) => name.endsWith(".css")), js: made.find((name) => name.endsWith(".js")) };
// What is bundled is under the MIT licence, which goes with every copy. The name has no hash: it is not for assets/.
const licences = ["preact", "uplot"].map((name) => `${name}\n\n${readFileSync(join(here, "node_modules", name, "LICENSE"), "utf8")}`);
writeFileSync(join(output, "licences.txt"), licences.join("\n\n"));
const page = readFileSync(join(here, "src/index.html"), "utf8");
writeFileSync(join(output, "index.html"), page.replace(/\{\{(\w+)\}\}/g, (_, name) => names[name]));

let total = 0;
for (const name of [names.js, names.css]) total += gzipSync(readFileSync(join(assets, name)), { level: 9 }).length;
console.log(`dashboard: ${(total / 1000).toFixed(1)} kB of scripts and styles, compressed (at most ${kLimit / 1000})`);
if (total > kLimit) process.exit(1);
