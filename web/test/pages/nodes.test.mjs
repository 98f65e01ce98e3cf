// Jobs on nodes, in the browser: real nodes with certificates, a job that is sent there by the form, watched, and goes on without one of them.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { certificates, complaints, endJobs, explained, hasServe, node, serve } from "./server.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
const troupe = process.env.TROUPE_PROGRAM ?? join(root, "build/bin/troupe");
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const missing = !browserPath ? "no Chromium: apt-get install chromium" : !existsSync(troupe) ? "no build/bin/troupe: scripts/build makes it"
  : !hasServe(troupe) ? "the stand-in for the service has no nodes" : false;
const shots = process.env.TROUPE_SCREENSHOTS || null;
const kWaitMs = 90_000; // a node is dead after 21 s of silence; the machine may be busy

let scratch, nodes = [], service, browser;

before(async () => {
  if (missing) return;
  scratch = mkdtempSync(join(tmpdir(), "troupe-nodes-"));
  mkdirSync(join(scratch, "runs"));
  const tls = certificates(troupe, scratch);
  for (let i = 0; i < 2; i += 1) nodes.push(await node(troupe, tls));
  service = await serve(root, troupe, join(scratch, "runs"), { env: tls });
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
}, { timeout: 300_000 });

after(async () => {
  if (service) await endJobs(service);
  await browser?.close();
  await service?.stop();
  for (const each of nodes) await each.stop();
  if (scratch) rmSync(scratch, { recursive: true, force: true });
});

async function overNodes(page) {
  page.setDefaultTimeout(kWaitMs);
  const failures = complaints(page);
  const heading = (text) => page.getByRole("heading", { level: 1, name: text, exact: true }).waitFor();
  const visit = async (entry) => {
    await page.getByLabel("Pages").getByRole("link", { name: entry, exact: true }).click();
    await heading(entry);
  };
  const button = (text) => page.getByRole("button", { name: text, exact: true });
  const card = ({ address }) => page.locator(".node-card", { has: page.getByRole("heading", { name: address, exact: true }) });
  const look = async (name) => {
    if (!shots) return;
    mkdirSync(shots, { recursive: true });
    for (const [width, height] of [[360, 780], [1920, 1080]])
      for (const colorScheme of ["light", "dark"]) {
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await page.screenshot({ path: join(shots, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      }
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  };
  await page.goto(`${service.origin}/#token=${service.token}`);
  await heading("Home");

  // The nodes are made known, and are alive.
  await visit("Nodes");
  for (const each of nodes) {
    await page.getByLabel("Add a node").fill(each.address);
    await button("Add").click();
    await card(each).locator(".badge", { hasText: /^alive$/ }).waitFor();
    await card(each).locator(".gauge").filter({ hasText: /^load[\d.]+ of \d+$/ }).waitFor();
    await card(each).locator(".gauge").filter({ hasText: /^memory[\d.]+.[kMGT]B of [\d.]+.[kMGT]B$/ }).waitFor();
    await page.waitForFunction(() => document.getElementById("address").value === "");
  }

  // A job for both of them, by the form.
  await visit("New job");
  await page.getByLabel("strategy.name", { exact: true }).selectOption("easgd"); // goes on without a worker
  await page.getByLabel("run.epochs", { exact: true }).fill("100000");
  await page.getByLabel("run.name", { exact: true }).fill("on the nodes");
  for (const each of nodes) await page.getByRole("checkbox", { name: each.address, exact: true }).check();
  await page.getByText("The configuration is good.").waitFor();
  await look("nodes-new-job");
  await button("Submit").click();
  await heading("on the nodes");
  await page.locator(".figure", { hasText: "Nodes" }).getByText(nodes.map((n) => n.address).join(",")).waitFor();
  await page.getByRole("link", { name: /^Watch its run/ }).click();
  await page.getByRole("tablist", { name: "About this run" }).waitFor();
  await page.locator(".connection-live").waitFor();
  const steps = async () => Number((await page.locator(".figure", { hasText: "Steps" }).locator("dd").evaluate((dd) => dd.firstChild.textContent)).replace(/\D/g, ""));
  const grows = async (than) => {
    for (let i = 0; i < kWaitMs / 100; i += 1) {
      const now = await steps();
      if (now > than) return now;
      await page.waitForTimeout(100);
    }
    throw new Error(`no steps after ${than}`);
  };
  await grows(await grows(await steps()));
  const run = page.url();

  // The nodes say what they run, and lead there.
  await visit("Nodes");
  for (const each of nodes) await card(each).getByRole("link", { name: "on the nodes", exact: true }).waitFor();
  await look("nodes-running");
  await page.waitForFunction((to) => [...document.querySelectorAll(".node-runs a")].every((a) => a.href === to), run);
  await card(nodes[0]).getByRole("link", { name: "on the nodes", exact: true }).click();
  await page.getByRole("tablist", { name: "About this run" }).waitFor();
  assert.equal(page.url(), run);

  // One is killed: it is shown dead, and the run goes on.
  await visit("Nodes");
  await nodes[1].kill();
  await card(nodes[1]).locator(".badge", { hasText: /^dead$/ }).waitFor();
  await card(nodes[0]).locator(".badge", { hasText: /^alive$/ }).waitFor();
  await look("nodes-dead");
  await card(nodes[0]).getByRole("link", { name: "on the nodes", exact: true }).click();
  await page.getByRole("tablist", { name: "About this run" }).waitFor();
  await page.getByRole("tab", { name: "Log" }).click();
  await page.getByLabel("notes").getByText(/lost/).first().waitFor();
  await grows(await grows(await steps()));
  await look("nodes-log");

  // The form offers it no more; the job is stopped.
  await visit("New job");
  await page.getByRole("checkbox", { name: nodes[0].address, exact: true }).waitFor();
  await page.getByRole("checkbox", { name: nodes[1].address, exact: true }).waitFor({ state: "detached" });
  await visit("Jobs");
  await page.getByRole("region", { name: "Jobs" }).getByRole("link", { name: "on the nodes", exact: true }).click();
  await button("Stop").click();
  await button("Save a checkpoint and stop").click();
  await page.locator(".run-line .badge", { hasText: /^stopped$/ }).waitFor();
  await visit("Nodes");
  await card(nodes[0]).locator(".node-runs").waitFor({ state: "detached" });
  await button(`remove ${nodes[1].address}`).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await card(nodes[1]).waitFor({ state: "detached" });
  assert.deepEqual(failures, []);
}

test("AJobRunsOnNodesIsWatchedAndGoesOnWithoutOneThatDies", { skip: missing, timeout: 600_000 }, async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" });
  const page = await context.newPage();
  await explained(page, () => overNodes(page));
  await context.close();
});
