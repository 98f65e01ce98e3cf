// Runs the tests of the dashboard: units, then the pages in Chromium. scripts/web --test calls it.
//
// Prints "ok NAME", "not ok NAME" with what was wrong, or "skipped NAME: why" for each test; exit code 1 if one failed or none ran.
import { build } from "esbuild";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, isAbsolute, join } from "node:path";
import { run } from "node:test";
import { fileURLToPath } from "node:url";
import { inspect } from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
const bundled = mkdtempSync(join(tmpdir(), "troupe-web-units-"));
const names = readdirSync(join(here, "unit")).filter((name) => name.endsWith(".test.ts"));
await build({ entryPoints: names.map((name) => join(here, "unit", name)), outdir: bundled, bundle: true, platform: "node", format: "esm",
  target: "node18", outExtension: { ".js": ".mjs" }, logLevel: "warning" });
const files = [...names.map((name) => join(bundled, name.replace(/ts$/, "mjs"))), ...["pages", "flow", "nodes"].map((name) => join(here, `pages/${name}.test.mjs`))];

let passed = 0, failed = 0;
// Older versions of node report each file as a test around its tests.
const isFile = ({ name }) => isAbsolute(name) || name.endsWith(".mjs");
const stream = run({ files, concurrency: 1, timeout: 1_800_000 });
stream.on("test:pass", (t) => {
  if (isFile(t)) return;
  if (t.skip !== undefined) console.log(`skipped ${t.name}${typeof t.skip === "string" ? `: ${t.skip}` : ""}`);
  else {
    passed += 1;
    console.log(`ok ${t.name}`);
  }
});
stream.on("test:fail", (t) => {
  if (isFile(t) && failed > 0 && t.details.error?.failureType === "subtestsFailed") return; // its tests were told
  failed += 1;
  const error = t.details.error?.cause ?? t.details.error;
  console.log(`not ok ${t.name}\n    ${(error?.stack ?? inspect(error)).split("\n").slice(0, 40).join("\n    ")}`);
});
stream.on("end", () => {
  rmSync(bundled, { recursive: true, force: true });
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
});
stream.resume();
