// Runs the tests of the dashboard: units by node's own runner, then the pages in Chromium. scripts/web --test calls it.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const bundled = mkdtempSync(join(tmpdir(), "troupe-web-units-"));
try {
  const names = readdirSync(join(here, "unit")).filter((name) => name.endsWith(".test.ts"));
  await build({ entryPoints: names.map((name) => join(here, "unit", name)), outdir: bundled, bundle: true, platform: "node", format: "esm",
    target: "node18", outExtension: { ".js": ".mjs" }, logLevel: "warning" });
  const files = [...names.map((name) => join(bundled, name.replace(/ts$/, "mjs"))), join(here, "pages/pages.test.mjs")];
  const { status } = spawnSync(process.execPath, ["--test", ...process.argv.slice(2), ...files], { stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(bundled, { recursive: true, force: true });
}
