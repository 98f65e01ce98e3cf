// Stands in for `troupe serve` while the dashboard is developed: real run directories, read through the program's own commands, and jobs
// that are real `troupe train` processes. No tokens but one, no limits, one user: not for anyone else's use.
//
//   node web/dev/mock.mjs [--runs DIR] [--troupe build/bin/troupe] [--port 8090] [--role admin] [--nodes nodes.json]
import { execFile, spawn } from "node:child_process";
import { createReadStream, existsSync, mkdtempSync, openSync, readFileSync, readdirSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, dirname, extname, join, normalize, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const { values: given } = parseArgs({ options: {
  runs: { type: "string", default: "runs" }, troupe: { type: "string", default: join(root, "build/bin/troupe") },
  port: { type: "string", default: "8090" }, role: { type: "string", default: "admin" }, token: { type: "string", default: "development" },
  nodes: { type: "string" },
} });
const runs = realpathSync(given.runs);
const run = promisify(execFile);
const began = new Date().toISOString();
const scratch = mkdtempSync(join(tmpdir(), "troupe-mock-"));
const nodes = given.nodes ? JSON.parse(readFileSync(given.nodes, "utf8")) : [];
const datasets = new Map([["glyphs", { name: "glyphs", kind: "glyphs", path: "", resize: 0, uploaded: false, used_by: [] }]]);
const kSlots = 1;
const jobs = [];

class Refusal extends Error {
  constructor(status, code, message, more = {}) {
    super(message);
    Object.assign(this, { status, code, more });
  }
}
const troupe = async (...args) => {
  try {
    return (await run(given.troupe, args, { maxBuffer: 1 << 28 })).stdout;
  } catch (error) {
    throw new Refusal(400, "config", (error.stderr || error.message).trim().split("\n").pop().replace(/^troupe: /, ""));
  }
};
const lines = async (...args) => (await troupe(...args)).split("\n").filter(Boolean).map((line) => JSON.parse(line));
const file = (name, ...parts) => {
  const path = normalize(join(runs, name, ...parts));
  if (!path.startsWith(runs + "/") || !existsSync(join(runs, name))) throw new Refusal(404, "unknown", `no run ${name}`);
  return path;
};
const metrics = (name) => {
  const path = file(name, "metrics.jsonl");
  return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
};
const parsed = (data) => data.toString().split("\n").filter(Boolean).flatMap((line) => { try { return [JSON.parse(line)]; } catch { return []; } });

async function list(query) {
  const columns = ["run", "name", "status", "started", "strategy", "model", "dataset", "workers", "epochs", "steps", "accuracy", "loss", "train_loss",
    "images_per_s", "wall_s", "tags", "grid", ...(query.get("columns") ?? "").split(",").filter(Boolean)];
  const sort = query.get("sort") ? ["--sort", query.get("sort"), ...(query.get("descending") === "0" ? ["--ascending"] : [])] : [];
  const filter = query.get("filter") ? [query.get("filter")] : [];
  const rows = await lines("runs", "list", "--dir", runs, "--json", "--limit", "0", "--columns", columns.join(), ...sort, ...filter);
  const from = Number(query.get("offset") ?? 0);
  const cut = rows.slice(from, from + Number(query.get("limit") ?? 50));
  return { runs: cut.map((r) => ({ ...r, tags: r.tags ?? [], job: jobs.findLast?.((j) => j.run === r.run)?.id ?? null })), total: rows.length };
}

async function details(name) {
  file(name);
  const [found] = await lines("runs", "show", name, "--dir", runs, "--json");
  const started = parsed(metrics(name)).filter((l) => l.kind === "started").pop() ?? null;
  return { ...found, job: jobs.filter((j) => j.run === name).pop()?.id ?? null, directory: join(runs, name), parameters: started?.parameters ?? null, started_line: started };
}

async function state(name) {
  const data = metrics(name);
  const position = data.lastIndexOf(10) + 1;
  const all = parsed(data.subarray(0, position));
  const begun = all.filter((l) => l.kind === "started").pop();
  if (!begun) throw new Refusal(404, "unknown", `${name} has no metrics.jsonl yet`);
  const session = all.slice(all.lastIndexOf(begun));
  const latest = new Map(session.filter((l) => l.kind === "worker").map((l) => [l.worker, l]));
  const distances = new Map(session.filter((l) => l.kind === "worker" && l.recent?.distance !== undefined).map((l) => [l.worker, l.recent.distance]));
  const t = all[all.length - 1].t;
  const workers = [...latest.values()].sort((a, b) => a.worker - b.worker).map(({ waits, staleness, recent, ...w }) => ({
    ...w, samples_per_s: w.t > 0 ? w.samples / w.t : 0, loss: recent?.loss ?? null, accuracy: recent?.accuracy ?? null, distance: distances.get(w.worker) ?? null, seconds_since_report: t - w.t, sums: { waits, staleness } }));
  const samples = workers.reduce((sum, w) => sum + w.samples, 0);
  const names = Array.from({ length: begun.workers }, (_, i) => `worker ${i}`);
  const edges = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
  const status = (await list(new URLSearchParams({ filter: `run="${name}"` }))).runs[0]?.status ?? "unknown";
  return {
    t, status, epoch: begun.epoch_position + samples / begun.epoch_samples, epochs: begun.epochs, steps: workers.reduce((s, w) => s + w.steps, 0),
    samples: Math.round(begun.epoch_position * begun.epoch_samples) + samples, samples_per_s: t > 0 ? samples / t : 0, position, servers: begun.servers, error: all.filter((l) => l.kind === "ended").pop()?.error ?? null,
    waits: { rows: workers.map((w) => `worker ${w.worker}`), columns: [...names, ...Array.from({ length: begun.servers }, (_, i) => `server ${i}`)], seconds: workers.map((w) => w.sums.waits) },
    staleness: { edges, workers: workers.map((w) => ({ worker: w.worker, mean: w.staleness_mean, max: w.staleness_max, updates: w.sums.staleness })) }, workers: workers.map(({ sums, ...w }) => w),
    members: all.flatMap((l) => (l.kind === "member" ? [l] : l.kind === "started" ? [{ t: l.t, event: "started", worker: null, epoch: l.epoch_position }] : [])).slice(-1000),
    ledger: all.filter((l) => l.kind === "ledger").pop() ?? null,
    notes: all.filter((l) => l.kind === "note").slice(-50), evaluations: [],
  };
}

async function curves(name, query) {
  const { curves: found, started_line: begun } = await details(name);
  const wanted = (query.get("series") ?? Object.keys(found).join()).split(",");
  const most = Number(query.get("points") ?? 2000);
  return { series: Object.fromEntries(wanted.filter((s) => found[s]).map((s) => {
    const every = Math.max(1, Math.ceil(found[s].length / most));
    return [s, found[s].filter((_, i) => i % every === 0 || i === found[s].length - 1).map(([e, t, v]) => [e, t, e * (begun?.epoch_samples ?? 0), v])];
  })) };
}

/** The table of options, from the program's own help. */
async function options() {
  const text = await troupe("train", "--help", "all");
  const rows = [];
  let section = "", strategy = null;
  for (const line of text.split("\n")) {
    const head = /^\[(\w+)\]/.exec(line), scope = /^ {2}with strategy\.name = "(\w+)":/.exec(line);
    const key = /^ {2}(\w+) = (.+?)(?: {2,}(.*))?$/.exec(line);
    if (head) [section, strategy] = [head[1], null];
    else if (scope) strategy = scope[1];
    else if (section && key) rows.push({ key: `${section}.${key[1]}`, section, raw: key[2].trim(), help: key[3] ?? "", ...(strategy ? { strategies: [strategy] } : {}) });
    else if (section && /^ {20,}\S/.test(line) && rows.length) rows[rows.length - 1].help += ` ${line.trim()}`;
  }
  return rows.map(({ raw, help, ...row }) => {
    let value = raw;
    try { value = JSON.parse(raw); } catch { /* a word */ }
    const rule = /\[([^[\]]*)\]$/.exec(help.trim())?.[1] ?? "";
    const choices = /\|/.test(rule) && !/"|N /.test(rule) ? rule.replace(/^.*(one of|is) /, "").split("|").map((c) => c.trim()) : undefined;
    const between = /between ([\d.,e-]+) and ([\d.,e]+)/.exec(rule), least = /≥ ([\d.]+)/.exec(rule);
    const number = (s) => Number(s.replace(/,/g, ""));
    const type = typeof value === "boolean" ? "boolean" : typeof value === "number" ? (/[.e]/.test(raw) ? "number" : "integer") : Array.isArray(value) ? "numbers" : value === "auto" ? "number" : "text";
    return { ...row, type, default: value, help: help.replace(/\s*\[[^[\]]*\]$/, "").trim(), rule, ...(choices ? { choices } : {}),
      ...(between ? { minimum: number(between[1]), maximum: number(between[2]) } : least ? { minimum: number(least[1]) } : {}) };
  });
}

const toml = (config) => typeof config === "string" ? config
  : Object.entries(config).map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`).join("");
function written(config) {
  const path = join(scratch, `config-${Date.now()}-${Math.floor(Math.random() * 1e9)}.toml`);
  writeFileSync(path, toml(config));
  return path;
}
async function check(body) {
  const text = toml(body.toml ?? body.config ?? {});
  try {
    const said = await troupe("check", written(text));
    return { ok: true, errors: [], config: text, warnings: said.split("\n").filter((l) => /warning/.test(l)) };
  } catch (error) {
    const told = error.message.replace(/^.*config-\d+-\d+\.toml(:\d+)?: /, "");
    return { ok: false, errors: [{ key: /([a-z_]+\.[a-z_0-9]+)/.exec(told)?.[1], message: told }], config: "", warnings: [] };
  }
}

const followers = new Set();
const tell = (kind, row) => followers.forEach((f) => f.write(`event: ${kind}\ndata: ${JSON.stringify(row)}\n\n`));
const jobDetails = ({ process: _, output: __, args: ___, ...job }) => job;
const shown = (job) => { const { config: _, command_line: __, history: ___, ...row } = jobDetails(job); return row; };
const noted = (job, event) => job.history.push({ at: new Date().toISOString(), event });
function queue(job, event, args) {
  Object.assign(job, { state: "queued", args, started: null, ended: null, exit_code: null, error: null });
  noted(job, event);
  tell("job", shown(job));
  beginNext();
}
/** The next job of the queue, when one may run. */
function beginNext() {
  if (jobs.filter((j) => j.process).length >= kSlots) return;
  const [next] = jobs.filter((j) => j.state === "queued").sort((a, b) => b.priority - a.priority || a.id - b.id);
  if (next) begin(next, next.args);
}
function begin(job, args) {
  job.output ??= join(scratch, `job-${job.id}.log`);
  const out = openSync(job.output, "a");
  const child = spawn(given.troupe, ["train", ...args, "--plain"], { stdio: ["ignore", out, out] });
  const before = new Set(readdirSync(runs));
  Object.assign(job, { process: child, state: "running", started: new Date().toISOString(), ended: null, exit_code: null, error: null, command_line: `troupe train ${args.join(" ")}` });
  noted(job, "started");
  const look = setInterval(() => {
    job.run ??= readdirSync(runs).find((n) => !before.has(n) && existsSync(join(runs, n, "metrics.jsonl"))) ?? null;
    tell("job", shown(job));
    if (job.run) clearInterval(look);
  }, 200);
  child.on("exit", (code) => {
    clearInterval(look);
    const stopped = job.state === "stopping";
    Object.assign(job, { state: stopped ? "stopped" : code === 0 ? "done" : "failed", exit_code: code, ended: new Date().toISOString(), process: null });
    noted(job, `ended with exit code ${code}`);
    tell("job", shown(job));
    tell("run", { run: job.run, status: job.state });
    beginNext();
  });
  tell("job", shown(job));
}

function follow(request, response, path, from) {
  response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
  response.write(": hello\n\n");
  let position = from, busy = false;
  const timer = setInterval(() => {
    if (busy || !existsSync(path) || statSync(path).size <= position) return;
    busy = true;
    let rest = Buffer.alloc(0);
    createReadStream(path, { start: position }).on("data", (part) => {
      rest = Buffer.concat([rest, part]);
      for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.subarray(end + 1)) {
        position += end + 1;
        const line = rest.subarray(0, end).toString();
        response.write(`event: ${/"kind":"(\w+)"/.exec(line)?.[1] ?? "line"}\nid: ${position}\ndata: ${line}\n\n`);
      }
    }).on("close", () => { busy = false; });
  }, 200);
  request.on("close", () => clearInterval(timer));
}

async function answer(method, parts, query, body) {
  const [what, name, sub] = parts;
  const job = what === "jobs" && name ? jobs.find((j) => String(j.id) === name) : null;
  if (what === "jobs" && name && !job) throw new Refusal(404, "unknown", `no job ${name}`);
  const route = `${method} ${what}${name ? "/*" : ""}${sub ? `/${sub}` : ""}`;
  switch (route) {
    case "GET server": return { version: (await troupe("--version")).trim().replace(/^troupe /, "").split("\n")[0], started: began, directory: runs, user: "developer", role: given.role, slots: { total: kSlots, running: jobs.filter((j) => j.process).length }, upload_limit: 0, features: { cuda: false, mpi: false, ucx: false, web: true } };
    case "GET runs": return list(query);
    case "GET runs/*": { const { curves: _, ...rest } = await details(name); return rest; }
    case "GET runs/*/curves": return curves(name, query);
    case "GET runs/*/state": return state(name);
    case "GET runs/*/config": return { text: readFileSync(file(name, "config.toml"), "utf8") };
    case "GET runs/*/notes": return { notes: parsed(metrics(name)).filter((l) => l.kind === "note") };
    case "GET runs/*/checkpoints": {
      const folder = file(name, "checkpoints");
      if (!existsSync(folder)) return { checkpoints: [] };
      return { checkpoints: readdirSync(folder).filter((f) => f.endsWith(".safetensors")).map((f) => ({ file: f, step: Number(/step-(\d+)/.exec(f)?.[1] ?? NaN) || 0, epoch: null, bytes: statSync(join(folder, f)).size, written: statSync(join(folder, f)).mtime.toISOString() })) };
    }
    case "PUT runs/*/notes": {
      if (body.tags?.length) await troupe("runs", "tag", name, ...body.tags, "--dir", runs);
      if (body.note !== undefined) await troupe("runs", "note", name, body.note, "--dir", runs);
      return {};
    }
    case "DELETE runs/*": return troupe("runs", "rm", name, "--yes", "--dir", runs).then(() => ({}));
    case "GET compare": return (await lines("runs", "compare", ...query.getAll("run"), "--dir", runs, "--json"))[0];
    case "GET options": return { options: await options() };
    case "POST check": return check(body);
    case "GET strategies": return { strategies: await lines("strategies", "--json") };
    case "GET models": { const text = await troupe("models"); return { models: (await lines("models", "--json")).filter((m) => m.model).map((m) => ({ name: m.model, parameters: m.parameters, input: m.input.split("x").map(Number), classes: m.input.startsWith("3x22") ? 1000 : 10, summary: new RegExp(`^ {2}${m.model}\\s+[\\d,]+ parameters, input \\S+: ((?:.*\\n {5,})*.*)`, "m").exec(text)?.[1].replace(/\s+/g, " ") ?? "" })) }; }
    case "GET models/*": {
      const known = (await answer("GET", ["models"], query)).models.find((m) => m.name === name);
      if (!known) throw new Refusal(404, "unknown", `no model ${name}`);
      const input = query.get("input")?.split("x").map(Number) ?? known.input;
      const config = written(`model.name = "${name}"\ndata.name = "synthetic"\ndata.shape = [${input.join()}]\nstrategy.name = "bsp"\ncluster.workers = 1\ndata.batch = 1\ncluster.synthetic_step_ms = 1.0\n`);
      const [plan] = await lines("train", config, "--dry-run", "--json");
      return { ...known, input, parameters: plan.parameters, flops: plan.flops, layers: plan.layers.map((l) => ({ name: l.name, kind: l.type, inputs: [], shape: [...l.output.split("x").map(Number), 1, 1].slice(0, 3), parameters: l.parameters, flops: l.flops })) };
    }
    case "GET datasets": return [...datasets.values()];
    case "POST datasets": if (datasets.has(body.name)) throw new Refusal(409, "exists", `a data set ${body.name} is registered already`); datasets.set(body.name, { path: "", resize: 0, uploaded: false, ...body, used_by: [] }); return datasets.get(body.name);
    case "GET datasets/*": if (!datasets.has(name)) throw new Refusal(404, "unknown", `no data set ${name}`); return { ...datasets.get(name), classes: Array.from({ length: 10 }, (_, i) => String(i)), samples: { train: 60000, test: 10000 }, shape: [1, 28, 28] };
    case "DELETE datasets/*": datasets.delete(name); return {};
    case "GET sweeps": return { sweeps: [], problems: [] };
    case "GET sweeps/*": throw new Refusal(404, "unknown", `${name}: there is no such sweep`);
    case "GET nodes": return nodes;
    case "POST nodes": nodes.push({ address: body.address, state: "dead", heard_s: null, cores: null, load: null, memory: null, memory_free: null, gpus: [], runs: [], error: null }); return nodes[nodes.length - 1];
    case "DELETE nodes/*": nodes.splice(nodes.findIndex((n) => n.address === name), 1); return {};
    case "GET jobs": return jobs.map(shown).reverse();
    case "POST jobs": {
      const checked = await check({ toml: toml(body.config) });
      if (!checked.ok) throw new Refusal(400, "config", checked.errors[0].message, { errors: checked.errors });
      const made = { id: (jobs[jobs.length - 1]?.id ?? 0) + 1, name: body.name ?? body.config?.["run.name"] ?? /name *= *"([^"]*)"/.exec(toml(body.config))?.[1] ?? "job", kind: body.kind, state: "queued", priority: body.priority ?? 0, submitted: new Date().toISOString(), started: null, ended: null, exit_code: null, error: null, run: null, workers: body.config?.["cluster.workers"] ?? null, nodes: null, user: "developer", config: toml(body.config), command_line: "", history: [] };
      jobs.push(made);
      queue(made, "submitted", [written(body.config), "--set", `run.dir=${runs}`]);
      return shown(made);
    }
    case "GET jobs/*": return jobDetails(job);
    case "DELETE jobs/*": if (job.process) throw new Refusal(409, "usage", `a job that is ${job.state} cannot be deleted`); jobs.splice(jobs.indexOf(job), 1); return {};
    case "PATCH jobs/*": job.priority = body.priority; return shown(job);
    case "POST jobs/*/stop":
      if (job.state === "queued") { job.state = "stopped"; noted(job, "stop requested"); tell("job", shown(job)); return shown(job); }
      if (!job.process) throw new Refusal(409, "usage", `a job that is ${job.state} cannot be stopped`);
      if (body.checkpoint !== false) job.state = "stopping"; job.process.kill(body.checkpoint === false ? "SIGKILL" : "SIGINT"); tell("job", shown(job)); return shown(job);
    case "POST jobs/*/checkpoint": job.process?.kill("SIGUSR1"); return shown(job);
    case "POST jobs/*/resume": if (job.process || !/stopped|failed|lost/.test(job.state)) throw new Refusal(409, "usage", `a job that is ${job.state} cannot be resumed`); queue(job, "resume requested", job.run ? ["--resume", join(runs, job.run)] : job.args); return shown(job);
    case "POST jobs/*/start": if (job.process || job.state === "queued") throw new Refusal(409, "usage", `a job that is ${job.state} cannot be started`); job.run = null; queue(job, "start requested", [written(job.config), "--set", `run.dir=${runs}`]); return shown(job);
    case "GET jobs/*/log": {
      const all = existsSync(job.output ?? "") ? readFileSync(job.output) : Buffer.alloc(0);
      const from = Number(query.get("from") ?? 0), to = Math.min(all.length, from + Number(query.get("limit") ?? 65536));
      return { text: all.subarray(from, to).toString(), headers: { "X-Next": String(to) } };
    }
    default: throw new Refusal(404, "unknown", `no ${route}`);
  }
}

const kTypes = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8" };
const kSafe = { "Content-Security-Policy": "default-src 'self'", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store" };
createServer(async (request, response) => {
  const url = new URL(request.url, "http://localhost");
  const json = (status, value, headers = {}) => { response.writeHead(status, { ...kSafe, "Content-Type": "application/json", ...headers }); response.end(JSON.stringify(value)); };
  try {
    if (!url.pathname.startsWith("/api/v1/")) {
      const path = normalize(join(root, "build/web", url.pathname === "/" ? "index.html" : url.pathname));
      if (!path.startsWith(join(root, "build/web")) || !existsSync(path) || !statSync(path).isFile()) throw new Refusal(404, "unknown", `no ${basename(path)}`);
      response.writeHead(200, { ...kSafe, "Content-Type": kTypes[extname(path)] ?? "application/octet-stream" });
      createReadStream(path).pipe(response);
      return;
    }
    let text = "";
    for await (const part of request) text += part;
    const body = text ? JSON.parse(text) : {};
    const parts = url.pathname.slice("/api/v1/".length).split("/").map(decodeURIComponent);
    if (parts[0] === "session") {
      if (request.method === "POST" && body.token !== given.token) throw new Refusal(401, "unauthorized", "wrong token");
      json(200, { user: "developer", role: given.role }, { "Set-Cookie": request.method === "POST" ? `troupe_token=${given.token}; HttpOnly; SameSite=Strict; Path=/` : "troupe_token=; Max-Age=0; Path=/" });
      return;
    }
    if (!(request.headers.cookie ?? "").includes(`troupe_token=${given.token}`) && request.headers.authorization !== `Bearer ${given.token}`) throw new Refusal(401, "unauthorized", "no token: sign in first");
    if (parts[0] === "events") {
      response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
      response.write(": hello\n\n");
      followers.add(response);
      request.on("close", () => followers.delete(response));
      return;
    }
    if (parts[0] === "runs" && parts[2] === "events") {
      const path = file(parts[1], "metrics.jsonl");
      follow(request, response, path, Number(request.headers["last-event-id"] ?? url.searchParams.get("from") ?? statSync(path).size));
      return;
    }
    const found = await answer(request.method, parts, url.searchParams, body);
    if (found?.text === undefined) json(200, found);
    else { response.writeHead(200, { ...kSafe, "Content-Type": "text/plain; charset=utf-8", ...found.headers }); response.end(found.text); }
  } catch (error) {
    if (!response.headersSent) json(error.status ?? 500, { error: { code: error.code ?? "internal", message: error.message }, ...error.more });
  }
}).listen(Number(given.port), "127.0.0.1", function () {
  console.log(`http://127.0.0.1:${this.address().port}/#token=${given.token}`);
});
