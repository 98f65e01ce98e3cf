// What users of BK.Synapse did in its web pages, from a data set to analytics, in the browser alone: twice, on a wide screen and on a phone.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { complaints, endJobs, explained, hasServe, serve } from "./server.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
const troupe = process.env.TROUPE_PROGRAM ?? join(root, "build/bin/troupe");
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const missing = !browserPath ? "no Chromium: apt-get install chromium" : !existsSync(troupe) ? "no build/bin/troupe: scripts/build makes it"
  : !hasServe(troupe) ? "the stand-in for the service takes no uploads" : false;
const kWaitMs = 120_000;
const kSide = 28;

let scratch, service, browser;

/** Grey images with a bright bar whose place is the class: easy to learn, in the files of MNIST. */
function writeBars(folder, train, test) {
  mkdirSync(folder, { recursive: true });
  const head = (...numbers) => { const bytes = Buffer.alloc(4 * numbers.length); numbers.forEach((n, i) => bytes.writeUInt32BE(n, 4 * i)); return bytes; };
  for (const [name, count] of [["train", train], ["t10k", test]]) {
    const pixels = Buffer.alloc(count * kSide * kSide, 10);
    for (let i = 0; i < count; i += 1) {
      const row = 2 * (i % 10) + 4;
      pixels.fill(120 + ((i * 37) % 130), (i * kSide + row) * kSide, (i * kSide + row + 2) * kSide);
    }
    writeFileSync(join(folder, `${name}-images-idx3-ubyte`), Buffer.concat([head(0x803, count, kSide, kSide), pixels]));
    writeFileSync(join(folder, `${name}-labels-idx1-ubyte`), Buffer.concat([head(0x801, count), Buffer.from(Array.from({ length: count }, (_, i) => i % 10))]));
  }
}

/** Two data sets as a user has them on a disk of the user's own: packed. */
const kSets = {
  bars: { kind: "idx", archive: "bars.tar.gz", shape: "1×28×28", train: "2,000", resize: null,
    make: (folder) => writeBars(join(folder, "bars"), 2000, 400) },
  digits: { kind: "folder", archive: "digits.tar", shape: "3×28×28", train: "600", resize: "28",
    make: (folder) => execFileSync(troupe, ["data", "convert", ...["data.name=glyphs", "data.train_samples=600", "data.test_samples=200"].flatMap((s) => ["--set", s]),
      "--to", "folder", "--picture", "png", "--output", join(folder, "digits")], { stdio: "ignore" }) },
};

before(async () => {
  if (missing) return;
  scratch = mkdtempSync(join(tmpdir(), "troupe-flow-"));
  for (const [name, { archive, make }] of Object.entries(kSets)) {
    make(scratch);
    execFileSync("tar", ["-C", scratch, archive.endsWith(".gz") ? "-czf" : "-cf", join(scratch, archive), name]);
  }
  mkdirSync(join(scratch, "runs"));
  service = await serve(root, troupe, join(scratch, "runs"));
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
}, { timeout: 300_000 });

after(async () => {
  if (service) await endJobs(service);
  await browser?.close();
  await service?.stop();
  if (scratch) rmSync(scratch, { recursive: true, force: true });
});

async function flow(name, viewport) {
  const context = await browser.newContext({ viewport, reducedMotion: "reduce", acceptDownloads: true });
  const page = await context.newPage();
  await explained(page, () => fromDataToAnalytics(page, name, viewport));
  await context.close();
}

