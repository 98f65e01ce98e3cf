// Every page in Chromium, light and dark, on a phone and on a wide screen; and what a user does there.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { kNodes, search, train, writeMany } from "./fixtures.mjs";
import { complaints, serve } from "./server.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");
const troupe = process.env.TROUPE_PROGRAM ?? join(root, "build/bin/troupe");
const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const missing = !browserPath ? "no Chromium: apt-get install chromium" : !existsSync(troupe) ? "no build/bin/troupe: scripts/build makes it" : false;
const axe = readFileSync(join(root, "web/node_modules/axe-core/axe.min.js"), "utf8");
const shots = process.env.TROUPE_SCREENSHOTS || null;
const kWaitMs = 120_000;

let scratch, runs, names, many, sweep, service, browser;
const failures = []; // of any page: errors on the console, requests to elsewhere

/** A page that is signed in. Errors of scripts, of the content policy, and requests to other hosts are collected. */
async function opened({ width = 1280, height = 900, scheme = "light", token = service.token, at = service.origin } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(kWaitMs);
  complaints(page, failures);
  page.on("request", (r) => !r.url().startsWith(at) && !r.url().startsWith("blob:") && failures.push(`${page.url()}: asks ${r.url()}`));
  await page.goto(`${at}/#token=${token}`);
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  return page;
}
const drawn = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
/** The page that the address names is drawn, and waits for nothing. */
const settled = async (page) => {
  await drawn(page); // before that the page is still the one before
  await page.waitForFunction(() => document.querySelector(".loading") === null);
  await drawn(page);
};
const show = async (page, hash) => {
  await page.evaluate((to) => { location.hash = to; }, hash);
  await settled(page);
};
const api = async (path, ask = {}) => (await fetch(`${service.origin}/api/v1${path}`, { ...ask, headers: { Authorization: `Bearer ${service.token}`, "Content-Type": "application/json" } })).json();

before(async () => {
  if (missing) return;
  scratch = mkdtempSync(join(tmpdir(), "troupe-web-"));
  runs = join(scratch, "runs");
  mkdirSync(runs);
  names = train(runs, troupe, join(root, "configs/glyphs-easgd.toml"));
  sweep = search(runs, troupe, join(root, "configs/glyphs-easgd.toml"));
  many = writeMany(runs, join(runs, names["glyphs-easgd"], "config.toml"));
  writeFileSync(join(scratch, "nodes.json"), JSON.stringify(kNodes));
  service = await serve(root, troupe, runs, { nodes: join(scratch, "nodes.json") });
  if (service.real) await api("/datasets", { method: "POST", body: JSON.stringify({ name: "glyphs", kind: "glyphs" }) });
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
}, { timeout: 300_000 });

after(async () => {
  await browser?.close();
  await service?.stop();
  if (scratch) rmSync(scratch, { recursive: true, force: true });
});

test("TheServicesDashboardIsTheOneThatWasBuilt", { skip: missing }, async () => {
  const served = await (await fetch(`${service.origin}/`)).text();
  assert.equal(served, readFileSync(join(root, "build/web/index.html"), "utf8"), "another one is in the program: scripts/build embeds this one");
  const licences = await fetch(`${service.origin}/licences.txt`);
  assert.match(licences.headers.get("Content-Type"), /^text\/plain/);
  assert.match(await licences.text(), /^preact\n[^]*\nuplot\n/);
});

