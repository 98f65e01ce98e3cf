// A run as it is now: what the service knew when the page opened, and every line of metrics.jsonl since. No network, no page.
import type { Curves, Histograms, Note, RunDetails, RunState, StartedLine, WorkerState, WorkerSums } from "../api/types";
import type { Ledger, MemberEvent } from "./accounts";
import { ledgerPosition, RunPosition } from "./run_position";
import { curveOf, emptyCurve, thin, type Curve } from "./thin";

const kMostPoints = 4000; // a curve that has more is thinned to half
const kMostNotes = 500;
const kMostMembers = 1000; // events
const kRatePause = 1; // seconds between two points of the live rate
/** Lower edges of the bins of staleness, as summary.json has them. */
export const kEdges = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024];

type Line = Record<string, unknown>;
const number = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);
const inside = (line: Line, key: string): Line => {
  const value = line[key];
  return value !== null && typeof value === "object" ? (value as Line) : {};
};
const busy = (w: WorkerSums): number => w.compute_s + w.exchange_s + w.wait_s + w.load_s;

/** A worker as far as it is known: what only the live state has is missing in a summary. */
export type Worker = WorkerSums & Partial<Omit<WorkerState, "samples_per_s">> & { samples_per_s?: number | null };

/** Of a run that is over, a worker's rate is that over its time. */
const withMeanRate = (w: Worker): Worker => ({ ...w, samples_per_s: busy(w) > 0 ? w.samples / busy(w) : null });

export class RunModel {
  status: string;
  epoch: number;
  epochs: number;
  steps: number;
  samples: number;
  samplesPerSecond: number | null;
  error: string;
  servers: number;
  epochSamples: number;
  parameters: number | null;
  workers: Worker[];
  rows: string[];
  columns: string[];
  waits: number[][];
  staleness: Histograms;
  notes: Note[];
  members: MemberEvent[];
  ledger: Ledger | null;
  curves = new Map<string, Curve>();
  heard = new Map<number, number>(); // worker → t of its last report
  t: number;
  private epochsDone: RunPosition;
  private samplesBefore: number; // of the sessions before this one
  private stepsBefore: number;
  private wall: { t: number; seconds: number }; // of all sessions, at the latest line that tells
  partial = false; // the state is still to come: what the workers do is not known yet
  private rateAt = -Infinity;
  private baseSeconds = 0; // training time of the sessions before this one
  private rates = new Map<number, { t: number; samples: number }>();