async function fromDataToAnalytics(page, name, viewport) {
  const set = kSets[name];
  const failures = complaints(page);
  page.setDefaultTimeout(kWaitMs);
  const heading = (text) => page.getByRole("heading", { level: 1, name: text, exact: true }).waitFor();
  const visit = async (entry) => {
    if (viewport.width < 500) await page.getByRole("button", { name: "Menu" }).click();
    await page.getByLabel("Pages").getByRole("link", { name: entry, exact: true }).click();
    await heading(entry);
  };
  const button = (text) => page.getByRole("button", { name: text, exact: true });
  const figure = (label) => page.locator(".figure", { hasText: label }).locator("dd");
  await page.goto(`${service.origin}/#token=${service.token}`);
  await heading("Home");

  // A data set: sent, and looked at.
  await visit("Data sets");
  await button("Upload").click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Kind", { exact: true }).selectOption(set.kind);
  if (set.resize) await page.getByLabel(/^Resize/).fill(set.resize);
  await page.getByLabel(/^Files: /).setInputFiles(join(scratch, "bars", "train-labels-idx1-ubyte")); // no archive
  const send = page.locator("form").getByRole("button", { name: "Upload", exact: true }).last();
  await send.click();
  await page.getByRole("alert").getByText("no zip and no tar").waitFor();
  await page.getByLabel(/^Files: /).setInputFiles(join(scratch, set.archive));
  await send.click();
  await page.getByRole("link", { name, exact: true }).click();
  await heading(name);
  assert.equal(await figure("Shape").textContent(), set.shape);
  assert.equal(await figure("Samples, train").textContent(), set.train);
  await page.waitForFunction(() => { const drawn = [...document.querySelectorAll(".samples img")]; return drawn.length === 24 && drawn.every((i) => i.naturalWidth === 28); });

  // A model: its layers.
  await visit("Models");
  await page.getByRole("link", { name: "lenet", exact: true }).click();
  await page.getByRole("region", { name: /Layers|layers/ }).getByRole("row").nth(3).waitFor();

  // A job, by the form.
  const submit = async (run, { strategy, epochs }) => {
    await page.evaluate(() => { location.hash = "#/new"; });
    await heading("New job");
    await page.getByLabel("Registered data set").selectOption(name);
    await page.getByLabel("model.name", { exact: true }).selectOption("lenet");
    await page.getByLabel("strategy.name", { exact: true }).selectOption(strategy);
    await page.getByLabel("run.epochs", { exact: true }).fill(String(epochs));
    await page.getByLabel("run.name", { exact: true }).fill(run);
    await page.getByText("The configuration is good.").waitFor();
    await button("Submit").click();
    await heading(run);
    await page.getByRole("link", { name: /^(Watch its|Its) run/ }).click(); // a short one may have ended
    await page.getByRole("tablist", { name: "About this run" }).waitFor(); // the job's page has the same heading
    return decodeURIComponent(/#\/runs\/([^?]+)/.exec(page.url())[1]);
  };
  const first = `${name}-easgd`, second = `${name}-bsp`;
  const long = await submit(first, { strategy: "easgd", epochs: 3000 });

  // Live: figures grow by themselves, curves are drawn.
  await page.locator(".connection-live").waitFor();
  const steps = async () => Number((await figure("Steps").evaluate((dd) => dd.firstChild.textContent)).replace(/\D/g, ""));
  const grows = async (than) => {
    for (let i = 0; i < kWaitMs / 100; i += 1) {
      const now = await steps();
      if (now > than) return now;
      await page.waitForTimeout(100);
    }
    throw new Error(`no steps after ${than}`);
  };
  await grows(await grows(await steps()));
  await page.getByRole("img", { name: /^Accuracy: .*test .*%/ }).waitFor();

  // Stop with a checkpoint, resume, stop again.
  const stop = async () => {
    await button("Stop").click();
    await button("Save a checkpoint and stop").click();
    await button("Resume").waitFor();
    await page.locator(".run-line .badge", { hasText: "interrupted" }).waitFor();
  };
  await stop();
  const stopped = await steps();
  await page.getByRole("tab", { name: "Checkpoints" }).click();
  await page.getByRole("region", { name: /Checkpoints/ }).getByRole("row").nth(1).waitFor();
  await button("Resume").click();
  await page.locator(".connection-live").waitFor();
  assert.ok((await grows(stopped)) > stopped, "it goes on where it stopped");
  await stop();

  // The matrix: who waits for whom.
  await page.getByRole("tab", { name: "Waits" }).click();
  const matrix = page.getByRole("img", { name: "Seconds that each worker waited for each member" });
  await matrix.focus();
  await page.keyboard.press("ArrowDown");
  await page.getByText(/^worker \d+ waited .* for (worker|server) \d+/).first().waitFor();

  // A second run, to its end; the two beside each other.
  const short = await submit(second, { strategy: "bsp", epochs: 5 });
  await page.locator(".run-line .badge", { hasText: "done" }).waitFor();
  await visit("Runs");
  await page.getByLabel("Filter", { exact: true }).fill(`data.path~${name}`);
  await page.keyboard.press("Enter");
  for (const run of [long, short]) await page.getByLabel(`compare ${run}`).check();
  await page.getByRole("button", { name: "Compare 2 runs" }).click();
  await page.getByRole("rowheader", { name: "strategy.name" }).waitFor();
  const label = await page.getByRole("img", { name: /^test.accuracy: / }).getAttribute("aria-label");
  assert.match(label, new RegExp(`${first} .*%, ${second} .*%`));

  // Export.
  await page.evaluate((run) => { location.hash = `#/runs/${encodeURIComponent(run)}`; }, short);
  await heading(second);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download the directory" }).click()]);
  const file = join(scratch, `${name}.zip`);
  await download.saveAs(file);
  const zip = readFileSync(file);
  assert.equal(zip.subarray(0, 2).toString(), "PK");
  assert.ok(zip.includes(`${short.split("/").pop()}/summary.json`), "the archive has the summary");

  // The data set is removed, with its files.
  await visit("Data sets");
  await page.getByRole("link", { name, exact: true }).click();
  await heading(name);
  const path = await page.locator("p.muted code").first().textContent();
  assert.ok(existsSync(path), path);
  await button("Remove").click();
  await page.getByText("Its files are removed from the server.").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await heading("Data sets");
  for (let i = 0; i < kWaitMs / 100 && existsSync(path); i += 1) await page.waitForTimeout(100);
  assert.ok(!existsSync(path));
  assert.deepEqual(failures, []);
}

test("DataSetToAnalyticsInTheBrowserAlone", { skip: missing, timeout: 900_000 }, () => flow("bars", { width: 1280, height: 900 }));
test("DataSetToAnalyticsOnAPhone", { skip: missing, timeout: 900_000 }, () => flow("digits", { width: 390, height: 844 }));