test("TokenLeavesTheAddressBarAndTheSessionStays", { skip: missing }, async () => {
  const page = await opened();
  assert.equal(new URL(page.url()).hash, "#/");
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  await page.evaluate((token) => { location.hash = `#token=${token}`; }, service.token); // pasted into the open page
  await page.waitForFunction(() => location.hash === "#/");
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(service.token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  await page.context().close();
});

test("RunsAreFilteredSortedAndCompared", { skip: missing }, async () => {
  const page = await opened();
  await page.keyboard.press("/"); // no filter here: it goes to the table
  await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
  const table = page.getByRole("region", { name: "Runs" });
  await table.getByRole("row").nth(4).waitFor();
  await page.locator("h1").click();
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement.id), "filter");
  await page.keyboard.type("strategy=bsp workers>2");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelectorAll(".table tbody tr").length === 1);
  await page.getByLabel("Filter", { exact: true }).fill("strategy");
  await page.getByText("column 1:").waitFor();
  await page.getByLabel("Filter", { exact: true }).fill("no.such.key=1");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  assert.equal(await table.count(), 0); // the runs of another filter are no answer
  await page.getByLabel("Filter", { exact: true }).fill("strategy=nonesuch");
  await page.keyboard.press("Enter");
  await page.getByText("No run fits this filter.").waitFor();
  await page.getByRole("button", { name: "Show all runs" }).click();
  await page.getByRole("button", { name: "loss", exact: true }).click();
  await page.waitForFunction(() => location.hash.includes("sort=loss"));
  for (const name of ["glyphs-easgd", "glyphs-bsp"]) await page.getByLabel(`compare ${names[name]}`).check();
  await page.getByRole("button", { name: "Compare 2 runs" }).click();
  await page.getByRole("rowheader", { name: "strategy.name" }).waitFor();
  await page.getByRole("img", { name: /^test.accuracy: / }).waitFor();
  assert.match(await page.getByRole("img", { name: /^test.accuracy: / }).getAttribute("aria-label"), /glyphs-easgd .*%, glyphs-bsp .*%/);
  await page.getByRole("button", { name: "samples" }).click();
  await page.waitForFunction(() => location.hash.includes("over=samples"));
  await page.context().close();
});

test("AComparisonIsSeenWhole", { skip: missing }, async () => {
  const page = await opened({ width: 1300 });
  await show(page, `#/compare?${Object.values(names).map((n) => `run=${encodeURIComponent(n)}`).join("&")}`);
  const regions = page.getByRole("region", { name: "Runs side by side" });
  await regions.nth(1).waitFor();
  for (const region of await regions.all())
    assert.ok(await region.evaluate((box) => box.scrollWidth <= box.clientWidth), await region.innerText());
  await page.context().close();
});

/** Waits until the service's events come to the page: a change is there without anything else being done. */
async function told(page, row) {
  const path = `/runs/${encodeURIComponent(names["glyphs-bsp"])}/notes`;
  for (let i = 0; ; i += 1) {
    await api(path, { method: "PUT", body: JSON.stringify({ tags: [`told-${i}`] }) }).catch(() => undefined);
    const came = await row.getByRole("button", { name: /^told-\d+$/ }).waitFor({ timeout: 5000 }).then(() => true, () => false);
    if (came) return;
    assert.ok(i < 24, "the page is not told of changes");
  }
}

