// What the service answers (docs/formats/service.md).

export type Role = "read" | "run" | "admin";

export interface Server {
  version: string;
  started: string;
  directory: string;
  user: string;
  role: Role;
  room: { jobs: number; running: number };
  features: Record<string, boolean>;
}

export interface RunRow {
  run: string;
  name: string;
  status: string;
  started: string;
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
  tags: string[] | null;
  grid: string | null;
  job: number | string | null;
  [column: string]: unknown;
}

export interface WorkerSums {
  worker: number;
  steps: number;
  samples: number;
  samples_per_s?: number | null;
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
  passed: number;
  replaced: number;
  loss?: number | null;
  accuracy?: number | null;
  seconds_since_report?: number | null;
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
}

export interface StartedLine {
  t: number;
  workers: number;
  servers: number;
  epochs: number;
  parameters: number;
  epoch_samples: number;
  epoch_position: number;
}

export interface RunDetails {
  run: string;
  name: string;
  started: string;
  status: string;
  error: string;
  tags: string[];
  note: string;
  lineage: Record<string, unknown>;
  options: Record<string, unknown>;
  summary: Summary | null;
  job: number | string | null;
  directory: string;
  parameters: number | null;
  started_line: StartedLine | null;
}

export interface Note {
  t: number;
  level: string;
  text: string;
}

export interface RunState {
  t: number;
  status: string;
  epoch: number;
  epochs: number;
  steps: number;
  samples: number;
  samples_per_s: number | null;
  position: number;
  workers: WorkerSums[];
  waits: { rows: string[]; columns: string[]; seconds: number[][] };
  staleness: { edges: number[]; workers: (number[] | { worker: number; updates: number[] | null })[] };
  notes: Note[];
  evaluations: unknown;
}

export type Points = (number | null)[][];
export type Curves = Record<string, Points>;

export interface Checkpoint {
  file: string;
  step: number | null;
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
  type: string;
  default: unknown;
  help: string;
  choices?: string[];
  minimum?: number;
  maximum?: number;
  strategies?: string[];
}

export interface Check {
  ok: boolean;
  errors: { key?: string | null; message: string }[];
  config: string;
  warnings: string[];
}

export interface Job {
  id: number | string;
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
  nodes: string[] | string | null;
  user: string;
  config?: string;
  command_line?: string | string[];
  history?: { at: string; event: string }[];
}

export type Shape = string | number[]; // [channels, height, width]

export interface Model {
  name: string;
  summary: string;
  parameters: number;
  input: Shape;
}

export interface Layer {
  name: string;
  kind: string;
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
  used_by?: string[];
  classes?: number;
  samples?: Record<string, number> | number;
  shape?: Shape;
}

export interface NodeRow {
  address: string;
  state: "alive" | "dead";
  heard_s: number | null;
  cores: number | null;
  load: number | null;
  memory: number | null;
  memory_free: number | null;
  gpus: { name: string; load: number | null; memory: number | null; memory_free: number | null }[];
  runs: string[];
  error?: string | null;
}