  constructor(details: RunDetails, state: RunState | null, curves: Curves) {
    const summary = details.summary;
    const begun: Partial<StartedLine> = details.started_line ?? {};
    this.status = state?.status ?? details.status;
    this.epochs = state?.epochs ?? begun.epochs ?? summary?.epochs ?? 0;
    this.epoch = state?.epoch ?? summary?.epochs ?? 0;
    this.steps = state?.steps ?? summary?.steps ?? 0;
    this.samples = state?.samples ?? summary?.samples ?? 0;
    this.samplesPerSecond = (this.status === "running" ? state?.samples_per_s : null) ?? summary?.train?.images_per_s ?? null;
    this.error = details.error || state?.error?.message || "";
    this.servers = state?.servers ?? begun.servers ?? summary?.servers ?? 0;
    this.parameters = details.parameters ?? begun.parameters ?? null;
    this.epochSamples = begun.epoch_samples ?? 0;
    const workers: Worker[] = state?.workers.length ? state.workers : summary?.per_worker ?? [];
    this.workers = workers.map((w) => (this.status === "running" ? { ...w } : withMeanRate(w)));
    const waits = state?.waits ?? { rows: [], columns: [], seconds: [] };
    const known = waits.seconds.length > 0;
    this.rows = known ? [...waits.rows] : this.workers.map((w) => `worker ${w.worker}`);
    this.columns = known ? [...waits.columns] : this.names(this.workers.length);
    this.waits = (known ? waits.seconds : summary?.waits?.seconds ?? []).map((row) => [...row]);
    const live = state?.staleness.workers.length ? state.staleness : null;
    this.staleness = {
      edges: live?.edges ?? summary?.staleness?.edges ?? kEdges,
      workers: live ? live.workers.map((row) => [...(row.updates ?? [])]) : (summary?.staleness?.workers ?? []).map((row) => [...row]),
    };
    this.notes = [...(state?.notes ?? [])];
    this.members = [...(state?.members ?? [])];
    this.ledger = state?.ledger ?? null;
    this.t = state?.t ?? 0;
    this.wall = { t: this.t, seconds: state?.wall_s ?? this.t };
    // What earlier sessions did, whichever session the started line is of.
    const computed = this.computed();
    const sessions = this.members.filter((e) => e.event === "started");
    this.samplesBefore = state ? Math.max(0, state.samples - computed) : begun.samples ?? (begun.epoch_position ?? 0) * this.epochSamples;
    this.stepsBefore = state ? Math.max(0, state.steps - this.workers.reduce((sum, w) => sum + w.steps, 0)) : begun.steps ?? 0;
    const position = sessions.slice(-1)[0]?.epoch ?? (state && this.epochSamples > 0 ? this.samplesBefore / this.epochSamples : begun.epoch_position ?? 0);
    this.epochsDone = new RunPosition(position, this.epochSamples, this.epochs);
    if (state) this.epochsDone.learn(state.epoch, computed);
    for (const w of this.workers)
      if (typeof w.seconds_since_report === "number") this.heard.set(w.worker, this.t - w.seconds_since_report);
    for (const [name, points] of Object.entries(curves)) this.curves.set(name, curveOf(points));
    const last = this.curves.get("step.loss")?.seconds.slice(-1)[0];
    const here = Math.max(0, ...this.workers.map(busy));
    if (last !== undefined && this.epochsDone.begun > 0 && last > here + 1) this.baseSeconds = last - here;
  }

  private names(workers: number): string[] {
    return [...Array.from({ length: workers }, (_, i) => `worker ${i}`),
      ...Array.from({ length: this.servers }, (_, i) => `server ${i}`)];
  }

  /** Takes one line of metrics.jsonl; what is no line changes nothing. */
  apply(text: string): void {
    let line: Line;
    try {
      line = JSON.parse(text) as Line;
    } catch {
      return;
    }
    if (line === null || typeof line !== "object") return;
    this.t = number(line["t"]) ?? this.t;
    if (line["kind"] === "worker") this.worker(line);
    else if (line["kind"] === "epoch") this.epochDone(line);
    else if (line["kind"] === "evaluation") this.evaluation(line);
    else if (line["kind"] === "note") this.note(line);
    else if (line["kind"] === "member") this.member(line);
    else if (line["kind"] === "ledger") this.ledgerLine(line as unknown as Ledger);
    else if (line["kind"] === "started") this.started(line);
    else if (line["kind"] === "ended") this.ended(line);
  }

  private add(series: string, epoch: number | null, seconds: number | null, value: unknown): void {
    const y = number(value);
    if (epoch === null || seconds === null || y === null) return;
    let curve = this.curves.get(series) ?? emptyCurve();
    curve.epoch.push(epoch);
    curve.seconds.push(seconds);
    curve.samples.push(epoch * this.epochSamples);
    curve.value.push(y);
    if (curve.value.length > kMostPoints) curve = thin(curve, kMostPoints / 2);
    this.curves.set(series, curve);
  }

