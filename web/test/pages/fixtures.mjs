// Run directories for the tests of pages: some that the program trains, and one with 500 workers that is written here (no machine of a
// developer trains it): its figures mean nothing, its form is that of docs/formats/metrics.md.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const kTrained = [
  { name: "glyphs-easgd", strategy: "easgd", workers: 2 }, { name: "glyphs-bsp", strategy: "bsp", workers: 3 },
  { name: "Übung α", strategy: "downpour", workers: 4 },
];

/** Trains for seconds; returns the directories' names by run.name. */
export function train(runs, troupe, config) {
  for (const { name, strategy, workers } of kTrained)
    execFileSync(troupe, ["train", config, "--quiet", ...[`run.dir=${runs}`, `run.name=${name}`, `strategy.name=${strategy}`, `cluster.workers=${workers}`,
      "data.train_samples=6400", "data.test_samples=1000", "run.epochs=2"].flatMap((s) => ["--set", s])], { stdio: ["ignore", "ignore", "inherit"] });
  return Object.fromEntries(kTrained.map(({ name }) => [name, readdirSync(runs).find((d) => d.endsWith(`-${name}`))]));
}

/** A sweep of seconds in `runs`; returns its name. */
export function search(runs, troupe, config) {
  const file = join(runs, "..", "small-sweep.toml");
  writeFileSync(file, `base = "${config}"\n[sweep]\nruns = 9\n[grid]\nstrategy.name = ["bsp", "easgd"]\ntrain.lr = { log = [0.01, 0.5] }\nrun.epochs = 3\n[only.easgd]\nstrategy.tau = { log = [1, 16] }\n`);
  execFileSync(troupe, ["grid", file, "--quiet", ...[`run.dir=${runs}`, "data.train_samples=1600", "data.test_samples=500"].flatMap((s) => ["--set", s])], { stdio: ["ignore", "ignore", "inherit"] });
  return "small-sweep";
}

/** A run of `workers` workers, each with `reports` reports, in a directory of its own; `config` is some run's config.toml. */
export function writeMany(runs, config, { workers = 500, servers = 2, reports = 3, name = "many" } = {}) {
  const directory = join(runs, `20260102-030405-${name}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "config.toml"), readFileSync(config, "utf8").replace(/^name = "glyphs.*"$/m, `name = "${name}"`).replace(/^workers = \d+$/m, `workers = ${workers}`));
  const lines = [{ kind: "started", t: 0, name, directory, strategy: "easgd", model: "lenet", dataset: "glyphs", workers, servers, epochs: 2, parameters: 431080, epoch_samples: workers * reports * 32, epoch_position: 0 }];
  const columns = workers + servers;
  for (let r = 1; r <= reports; r += 1)
    for (let w = 0; w < workers; w += 1) {
      const slow = w % 37 === 0 ? 0.4 : 0.05 + 0.001 * (w % 50);
      const waits = Array.from({ length: columns }, (_, c) => (c >= workers ? slow * r * 0.5 : c % 37 === 0 && c !== w ? 0.002 * r * ((w + c) % 7) : 0));
      const wait = waits.reduce((sum, v) => sum + v, 0);
      const samples = r * 64;
      lines.push({ kind: "worker", t: r + w / workers, worker: w, steps: r, samples, compute_s: r * (1 - slow), forward_s: 0, backward_s: 0, optimizer_s: 0, exchange_s: 0.05 * r, wait_s: wait, load_s: 0.01 * r,
        exchanges: r * 4, bytes: r * 4 * 431080 * 8, traffic: [["exchange", 0, r * 4 * 431080 * 4], ["exchange", 1, r * 4 * 431080 * 3], ["peer", (w + 1) % workers, r * 4 * 431080]], dropped: 0, skipped: 0, refused: 0, staleness_mean: 3 + (w % 11), staleness_max: 20 + (w % 9), passed: w === 7 ? 1 : 0, replaced: 0, gradient_norm_mean: 1, gradient_norm_max: 2,
        waits, staleness: Array.from({ length: 21 }, (_, i) => Math.max(0, 12 - Math.abs(i - (w % 11)) * 3)), recent: { samples: 64, loss: 2.3 * Math.exp(-(r * workers + w) / (reports * workers)) * (1 + 0.1 * Math.sin(w)), accuracy: 0.5 + 0.4 * (r / reports), gradient_norm: 1, distance: 3 + Math.sin(w) - r * 0.5 } });
    }
  for (const epoch of [1, 2])
    lines.push({ kind: "epoch", t: reports + epoch, epoch, epochs: 2, steps: (epoch * workers * reports) / 2, train: { loss: 0.9 / epoch, accuracy: 0.6 + 0.1 * epoch, images_per_s: 90000 }, test: { loss: 1 / epoch, accuracy: 0.5 + 0.15 * epoch, top5: 0.99 }, lr: 0.05 / epoch, train_s: (reports * epoch) / 2 });
  const epoch = (part) => 2 * part; // of the run's two
  const member = (part, event, worker, reason, members) => lines.push({ kind: "member", t: reports * part, event, worker, node: `n${worker % 8}:4242`, reason, steps: Math.floor(reports * part), epoch: epoch(part), train_s: reports * part, members });
  for (let w = 0; w < workers; w += 41) {
    member(0.2 + 0.0005 * w, "silent", w, "no report for 2.4 s", workers);
    if (w % 2) member(0.3 + 0.0005 * w, "heard", w, "after 4.1 s", workers);
    else {
      member(0.32 + 0.0005 * w, "lost", w, "nothing has come from it for 5 s", workers - 1);
      if (w % 3) member(0.6 + 0.0005 * w, "joined", w, null, workers);
    }
  }
  const samples = workers * reports * 32;
  lines.push({ kind: "ledger", t: reports + 3, epoch: 1, size: samples, done: samples * 0.9, given_up: samples * 0.02, leased: samples * 0.03, free: samples * 0.04, omitted: samples * 0.01, useful: samples * 1.9, computed: samples * 2,
    lost: 4096, returned: 4096, passed: 64, rolled_back: 3200, possible: samples * 2.4, goodput: 1.9 / 2.4, wall_s: reports + 3 });
  lines.push({ kind: "note", t: reports + 1, level: "warning", text: "worker 7 passed a step over: its lease was given up" });
  lines.push({ kind: "ended", t: reports + 3, error: null, steps: workers * reports, samples: workers * reports * 64, wall_s: reports + 3, stopped_by: null });
  writeFileSync(join(directory, "metrics.jsonl"), lines.map((l) => JSON.stringify(l)).join("\n") + "\n");
  return `20260102-030405-${name}`;
}

export const kNodes = [
  { address: "10.0.0.11:4242", state: "alive", heard_s: 1.2, cores: 32, load: 28.4, memory: 128e9, memory_free: 9e9, runs: [], error: null,
    gpus: [{ name: "NVIDIA H100 80GB HBM3", load: 0.97, memory: 80e9, memory_free: 11e9 }, { name: "NVIDIA H100 80GB HBM3", load: 0.42, memory: 80e9, memory_free: 60e9 }] },
  { address: "gpu-node-with-a-rather-long-name.example:4242", state: "dead", heard_s: 340, cores: 16, load: null, memory: 64e9, memory_free: null, gpus: [], runs: [], error: "no answer within 2 s" },
];
