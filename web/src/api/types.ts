// What the service answers, as /api/v1/openapi.json has it (docs/formats/service.md).
import type { Ledger, MemberEvent, Traffic } from "../lib/accounts";

export type Role = "read" | "run" | "admin";

export interface Server {
  version: string;
  started: string;
  directory: string;
  user: string;
  role: Role;
  slots: { total: number; running: number };
  upload_limit: number; // bytes; 0: no uploads
  features: { cuda: boolean; mpi: boolean; ucx: boolean; web: boolean };
}

export interface RunRow {
  run: string;
  name: string | null;
  status: string | null;
  started: string | null;
  strategy: string | null;
  model: string | null;
  dataset: string | null;
  workers: number | null;
  epochs: number | null;
  steps: number | null;
  accuracy: number | null;
  loss: number | null;
  train_loss: number | null;
  images_per_s: number | null;
  wall_s: number | null;
  tags: string[];
  grid: string | null;
  job: number | null;
  [column: string]: unknown;
}

/** A worker's sums: in the live state, in summary.json, and in a `worker` line of metrics.jsonl. */
export interface WorkerSums {
  worker: number;
  steps: number;
  samples: number;
  compute_s: number;
  exchange_s: number;
  wait_s: number;
  load_s: number;
  bytes: number;
  exchanges: number;
  dropped?: number;
  refused?: number;
  staleness_mean: number | null;
  staleness_max: number | null;
  passed: number | null;
  replaced: number | null;
  traffic?: Traffic[];
}

/** What the live state has besides. */
export interface WorkerState extends WorkerSums {
  samples_per_s: number;
  loss: number | null;
  accuracy: number | null;
  gradient_norm_mean: number | null;
  distance?: number | null;
  seconds_since_report: number;
}

export interface Histograms {
  edges: number[];
  workers: number[][];
}

export interface Summary {
  workers?: number;
  servers?: number;
  epochs?: number;
  steps?: number;
  samples?: number;
  wall_s?: number;
  train?: { loss: number | null; images_per_s: number | null };
  test?: { loss: number | null; accuracy: number | null; top5: number | null };
  time?: { compute_s: number; exchange_s: number; wait_s: number; load_s: number };
  exchange?: {
    count: number; bytes: number; dropped: number; skipped: number; refused: number;
    staleness_mean: number | null; staleness_max: number | null;
  };
  center_hash?: string;
  waits?: { workers: number; servers: number; seconds: number[][] };
  staleness?: Histograms;
  per_worker?: WorkerSums[];
  stopped_by?: string | null;
  goodput?: { share: number; useful: number; possible: number; computed: number; lost: number; returned: number; passed: number; rolled_back: number } | null;
}

export interface StartedLine {
  t: number;
  workers: number;
  servers: number;
  epochs: number;
  parameters: number;
  epoch_samples: number;
  epoch_position: number;
  steps?: number;
  samples?: number;
  train_s?: number;
}

export interface RunDetails {
  run: string;
  name: string;
  started: string;
  status: string;
  error: string;
  problem: string;
  grid: string;
  tags: string[];
  note: string;
  lineage: Record<string, unknown>;
  options: Record<string, unknown>;
  summary: Summary | null;
  job: number | null;
  directory: string;
  parameters: number | null;
  started_line: StartedLine | null;
}

export interface Note {
  t?: number | null;
  level: string;
  text: string;
  wall_s?: number | null;
}

export interface RunState {
  t: number;
  wall_s?: number;
  status: string;
  epoch: number;
  epochs: number;
  steps: number;
  samples: number;
  samples_per_s: number;
  position: number;
  servers: number;
  error: { code?: string; message?: string } | null;
  workers: WorkerState[];
  waits: { rows: string[]; columns: string[]; seconds: number[][] };
  staleness: { edges: number[]; workers: { worker: number; mean: number | null; max: number | null; updates: number[] | null }[] };
  notes: Note[];
  members?: MemberEvent[];
  ledger?: Ledger | null;
  evaluations: { split: string; epoch: number | null; loss: number | null; accuracy: number | null }[];
}