  private worker(line: Line): void {
    const rank = number(line["worker"]);
    if (rank === null || rank < 0 || !Number.isInteger(rank)) return;
    const at = this.workers.findIndex((w) => w.worker === rank);
    const now = { ...(this.workers[at] ?? {}), ...line } as unknown as Worker & { recent?: Line };
    const recent = inside(line, "recent");
    now.loss = number(recent["loss"]) ?? now.loss ?? null;
    now.accuracy = number(recent["accuracy"]) ?? now.accuracy ?? null;
    now.distance = number(recent["distance"]) ?? now.distance ?? null;
    const before = this.rates.get(rank);
    if (before && this.t > before.t && now.samples >= before.samples) {
      const rate = (now.samples - before.samples) / (this.t - before.t);
      now.samples_per_s = now.samples_per_s ? 0.7 * now.samples_per_s + 0.3 * rate : rate;
    }
    this.rates.set(rank, { t: this.t, samples: now.samples });
    this.heard.set(rank, this.t);
    if (at >= 0) this.workers[at] = now;
    else {
      this.workers.push(now);
      this.workers.sort((a, b) => a.worker - b.worker);
      this.rows = this.workers.map((w) => `worker ${w.worker}`);
      this.columns = this.names(Math.max(...this.workers.map((w) => w.worker)) + 1);
    }
    const row = this.workers.indexOf(now);
    if (at < 0) { // the rows behind it move, and few lines of a worker have tables
      this.waits.splice(row, 0, []);
      this.staleness.workers.splice(row, 0, []);
    }
    if (Array.isArray(line["waits"])) {
      const waits = line["waits"] as number[];
      if (waits.length !== this.columns.length) this.columns = this.names(waits.length - this.servers);
      this.waits[row] = waits;
    }
    if (Array.isArray(line["staleness"])) this.staleness.workers[row] = line["staleness"] as number[];
    this.totals(recent);
  }

  /** Samples, by all workers in this session. */
  private computed(): number {
    return this.workers.reduce((sum, w) => sum + w.samples, 0);
  }

  /** Seconds of all sessions, now. */
  private wallNow(): number {
    return this.wall.seconds + Math.max(this.t - this.wall.t, 0);
  }

  private ledgerLine(line: Ledger): void {
    this.ledger = line;
    this.wall = { t: this.t, seconds: number(line.wall_s) ?? this.wallNow() };
    const epochs = ledgerPosition(line);
    if (epochs !== null) this.epochsDone.learn(epochs, this.computed());
  }

  /** Lines of older programs do not tell the samples. */
  private evaluated(line: Line): void {
    const epoch = number(line["epoch"]);
    const samples = number(line["samples"]);
    if (epoch !== null && samples !== null && samples > this.samplesBefore) this.epochsDone.learn(epoch, samples - this.samplesBefore);
  }

  private totals(recent: Line): void {
    const samples = this.computed();
    let steps = 0;
    let seconds = 0;
    let rate = 0;
    for (const w of this.workers) {
      steps += w.steps;
      seconds = Math.max(seconds, busy(w));
      rate += w.samples_per_s ?? 0;
    }
    this.samplesPerSecond = rate || this.samplesPerSecond;
    this.steps = Math.max(this.steps, this.stepsBefore + steps);
    this.samples = Math.max(this.samples, Math.round(this.samplesBefore + samples));
    if (this.epochSamples <= 0) return;
    this.epoch = Math.max(this.epoch, this.epochsDone.after(samples)); // the ledger may correct it by a little: a curve does not go back for that
    const at = this.baseSeconds + seconds;
    const whole = this.workers.every((w) => w.samples_per_s); // before that, the sum is of some workers only
    if (rate > 0 && whole && (this.t >= this.rateAt + kRatePause || this.t < this.rateAt)) {
      this.rateAt = this.t;
      this.add("rate", this.epoch, at, rate);
    }
    this.add("step.loss", this.epoch, at, recent["loss"]);
    this.add("step.accuracy", this.epoch, at, recent["accuracy"]);
    this.add("step.distance", this.epoch, at, recent["distance"]);
  }

  private epochDone(line: Line): void {
    const epoch = number(line["epoch"]);
    const seconds = number(line["train_s"]);
    for (const group of ["train", "test"])
      for (const [name, value] of Object.entries(inside(line, group))) this.add(`${group}.${name}`, epoch, seconds, value);
    this.add("lr", epoch, seconds, line["lr"]);
    this.evaluated(line);
    this.epoch = Math.max(this.epoch, epoch ?? 0);
  }