test("WhatChangesWhileTheTabIsHiddenIsThereWhenItIsShown", { skip: missing }, async () => {
  const page = await opened();
  const seen = (state) => page.evaluate((to) => {
    Object.defineProperty(document, "visibilityState", { value: to, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, state);
  await show(page, "#/runs");
  const row = page.getByRole("region", { name: "Runs" }).getByRole("row", { name: names["glyphs-bsp"] });
  await row.waitFor();
  await told(page, row);
  await seen("hidden");
  const path = `/runs/${encodeURIComponent(names["glyphs-bsp"])}`;
  await api(`${path}/notes`, { method: "PUT", body: JSON.stringify({ tags: ["meanwhile"] }) }).catch(() => undefined);
  assert.deepEqual((await api(path)).tags, ["meanwhile"]);
  await page.waitForTimeout(1500); // a change that is told later is told to nobody
  await seen("visible");
  await page.getByRole("button", { name: "meanwhile" }).waitFor();
  await page.context().close();
});

test("ARunThatIsNotThereYetIsShownWhenItIs", { skip: missing }, async () => {
  const page = await opened();
  await show(page, "#/runs/20260101-000000-later");
  await page.getByRole("alert").getByText("there is no run 20260101-000000-later").waitFor();
  cpSync(join(runs, names["glyphs-bsp"]), join(scratch, "later"), { recursive: true });
  renameSync(join(scratch, "later"), join(runs, "20260101-000000-later")); // as a whole
  await page.locator(".run-line .badge", { hasText: "done" }).waitFor();
  await page.waitForFunction(() => document.querySelector('[role="alert"]') === null);
  await page.context().close();
  rmSync(join(runs, "20260101-000000-later"), { recursive: true });
});

test("TheTokenOfALinkIsKeptUntilTheServiceAnswers", { skip: missing }, async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(kWaitMs);
  await page.route("**/api/v1/**", (route) => route.abort());
  await page.goto(`${service.origin}/#token=${service.token}`);
  await page.getByRole("alert").getByText("The service cannot be reached.").waitFor();
  await page.unroute("**/api/v1/**");
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  await context.close();
});

test("EveryPageRecoversByItselfWhenTheServiceWasAway", { skip: missing, timeout: 600_000 }, async () => {
  const page = await opened();
  const easgd = encodeURIComponent(names["glyphs-easgd"]);
  const chosen = ["glyphs-easgd", "glyphs-bsp"].map((n) => `run=${encodeURIComponent(names[n])}`).join("&");
  const table = (name) => page.getByRole("region", { name }).getByRole("row").nth(1);
  const away = "**/api/v1/**";
  const pages = [["#/runs", () => table("Runs")], [`#/compare?${chosen}`, () => page.getByRole("img", { name: /^test.accuracy: / })],
    [`#/runs/${easgd}`, () => page.getByRole("img", { name: /^Accuracy: .*test .*%/ })], [`#/runs/${easgd}?tab=config`, () => page.getByLabel("the configuration", { exact: true })],
    ["#/models", () => table("Models")], ["#/models/lenet", () => table("Layers of lenet")], ["#/datasets", () => table("Data sets")], ["#/", () => page.locator(".run-list .run-link").first()],
    ["#/new", () => page.getByText("The configuration is good.")], ["#/help", () => page.getByRole("heading", { level: 1, name: "Help" })]];
  if (service.real)
    pages.push([`#/runs/${easgd}?tab=journal`, () => table("Events of the journal")], [`#/runs/${easgd}?tab=forecast`, () => page.getByText(/^bsp would (now be at epoch|have ended by now)/)],
      ["#/sweeps", () => table("Sweeps")], [`#/sweeps/${sweep}`, () => table("Trials, best first")], ["#/nodes", () => page.getByText("No node is registered.")], ["#/jobs", () => page.getByText("There are no jobs yet.")]);
  for (const [hash, there] of pages) {
    await page.route(away, (route) => route.abort());
    await page.evaluate((to) => { location.hash = to; }, hash);
    await page.getByRole("alert").first().waitFor();
    await page.unroute(away);
    await there().waitFor();
    await page.waitForFunction(() => document.querySelector('[role="alert"]') === null);
    await page.evaluate(() => { location.hash = "#/nonesuch"; });
    await page.getByText("There is no page “nonesuch”.").waitFor();
  }
  await page.context().close();
});

test("JobIsSubmittedWatchedStoppedAndResumed", { skip: missing, timeout: 600_000 }, async (t) => {
  if ((await fetch(`${service.origin}/api/v1/jobs`, { headers: { Authorization: `Bearer ${service.token}` } })).status === 404) return t.skip("this service has no jobs");
  const page = await opened();
  await show(page, "#/new");
  await page.getByText("The configuration is good.").waitFor();
  await page.getByLabel("run.epochs", { exact: true }).fill("-3");
  await page.getByText("1 option is wrong.").waitFor();
  assert.ok(await page.getByRole("button", { name: "Submit" }).isDisabled());
  await page.getByLabel("run.epochs", { exact: true }).fill("100000"); // it trains until it is stopped
  await page.getByLabel("run.name", { exact: true }).fill("from-the-browser");
  await page.getByText("The configuration is good.").waitFor();
  await page.getByRole("button", { name: "Submit" }).click();
  await page.getByRole("heading", { level: 1, name: "from-the-browser" }).waitFor();
  await page.getByRole("link", { name: /Watch its run/ }).click();
  await page.locator(".connection-live").waitFor();
  const samples = async () => Number((await page.locator(".figure", { hasText: "Steps" }).locator("small").textContent()).replace(/\D/g, ""));
  const grown = async (than) => {
    for (let i = 0; i < kWaitMs / 100; i += 1) {
      const now = await samples();
      if (now > than) return now;
      await page.waitForTimeout(100);
    }
    throw new Error(`no new samples after ${than}`);
  };
  const first = await grown(await samples());
  await page.context().setOffline(true);
  await page.context().setOffline(false);
  await page.locator(".connection-live").waitFor();
  const second = await grown(first);
  assert.ok(second > first);
  const run = decodeURIComponent(/#\/runs\/([^?]+)/.exec(page.url())[1]);
  await page.getByRole("button", { name: "Checkpoint" }).click();
  await page.getByText("A checkpoint is being saved.").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("button", { name: "Save a checkpoint and stop" }).click();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  const ended = async () => { // the service looks for changed runs at most every half second
    for (let i = 0; i < kWaitMs / 100; i += 1) {
      const { status } = await api(`/runs/${encodeURIComponent(run)}`);
      if (status !== "running") return status;
      await page.waitForTimeout(100);
    }
    return "running";
  };
  assert.equal(await ended(), "interrupted");
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await page.getByRole("link", { name: /^job / }).click();
  await page.getByLabel("output of the job").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("button", { name: "Save a checkpoint and stop" }).click();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  await page.context().close();
  return undefined;
});

test("JobIsTakenOutOfTheQueueStartedAndDeleted", { skip: missing, timeout: 600_000 }, async () => {
  const submitted = async (name) => (await api("/jobs", { method: "POST", body: JSON.stringify({ kind: "train",
    config: { "run.name": name, "run.epochs": 100_000, "model.name": "lenet", "data.name": "glyphs", "strategy.name": "easgd" } }) })).id;
  const first = await submitted("has-the-slot"); // there is one
  const second = await submitted("waits-for-the-slot");
  const page = await opened();
  const button = (name) => page.getByRole("button", { name, exact: true });
  const stateIs = (state) => page.locator(".run-line .badge", { hasText: new RegExp(`^${state}$`) }).waitFor();
  const answered = async (path, press) => {
    const [answer] = await Promise.all([page.waitForResponse((r) => r.request().method() !== "GET" && r.url().endsWith(path)), press()]);
    assert.ok(answer.ok(), `${path}: ${answer.status()}`);
  };
  const takeOut = async () => {
    await stateIs("queued");
    assert.equal(await button("Start").count(), 0);
    await button("Stop").click();
    await answered(`/jobs/${second}/stop`, () => button("Take it out of the queue").click());
    await stateIs("stopped");
  };
  await show(page, `#/jobs/${second}`);
  await page.getByRole("heading", { level: 1, name: "waits-for-the-slot" }).waitFor();
  await takeOut();
  assert.equal(await button("Resume").count(), 0); // it has no run
  let starts = 0;
  page.on("request", (r) => { starts += r.url().endsWith(`/jobs/${second}/start`) ? 1 : 0; });
  await answered(`/jobs/${second}/start`, () => button("Start").dblclick());
  await takeOut();
  assert.equal(starts, 1, "one click of two: the second would be refused");
  assert.equal(await page.getByRole("alert").count(), 0);
  await button("Delete").click();
  await answered(`/jobs/${second}`, () => page.getByRole("dialog").getByRole("button", { name: "Delete" }).click());
  await page.getByRole("heading", { level: 1, name: "Jobs" }).waitFor();
  await page.getByRole("link", { name: "has-the-slot" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "waits-for-the-slot" }).count(), 0);

  await show(page, `#/jobs/${first}`);
  const kill = async () => {
    await page.getByRole("link", { name: /Watch its run/ }).waitFor();
    const run = (await api(`/jobs/${first}`)).run;
    await button("Kill").click();
    await answered(`/jobs/${first}/stop`, () => page.getByRole("dialog").getByRole("button", { name: "Kill" }).click());
    await button("Start").waitFor();
    return run;
  };
  const before = await kill();
  await button("Resume").waitFor();
  await answered(`/jobs/${first}/start`, () => button("Start").click());
  assert.notEqual(await kill(), before);
  await page.context().close();
});

test("PicturesAreRegisteredWithTheirSizeWhichANewJobTakes", { skip: missing }, async () => {
  const page = await opened();
  for (const [split, label] of [["train", "headings"], ["train", "links"], ["test", "headings"], ["test", "links"]]) {
    mkdirSync(join(scratch, "pictures", split, label), { recursive: true });
    await (label === "headings" ? page.locator("h1") : page.getByRole("link").first()).screenshot({ path: join(scratch, "pictures", split, label, "1.png") });
  }
  await show(page, "#/datasets");
  await page.getByLabel("Name").fill("pictures");
  await page.getByLabel("Kind").selectOption("mnist");
  assert.equal(await page.getByLabel(/^Resize/).count(), 0); // the form of its images is known
  await page.getByLabel("Kind").selectOption("folder");
  await page.getByLabel("Path on the server").fill(join(scratch, "pictures"));
  await page.getByLabel(/^Resize/).fill("32");
  await page.getByRole("button", { name: "Register" }).click();
  await page.getByRole("link", { name: "pictures" }).click();
  await page.getByRole("heading", { level: 1, name: "pictures" }).waitFor();
  await page.locator(".figure", { hasText: "Resize" }).getByText("32 pixels").waitFor();
  if (service.real) { // the stand-in opens no data
    const figure = (label) => page.locator(".figure", { hasText: label }).locator("dd").textContent();
    assert.deepEqual([await figure("Classes"), await figure("Samples, train"), await figure("Shape")], ["2", "2", "3×32×32"]);
    const sides = async (n) => {
      await page.waitForFunction((all) => { const drawn = [...document.querySelectorAll(".samples img")]; return drawn.length === all && drawn.every((i) => i.naturalWidth > 0); }, n);
      return page.locator(".samples img").evaluateAll((all) => [...new Set(all.map((i) => `${i.naturalWidth}×${i.naturalHeight}`))]);
    };
    assert.deepEqual(await sides(2), ["32×32"]);
    await show(page, "#/datasets/glyphs");
    assert.deepEqual(await sides(24), ["28×28"]);
  }
  await show(page, "#/new");
  const checked = page.waitForRequest((r) => r.url().endsWith("/check") && /"data.resize":32/.test(r.postData() ?? ""));
  await page.getByLabel("Registered data set").selectOption("pictures");
  await checked;
  assert.equal(await page.getByLabel("Registered data set").inputValue(), "pictures");
  assert.equal(await page.locator('[id="o-data.resize"]').inputValue(), "32");
  await page.context().close();
});

test("ASweepIsSeenFromItsListToARunOfIt", { skip: missing }, async () => {
  if (!service.real) return;
  const page = await opened();
  await show(page, "#/sweeps");
  await page.getByRole("region", { name: "Sweeps" }).getByRole("link", { name: sweep }).click();
  await page.getByRole("heading", { level: 1, name: sweep }).waitFor();
  const answer = await api(`/sweeps/${sweep}`);
  assert.equal(answer.state, "finished");
  const table = page.getByRole("region", { name: "Trials, best first" });
  await table.getByRole("row").nth(9).waitFor();
  assert.equal(await table.getByRole("row").count(), 10); // and the heading
  const best = answer.trials[answer.ranking[0]];
  assert.equal(await table.getByRole("row").nth(1).getByRole("link").textContent(), String(best.trial).padStart(3, "0"));
  const lines = answer.trials.filter((t) => typeof t.scores.at(-1) === "number").length;
  assert.equal(await page.locator(".parallel-line").count(), lines);
  assert.equal(await page.locator(".parallel-line.best").count(), 1);
  assert.equal(await page.locator(".importance li").count(), 3);
  await table.getByRole("link").first().click();
  await page.getByRole("heading", { level: 1, name: best.name }).waitFor();
  await page.context().close();
});

test("ForecastSaysWhereOtherStrategiesWouldBe", { skip: missing }, async () => {
  if (!service.real) return;
  const page = await opened();
  await show(page, `#/runs/${encodeURIComponent(names["glyphs-easgd"])}?tab=forecast`);
  await page.getByText(/^bsp would (now be at epoch|have ended by now)/).waitFor();
  await page.getByText(/^easgd, as it is, would (now be at epoch|have ended by now)/).waitFor();
  await page.getByText("It knows times, not losses").waitFor();
  await page.getByRole("checkbox", { name: "ssp" }).check();
  await page.getByText(/^ssp would (now be at epoch|have ended by now)/).waitFor();
  assert.match(page.url(), /beside=bsp%2Cssp/);
  await page.getByRole("img", { name: /Samples over time: the run [\d,]+, easgd, simulated/ }).waitFor();
  await page.context().close();
});

test("JournalLeadsToTheReplayOfAnEvent", { skip: missing }, async () => {
  if (!service.real) return;
  const page = await opened();
  const run = names["glyphs-easgd"];
  const { per_worker: workers } = await api(`/runs/${encodeURIComponent(run)}/summary`);
  const { worker, steps } = workers.reduce((a, b) => (b.steps > a.steps ? b : a)); // how many each makes is the machine's luck
  await show(page, `#/runs/${encodeURIComponent(run)}?tab=journal`);
  await page.getByText("No replay of this segment has been kept.").waitFor();
  await page.getByLabel("member").selectOption(`worker${worker}`);
  await page.getByLabel("from step").fill("5");
  await page.getByRole("cell", { name: /^StepDone 5 / }).waitFor();
  await page.getByRole("row", { name: /StepDone 5 / }).getByRole("button").click();
  const command = await page.getByLabel("the command that leads there", { exact: true }).textContent();
  const [, place] = /^troupe replay \S+ --until '(1\/worker\d+#\d+)'$/.exec(command);
  const reached = JSON.parse(execFileSync(troupe, ["replay", join(runs, run), "--until", place, "--json"], { encoding: "utf8" }));
  assert.equal(reached.members[0].member, `worker ${worker}`);
  assert.equal(reached.members[0].step, 6, "steps are numbered from 0");
  await page.getByText("No replay has reached this event yet.").waitFor();
  await page.getByRole("button", { name: "Reload" }).click();
  await page.getByText(/^Replayed .*, not to the segment's end\.$/).waitFor();
  await page.getByText(/The replay of .* reached this event through the same ones before\.$/).waitFor();
  await page.setViewportSize({ width: 360, height: 780 }); // a list that is short enough to be drawn as a whole
  await page.getByLabel("from step").fill(String(steps - 5));
  await page.getByRole("cell", { name: new RegExp(`^StepDone ${steps - 5} `) }).waitFor();
  const over = () => page.evaluate(() => [...document.querySelectorAll("body *")].filter((e) => !e.parentElement.closest(".table-box") && e.getBoundingClientRect().right > innerWidth + 0.5).map((e) => `${e.tagName}.${e.className}`).concat(document.scrollingElement.scrollWidth > innerWidth ? ["the page"] : []));
  assert.deepEqual((await over()).filter((e) => !/tabs|BUTTON/.test(e)), []);
  await page.context().close();
});

test("JournalSaysOfEachHashWhetherAReplayCameToIt", { skip: missing }, async () => {
  if (!service.real) return;
  const page = await opened();
  const run = names["glyphs-bsp"], kept = join(runs, run, "replay.json");
  rmSync(kept, { force: true });
  await show(page, `#/runs/${encodeURIComponent(run)}?tab=journal`);
  const step = (await api(`/runs/${encodeURIComponent(run)}/summary`)).per_worker[0].steps - 2; // numbered from 0
  const last = (await api(`/runs/${encodeURIComponent(run)}/journal?limit=1000&member=worker0&step=${step}`)).events.filter((e) => e.hash !== null).at(-1);
  assert.equal(last.replay, null);
  await page.getByLabel("member").selectOption("worker0");
  await page.getByLabel("from step").fill(String(step));
  const row = page.getByRole("row").filter({ has: page.getByRole("button", { name: `replay up to ${last.until}`, exact: true }) });
  await row.getByText("not replayed").waitFor();
  execFileSync(troupe, ["replay", join(runs, run)], { stdio: "ignore" });
  await page.getByRole("button", { name: "Reload" }).click();
  await row.getByText("same hash").waitFor();
  await page.getByText(/^Replayed .*: ([\d,]+ hashes, all|1 hash,) as recorded, to the end of segment 1\.$/).waitFor();
  await row.getByRole("button").click();
  await page.getByText(/The replay of .* reached the same hash\.$/).waitFor();
  const replays = JSON.parse(readFileSync(kept, "utf8")); // a replay by another machine, in whose numbers one bit was another
  const [segment] = replays.replays[0].segments;
  segment.members.worker0 = last.event;
  segment.difference = { member: "worker0", event: last.event, message: `worker 0, event ${last.event}: params has another hash` };
  writeFileSync(kept, JSON.stringify(replays));
  await page.getByRole("button", { name: "Reload" }).click();
  await row.getByText("differs").waitFor();
  await page.getByText(/^Replayed .*: it differs at event [\d,]+ of worker0: worker 0, event \d+: params has another hash$/).waitFor();
  await page.getByText(/The replay of .* found another hash here\.$/).waitFor();
  for (const [width, height] of shots ? kSizes : [])
    for (const colorScheme of ["light", "dark"]) {
      mkdirSync(shots, { recursive: true });
      await page.setViewportSize({ width, height });
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.screenshot({ path: join(shots, `run-journal-differs-${width}-${colorScheme}.png`), fullPage: true });
    }
  await page.context().close();
});

test("FiveHundredWorkersAreDrawnWithoutFiveHundredRows", { skip: missing }, async () => {
  const page = await opened();
  await show(page, `#/runs/${many}?tab=workers`);
  await page.getByRole("heading", { name: "500 workers" }).waitFor();
  assert.ok((await page.locator(".table tbody tr").count()) < 100);
  await page.getByRole("region", { name: "Workers" }).evaluate((box) => { box.scrollTop = box.scrollHeight; });
  await page.getByRole("cell", { name: "499", exact: true }).waitFor();
  await page.getByRole("tab", { name: "Workers" }).focus();
  await page.keyboard.press("ArrowRight");
  const matrix = page.getByRole("img", { name: /Seconds that each worker waited/ });
  await matrix.waitFor();
  await matrix.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.getByText(/^worker 0 waited .* for worker 1$|^worker 1 waited .* for worker \d+$|^worker 0 waited/).waitFor();
  await page.context().close();
});

test("MembersComeAndGoOnTheLossAxisAndTheirSamplesAreAccountedFor", { skip: missing }, async () => {
  const page = await opened();
  await show(page, `#/runs/${many}?tab=members`);
  await page.getByRole("img", { name: /^500 workers, 3 of them not there at the end; \d+ events$/ }).waitFor(); // 0, 246, 492: lost, and not back
  await page.getByText("worker 0 lost (n0:4242)").first().waitFor();
  assert.equal(await page.locator(".figure", { hasText: "Goodput" }).locator("dd").textContent().then((t) => t.slice(0, 4)), "79.2"); // 1.9 / 2.4
  await page.getByRole("img", { name: /^done 90.0.*, given up 2.0.*, leased 3.0/ }).waitFor();
  await page.getByRole("img", { name: /^‖x − c‖ of any worker: / }).waitFor();
  const axis = page.getByRole("group", { name: "Horizontal axis" });
  await axis.getByRole("button", { name: "epochs" }).click();
  await page.getByRole("img", { name: /^500 workers, 3 of them/ }).waitFor();
  await page.context().close();
});

test("BytesOfARunAreThoseOfItsLinksByPurpose", { skip: missing }, async () => {
  const page = await opened();
  await show(page, `#/runs/${encodeURIComponent(names["glyphs-easgd"])}?tab=traffic`);
  const matrix = page.getByRole("img", { name: /Bytes of each worker's exchanges/ });
  await matrix.waitFor();
  await matrix.focus();
  await page.keyboard.press("ArrowDown");
  await page.getByText(/^worker 0 and server 0: [\d.]+.[kMG]B$/).waitFor();
  const { per_worker } = await api(`/runs/${encodeURIComponent(names["glyphs-easgd"])}/summary`);
  for (const w of per_worker) assert.equal(w.traffic.reduce((n, [, , bytes]) => n + bytes, 0), w.bytes);
  await show(page, `#/runs/${many}?tab=traffic`);
  await page.getByRole("group", { name: "Purpose" }).getByRole("button", { name: "peer" }).click();
  await matrix.focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.getByText(/^worker 0 and worker 1: .* of peer$|^worker 1 and worker \d+: /).waitFor();
  await page.context().close();
});

test("AReaderIsOfferedNothingThatChangesARun", { skip: missing }, async () => {
  await service.stop(); // one service for a directory of runs
  const reader = await serve(root, troupe, runs, { role: "read" });
  try {
    const page = await opened({ token: reader.token, at: reader.origin });
    await show(page, `#/runs/${encodeURIComponent(names["glyphs-bsp"])}`);
    await page.getByRole("heading", { level: 1, name: "glyphs-bsp" }).waitFor();
    for (const name of ["Stop", "Remove", "Tags and note", "New job like this"]) assert.equal(await page.getByRole("button", { name }).count(), 0);
    await show(page, "#/new");
    await page.getByText("Your role is read").waitFor();
    assert.ok(await page.getByRole("button", { name: "Submit" }).isDisabled());
    await page.context().close();
  } finally {
    await reader.stop();
    service = await serve(root, troupe, runs, { nodes: join(scratch, "nodes.json") });
  }
});

test("KeyboardReachesTheContentAndTheThemeIsKept", { skip: missing }, async () => {
  const page = await opened();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.getByRole("button", { name: "Dark" }).click();
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Home" }).waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.context().close();
});

const kSizes = [[360, 780], [1920, 1080]];
const pagesOf = () => {
  const easgd = encodeURIComponent(names["glyphs-easgd"]);
  const chosen = Object.values(names).map((n) => `run=${encodeURIComponent(n)}`).join("&");
  const tabs = ["workers", "waits", "staleness", "members", "traffic", "log", "config", "checkpoints", "forecast", "journal"];
  return [["home", "#/"], ["runs", "#/runs"], ["runs-none", "#/runs?filter=tau%3D999"], ["compare", `#/compare?${chosen}`], ["run", `#/runs/${easgd}`],
    ...tabs.map((t) => [`run-${t}`, `#/runs/${easgd}?tab=${t}`]), ["many", `#/runs/${many}`], ...tabs.slice(0, 6).map((t) => [`many-${t}`, `#/runs/${many}?tab=${t}`]),
    ["run-bsp", `#/runs/${encodeURIComponent(names["glyphs-bsp"])}`], ["run-missing", "#/runs/nonesuch"], ["new", "#/new"], ["new-like", `#/new?from=${easgd}`], ["jobs", "#/jobs"], ["job", "#/jobs/1"],
    ["models", "#/models"], ["model", "#/models/lenet"], ["datasets", "#/datasets"], ["dataset", "#/datasets/glyphs"], ["nodes", "#/nodes"], ["sweeps", "#/sweeps"], ["sweep", `#/sweeps/${sweep}`], ["help", "#/help"], ["lost", "#/nonesuch"]];
};

for (const [width, height] of kSizes)
  for (const scheme of ["light", "dark"])
    test(`EveryPageIsAccessibleAndFits${width}Pixels${scheme === "dark" ? "Dark" : "Light"}`, { skip: missing, timeout: 600_000 }, async () => {
      const page = await opened({ width, height, scheme });
      const faults = [];
      for (const [name, hash] of pagesOf()) {
        await show(page, hash);
        await page.waitForTimeout(150); // charts and pictures draw after the data is there
        const over = await page.evaluate(() => document.scrollingElement.scrollWidth - window.innerWidth);
        if (over > 0) faults.push(`${name}: ${over} px wider than the screen`);
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        for (const v of violations)
          if (v.impact === "serious" || v.impact === "critical") faults.push(`${name}: ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ") + " " + (n.any[0]?.message ?? "")).join("; ")}`);
        if (shots) {
          mkdirSync(shots, { recursive: true });
          await page.screenshot({ path: join(shots, `${name}-${width}-${scheme}.png`), fullPage: true });
        }
      }
      const look = async (name) => {
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
        for (const v of violations) if (v.impact === "serious" || v.impact === "critical") faults.push(`${name}: ${v.id}: ${v.nodes[0].target.join(" ")}`);
        if (shots) await page.screenshot({ path: join(shots, `${name}-${width}-${scheme}.png`) });
      };
      await show(page, `#/runs/${encodeURIComponent(names["glyphs-easgd"])}`);
      await page.getByRole("button", { name: "Tags and note" }).click();
      await look("dialog");
      await page.keyboard.press("Escape");
      await page.locator("dialog").waitFor({ state: "detached" });
      if (width < 500) {
        await page.getByRole("button", { name: "Menu" }).click();
        await look("menu");
      }
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByLabel("Token").waitFor();
      await look("sign-in");
      await page.context().close();
      assert.deepEqual(faults, []);
    });

test("NoPageFailedOrAskedAnotherHost", { skip: missing }, () => assert.deepEqual([...new Set(failures)], []));