export type Points = number[][]; // [epoch, seconds, samples, value]
export type Curves = Record<string, Points>;

export interface Checkpoint {
  file: string;
  step: number;
  epoch: number | null;
  bytes: number;
  written: string;
}

export interface Comparison {
  differ: string[];
  runs: { run: string; name: string; status: string; options: Record<string, unknown>; summary: Summary | null }[];
}

export interface Option {
  key: string;
  section: string;
  type: "boolean" | "integer" | "number" | "text" | "integers" | "numbers" | "texts" | "structure";
  default: unknown;
  help: string;
  rule: string;
  choices?: string[];
  minimum?: number;
  above?: number;
  maximum?: number;
  automatic?: boolean; // a number, or "auto"
  required?: boolean;
  strategies?: string[];
}

export interface Check {
  ok: boolean;
  errors: { key?: string; message: string }[];
  config: string;
  warnings: string[];
}

export interface Job {
  id: number;
  name: string;
  kind: "train" | "launch" | "grid";
  state: "queued" | "running" | "stopping" | "stopped" | "done" | "failed" | "lost";
  priority: number;
  submitted: string;
  started: string | null;
  ended: string | null;
  exit_code: number | null;
  error: string | null;
  run: string | null;
  workers: number | null;
  nodes: string | null;
  user: string;
}

export interface JobDetails extends Job {
  config: string;
  command_line: string;
  history: { at: string; event: string }[];
}

export type Shape = number[]; // [channels, height, width]

export interface Model {
  name: string;
  summary: string;
  input: Shape;
  classes: number;
  parameters: number;
}

export interface Layer {
  name: string;
  kind: string;
  inputs: string[];
  shape: Shape;
  parameters: number;
  flops: number;
}

export interface ModelDetails extends Model {
  flops: number;
  layers: Layer[];
}

export interface DataSet {
  name: string;
  kind: string;
  path: string;
  resize: number; // pixels; 0: none
  uploaded: boolean; // its files belong to the service
  used_by: string[];
}

export interface DataSetDetails extends DataSet {
  classes: string[];
  samples: { train: number; test: number };
  shape: Shape;
}

export interface NodeRow {
  address: string;
  state: "alive" | "dead";
  heard_s: number | null;
  cores: number | null;
  load: number | null;
  memory: number | null;
  memory_free: number | null;
  gpus: { name: string; load: number | null; memory: number; memory_free: number | null }[];
  runs: string[];
  error: string | null;
}

export interface SweepRow {
  name: string;
  metric: string;
  goal: "max" | "min";
  method: string;
  schedule: string;
  state: "running" | "interrupted" | "finished";
  trials: number;
  most_runs: number | null;
  most_epochs: number | null; // over all trials
  best: number | null;
  epochs_trained: number;
  elapsed_s: number;
}

export interface SweepParameter {
  key: string;
  kind: "real" | "integer" | "choice";
  low?: number;
  high?: number;
  log?: boolean;
  choices?: unknown[];
  depends_on?: number; // an earlier parameter; it exists with these of its choices only
  when?: number[];
}

export interface SweepTrial {
  trial: number;
  name: string;
  settings: Record<string, unknown>;
  scores: (number | null)[]; // by rung; null: diverged
  diverged_after: number | null; // epochs in all when it diverged
  training_to: number | null;
  status: string;
  run: string | null;
}

export interface Sweep extends Omit<SweepRow, "trials" | "best"> {
  rungs: number[]; // epochs
  parameters: SweepParameter[];
  trials: SweepTrial[];
  ranking: number[];
  importance: number[] | null;
  history: { t: number; epochs: number; trial: number; rung: number; score: number | null; best: number | null }[];
}
