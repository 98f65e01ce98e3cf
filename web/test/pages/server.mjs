// The service that the pages are tested against: `troupe serve` where the program has it, the mock of web/dev otherwise.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";

const kDeadlineMs = 60_000;

export const hasServe = (troupe) => process.env.TROUPE_WEB_MOCK === undefined && spawnSync(troupe, ["serve", "--help"]).status === 0;

/** Starts it on a free port; { origin, token, stop }. */
export function serve(root, troupe, runs, { role = "admin", nodes = null, env = {} } = {}) {
  const real = hasServe(troupe);
  // The service prints the token of a user once, when it is added.
  const added = real ? execFileSync(troupe, ["serve", "--dir", runs, "--add-user", `${role}-${process.hrtime.bigint()}`, "--role", role], { encoding: "utf8" }) : "";
  const child = real
    ? spawn(troupe, ["serve", "--listen", "127.0.0.1:0", "--dir", runs], { stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, ...env } })
    : spawn(process.execPath, [join(root, "web/dev/mock.mjs"), "--runs", runs, "--troupe", troupe, "--port", "0", "--role", role, ...(nodes ? ["--nodes", nodes] : [])],
      { stdio: ["ignore", "pipe", "inherit"] });
  const stop = () => new Promise((done) => {
    if (child.exitCode !== null) return done();
    child.once("exit", done);
    child.kill("SIGINT");
    return undefined;
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error("the service printed no address"));
    }, kDeadlineMs);
    let text = "";
    child.stdout.on("data", (part) => {
      text += part;
      const found = /(http:\/\/[^/\s]+)\/(?:#token=(\S+))?/.exec(text);
      if (!found) return;
      clearTimeout(timer);
      resolve({ origin: found[1], token: real ? /: (\S+)\s*$/.exec(added)[1] : found[2], real, stop });
    });
    child.once("exit", (code) => reject(new Error(`the service ended with exit code ${code}: ${text}`)));
  });
}

/** A node on a free port; { address, kill, stop }. `tls`: the files of its certificate, as environment variables. */
export function node(troupe, tls) {
  const child = spawn(troupe, ["node", "--listen", "127.0.0.1:0"], { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, ...tls } });
  const end = (signal) => new Promise((done) => {
    if (child.exitCode !== null || child.signalCode !== null) return done();
    child.once("exit", done);
    child.kill(signal);
    return undefined;
  });
  return new Promise((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`the node does not listen: ${text}`));
    }, kDeadlineMs);
    child.stderr.on("data", (part) => {
      text += part;
      const found = /listens on (127\.0\.0\.1:\d+)/.exec(text);
      if (!found) return;
      clearTimeout(timer);
      resolve({ address: found[1], kill: () => end("SIGKILL"), stop: () => end("SIGTERM") });
    });
    child.once("exit", (code) => {
      clearTimeout(timer);
      reject(new Error(`the node ended with exit code ${code}: ${text}`));
    });
  });
}

/** Certificates of a cluster, in `folder`, as the variables with which programs find them. */
export function certificates(troupe, folder) {
  for (const more of [["init"], ["node", "here"]]) execFileSync(troupe, ["certs", ...more], { cwd: folder, stdio: "ignore" });
  const file = (name) => join(folder, "certs", name);
  return { TROUPE_CA: file("ca.pem"), TROUPE_CERT: file("here.pem"), TROUPE_KEY: file("here.key") };
}

/** Does `work` on the page; what the page showed is told with a failure. */
export async function explained(page, work) {
  try {
    return await work();
  } catch (error) {
    const text = await page.locator("body").innerText({ timeout: 5000 }).catch(() => "");
    error.stack += `\n    the page was ${page.url()}:\n${text.slice(0, 3000)}`;
    throw error;
  }
}

/** What the page complains of from now on: exceptions, and errors on its console but those of requests. */
export function complaints(page, found = []) {
  page.on("pageerror", (e) => found.push(`${page.url()}: ${e.stack}`));
  page.on("console", (m) => m.type() === "error" && !/Failed to load resource|net::ERR_/.test(m.text()) && found.push(`${page.url()}: ${m.text()}`));
  return found;
}

/** Jobs survive the service: where a test has failed, one may run on. Ends them. */
export async function endJobs(service) {
  const headers = { Authorization: `Bearer ${service.token}`, "Content-Type": "application/json" };
  const jobs = async () => (await (await fetch(`${service.origin}/api/v1/jobs`, { headers })).json()).filter((j) => /queued|running|stopping/.test(j.state));
  for (let i = 0, left = await jobs(); left.length > 0 && i < 100; i += 1, left = await jobs()) {
    for (const { id } of left) await fetch(`${service.origin}/api/v1/jobs/${id}/stop`, { method: "POST", headers, body: '{"checkpoint": false}' });
    await new Promise((done) => setTimeout(done, 200));
  }
}