  private evaluation(line: Line): void {
    const split = line["split"];
    if (split !== "validation" && split !== "test") return;
    for (const name of ["loss", "accuracy", "top5"])
      this.add(`${split}.${name}`, number(line["epoch"]), number(line["train_s"]), line[name]);
    this.evaluated(line);
  }

  private note(line: Line): void {
    this.notes.push({ t: this.t, level: String(line["level"] ?? "info"), text: String(line["text"] ?? ""), wall_s: this.wallNow() });
    if (this.notes.length > kMostNotes) this.notes.splice(0, this.notes.length - kMostNotes);
  }

  private member(line: Line): void {
    if (typeof line["event"] !== "string") return;
    this.members.push({ ...line, t: this.t, event: line["event"], worker: number(line["worker"]), epoch: number(line["epoch"]), wall_s: this.wallNow() } as MemberEvent);
    if (this.members.length > kMostMembers) this.members.splice(0, this.members.length - kMostMembers);
  }

  /** A session begins: its points replace those that an earlier one had behind this place. */
  private started(line: Line): void {
    this.status = "running";
    this.error = "";
    this.epochSamples = number(line["epoch_samples"]) ?? this.epochSamples;
    this.epochs = number(line["epochs"]) ?? this.epochs;
    this.servers = number(line["servers"]) ?? this.servers;
    const position = number(line["epoch_position"]) ?? 0;
    this.epochsDone = new RunPosition(position, this.epochSamples, this.epochs);
    this.epoch = position;
    this.samples = this.samplesBefore = number(line["samples"]) ?? Math.round(position * this.epochSamples);
    this.steps = this.stepsBefore = number(line["steps"]) ?? 0;
    this.wall = { t: this.t, seconds: this.ledger?.wall_s ?? 0 };
    this.member({ event: "started", epoch: position });
    this.workers = [];
    this.rows = [];
    this.waits = [];
    this.staleness.workers = [];
    this.rates.clear();
    this.heard.clear();
    let trained = 0;
    for (const [name, curve] of this.curves) {
      const kept = curve.epoch.filter((epoch) => epoch <= position + 1e-9).length;
      for (const list of [curve.epoch, curve.seconds, curve.samples, curve.value]) list.length = kept;
      if (kept === 0) this.curves.delete(name);
      else trained = Math.max(trained, curve.seconds[kept - 1]!);
    }
    this.baseSeconds = number(line["train_s"]) ?? trained;
  }

  private ended(line: Line): void {
    const error = inside(line, "error");
    this.status = typeof error["code"] === "string" ? error["code"] : "done";
    this.error = typeof error["message"] === "string" ? error["message"] : "";
    this.steps = number(line["steps"]) ?? this.steps;
    this.samples = number(line["samples"]) ?? this.samples;
    this.wall = { t: this.t, seconds: number(line["wall_s"]) ?? this.wallNow() };
    this.workers = this.workers.map(withMeanRate);
  }

  /** Epochs done, from 0 to `epochs`: the last batches of an epoch can reach a little over its end. */
  get done(): number {
    return this.epochs > 0 ? Math.min(this.epoch, this.epochs) : this.epoch;
  }

  /** Epochs that sessions before this one did, which the workers' sums leave out; null: this is the run's first. */
  get resumedAt(): number | null {
    const kRounding = 1e-6;
    return this.epochsDone.begun > kRounding ? this.epochsDone.begun : null;
  }

  /** Training time at this many epochs: of an evaluation or report at or before it. */
  secondsAt(epoch: number): number {
    let found = 0;
    for (const name of ["lr", "step.loss"]) {
      const curve = this.curves.get(name);
      if (!curve) continue;
      for (let i = curve.epoch.length - 1; i >= 0; i -= 1)
        if (curve.epoch[i]! <= epoch + 1e-9) {
          found = Math.max(found, curve.seconds[i]!);
          break;
        }
    }
    return found;
  }

  /** The last value of a series, or null. */
  last(series: string): number | null {
    return this.curves.get(series)?.value.slice(-1)[0] ?? null;
  }
}
