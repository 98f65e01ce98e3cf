import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunDetails, RunState, WorkerState } from "../../src/api/types";
import { RunModel } from "../../src/lib/run_model";

const details = (more: Partial<RunDetails> = {}): RunDetails => ({
  run: "r", name: "r", started: "", status: "running", error: "", problem: "", grid: "", tags: [], note: "", lineage: {}, options: {}, summary: null, job: null,
  directory: "/runs/r", parameters: 10, started_line: { t: 0, workers: 2, servers: 1, epochs: 2, parameters: 10, epoch_samples: 1000, epoch_position: 0 }, ...more,
});
const worker = (rank: number, t: number, samples: number, loss: number | null, more: object = {}): string => JSON.stringify({
  kind: "worker", t, worker: rank, steps: samples / 10, samples, compute_s: t * 0.8, exchange_s: 0, wait_s: t * 0.1, load_s: 0, exchanges: 1,
  bytes: samples * 4, staleness_mean: 0.5, staleness_max: 2, passed: 0, replaced: 0, waits: [0, 0, t * 0.1], staleness: [1, 2], recent: { samples: 10, loss, accuracy: 0.5 }, ...more,
});

test("ReportsOfWorkersBecomeSumsAndPointsAsTheRunStoreHasThem", () => {
  const model = new RunModel(details(), null, {});
  model.apply(worker(0, 1, 100, 2.0));
  model.apply(worker(1, 2, 300, 1.5));
  // epoch = all samples / 1000; seconds = the busiest worker's times: 2 · 0.9
  const loss = model.curves.get("step.loss")!;
  assert.deepEqual(loss.epoch, [0.1, 0.4]);
  assert.ok(Math.abs(loss.seconds[1]! - 1.8) < 1e-12);
  assert.deepEqual(loss.samples, [100, 400]);
  assert.deepEqual(loss.value, [2, 1.5]);
  assert.equal(model.samples, 400);
  assert.equal(model.steps, 40);
  assert.deepEqual(model.columns, ["worker 0", "worker 1", "server 0"]);
  assert.deepEqual(model.waits, [[0, 0, 0.1], [0, 0, 0.2]]);
  assert.deepEqual(model.staleness.workers, [[1, 2], [1, 2]]);
});

test("ALineWithoutTablesKeepsThoseBeforeIt", () => {
  const model = new RunModel(details(), null, {});
  model.apply(worker(0, 1, 100, 2.0, { traffic: [["push", 0, 400]] }));
  model.apply(worker(0, 2, 200, 1.5, { waits: undefined }));
  assert.deepEqual(model.waits, [[0, 0, 0.1]]);
  assert.deepEqual(model.workers[0]!.traffic, [["push", 0, 400]]);
  assert.equal(model.workers[0]!.samples, 200);
});

test("ALossThatIsNotFiniteLeavesThePointOut", () => {
  const model = new RunModel(details(), null, {});
  model.apply(worker(0, 1, 100, null));
  assert.equal(model.curves.has("step.loss"), false);
  assert.equal(model.curves.get("step.accuracy")!.value.length, 1);
});

test("AnEpochsScoresBecomePoints", () => {
  const model = new RunModel(details(), null, {});
  model.apply(JSON.stringify({ kind: "epoch", t: 9, epoch: 1, epochs: 2, steps: 100, train: { loss: 0.5, accuracy: 0.8, images_per_s: 500 }, test: { loss: 0.4, accuracy: 0.9, top5: null }, lr: 0.05, train_s: 8 }));
  model.apply(JSON.stringify({ kind: "evaluation", split: "validation", epoch: 1.5, loss: 0.3, accuracy: 0.95, top5: 1, train_s: 10 }));
  assert.equal(model.last("test.accuracy"), 0.9);
  assert.equal(model.last("test.top5"), null);
  assert.equal(model.last("validation.loss"), 0.3);
  assert.deepEqual(model.curves.get("lr")!.seconds, [8]);
  assert.equal(model.epoch, 1);
});

test("AResumedSessionReplacesWhatLiesBehindItsBeginning", () => {
  const curves = { "step.loss": [[0.5, 4, 500, 1], [1.0, 8, 1000, 0.8], [1.4, 11, 1400, 0.7]], lr: [[1, 8, 1000, 0.05]] };
  const model = new RunModel(details(), null, curves);
  model.apply(JSON.stringify({ kind: "started", t: 0, workers: 2, servers: 1, epochs: 3, epoch_samples: 1000, epoch_position: 1 }));
  assert.deepEqual(model.curves.get("step.loss")!.epoch, [0.5, 1.0]);
  assert.equal(model.epochs, 3);
  assert.equal(model.samples, 1000);
  model.apply(worker(0, 1, 100, 0.6));
  const loss = model.curves.get("step.loss")!;
  assert.equal(loss.epoch[2], 1.1);
  assert.ok(Math.abs(loss.seconds[2]! - (8 + 0.9)) < 1e-12); // training time goes on after the first session's
  assert.equal(model.samples, 1100);
});

test("ASessionBeginsWithWhatItsLineSays", () => {
  const curves = { "step.loss": [[0.5, 4, 500, 1], [1.4, 11, 1400, 0.7]], lr: [[1, 8, 1000, 0.05]] };
  const model = new RunModel(details(), null, curves);
  model.apply(JSON.stringify({ kind: "ledger", t: 12, epoch: 1, size: 1000, done: 400, given_up: 0, omitted: 0, wall_s: 11.5 }));
  model.apply(JSON.stringify({ kind: "started", t: 0, workers: 2, servers: 1, epochs: 3, epoch_samples: 1000, epoch_position: 0.75, steps: 60, samples: 600, train_s: 6 }));
  assert.equal(model.samples, 600); // a fifth was passed over
  assert.equal(model.steps, 60);
  model.apply(worker(0, 1, 100, 0.6));
  assert.equal(model.samples, 700);
  assert.equal(model.steps, 70);
  assert.ok(Math.abs(model.curves.get("step.loss")!.seconds[1]! - (6 + 0.9)) < 1e-12);
  model.apply(JSON.stringify({ kind: "note", t: 2, level: "info", text: "n" }));
  assert.equal(model.notes.slice(-1)[0]!.wall_s, 13.5); // 11.5 s that the ledger tells, and two of this session
});

test("TheRunIsWhereItsLedgerSays", () => {
  const model = new RunModel(details(), null, {});
  const ledger = (epoch: number, done: number, givenUp: number): string => JSON.stringify({ kind: "ledger", t: 1, epoch, size: 1000, done, given_up: givenUp, omitted: 0, wall_s: 1 });
  model.apply(worker(0, 1, 200, 1));
  model.apply(ledger(0, 200, 50));
  model.apply(worker(0, 2, 300, 1));
  assert.equal(model.epoch, 0.375); // 800 computed samples are an epoch
  model.apply(JSON.stringify({ kind: "epoch", t: 3, epoch: 1, epochs: 2, steps: 80, samples: 800, train: {}, test: {}, lr: 0.1, train_s: 3 }));
  model.apply(worker(0, 4, 1200, 1));
  assert.equal(model.epoch, 1.5);
  model.apply(worker(0, 5, 2000, 1));
  assert.equal(model.epoch, 2); // no run has more than its epochs
});

test("TheEndTellsHowItEnded", () => {
  const model = new RunModel(details(), null, {});
  model.apply(JSON.stringify({ kind: "ended", t: 9, error: null, steps: 50, samples: 2000 }));
  assert.equal(model.status, "done");
  model.apply(JSON.stringify({ kind: "ended", t: 9, error: { code: "diverged", message: "loss is not finite" }, steps: 50, samples: 2000 }));
  assert.equal(model.status, "diverged");
  assert.equal(model.error, "loss is not finite");
});

test("OfARunThatIsOverAWorkersRateIsThatOverItsTime", () => {
  const over = { ...JSON.parse(worker(0, 2, 90, 1)), samples_per_s: 0, loss: 1, accuracy: 0.5, seconds_since_report: 40 } as WorkerState; // busy for 1.8 s
  const state: RunState = { t: 42, status: "done", epoch: 1, epochs: 1, steps: 9, samples: 90, samples_per_s: 0, position: 5, servers: 1, error: null, workers: [over],
    waits: { rows: [], columns: [], seconds: [] }, staleness: { edges: [], workers: [] }, notes: [], evaluations: [] };
  assert.equal(new RunModel(details({ status: "done" }), state, {}).workers[0]!.samples_per_s, 50);
  const model = new RunModel(details(), { ...state, status: "running" }, {});
  assert.equal(model.workers[0]!.samples_per_s, 0); // it has fallen silent
  model.apply(JSON.stringify({ kind: "ended", t: 43, error: null, steps: 9, samples: 90 }));
  assert.equal(model.workers[0]!.samples_per_s, 50);
});

test("WhatIsNoLineChangesNothing", () => {
  const model = new RunModel(details(), null, {});
  for (const text of ["", "{", "null", "[]", "7", '{"kind":"worker"}', '{"kind":"worker","worker":-1}', '{"kind":"else"}']) model.apply(text);
  assert.equal(model.workers.length, 0);
  assert.equal(model.curves.size, 0);
});

test("ALongRunKeepsBoundedCurvesAndNotes", () => {
  const model = new RunModel(details(), null, {});
  for (let i = 1; i <= 20_000; i += 1) model.apply(worker(0, i * 0.01, i, 1 / i));
  for (let i = 0; i < 2000; i += 1) model.apply(JSON.stringify({ kind: "note", t: i, level: "info", text: `n${i}` }));
  assert.ok(model.curves.get("step.loss")!.value.length <= 4000);
  assert.equal(model.notes.length, 500);
  assert.equal(model.notes[499]!.text, "n1999");
});

test("TheRateIsAPointOnlyOnceEveryWorkerHasOne", () => {
  const model = new RunModel(details(), null, {});
  for (let t = 1; t <= 4; t += 1) {
    model.apply(worker(0, t, t * 100, 1));
    if (t < 3) assert.equal(model.curves.has("rate"), t > 1);
  }
  // one worker, 100 samples each second
  assert.deepEqual(model.curves.get("rate")!.value, [100, 100, 100]);
  model.apply(worker(1, 5, 50, 1));
  assert.equal(model.curves.get("rate")!.value.length, 3);
});

test("APageThatOpensInALaterSessionCountsWhatEarlierOnesDid", () => {
  const one = JSON.parse(worker(0, 1, 100, 1)) as never;
  const state: RunState = { t: 1, status: "running", epoch: 1.1, epochs: 2, steps: 10, samples: 1100, samples_per_s: 100, position: 5, servers: 1, error: null, workers: [one],
    waits: { rows: ["worker 0"], columns: ["worker 0", "worker 1", "server 0"], seconds: [[0, 0, 0.1]] },
    staleness: { edges: [0, 1], workers: [{ worker: 0, mean: 0.5, max: 2, updates: [1, 2] }] }, notes: [], evaluations: [] };
  const model = new RunModel(details(), state, {});
  assert.deepEqual(model.staleness.workers, [[1, 2]]);
  model.apply(worker(0, 2, 200, 0.5));
  assert.equal(model.samples, 1200);
  assert.ok(Math.abs(model.curves.get("step.loss")!.epoch[0]! - 1.2) < 1e-12);
  assert.equal(model.resumedAt, 1);
  assert.equal(new RunModel(details(), null, {}).resumedAt, null);
});

test("MembersDistanceAndLedgerFollowTheirLines", () => {
  const model = new RunModel(details(), null, {});
  model.apply(worker(0, 1, 100, 1, { recent: { samples: 10, loss: 1, accuracy: 0.5, distance: 2.5 }, traffic: [["push", 0, 400]] }));
  model.apply(worker(0, 2, 200, 1));
  assert.equal(model.workers[0]!.distance, 2.5); // the last that was measured
  assert.deepEqual(model.curves.get("step.distance")!.value, [2.5]);
  model.apply(JSON.stringify({ kind: "member", t: 3, event: "lost", worker: 1, epoch: 0.3, train_s: 2, reason: "why" }));
  model.apply(JSON.stringify({ kind: "member", t: 4, event: 7 }));
  assert.deepEqual(model.members.map((e) => [e.t, e.event, e.worker, e.epoch]), [[3, "lost", 1, 0.3]]);
  model.apply(JSON.stringify({ kind: "ledger", t: 4, useful: 90, possible: 100, goodput: 0.9 }));
  assert.equal(model.ledger!.goodput, 0.9);
  model.apply(JSON.stringify({ kind: "started", t: 0, workers: 2, servers: 1, epochs: 3, epoch_samples: 1000, epoch_position: 0.1 }));
  assert.deepEqual(model.members.map((e) => [e.event, e.epoch]), [["lost", 0.3], ["started", 0.1]]);
});

test("TrainingTimeAtAnEpochIsThatOfTheReportBeforeIt", () => {
  const model = new RunModel(details(), null, { "step.loss": [[0.5, 4, 500, 1], [1.4, 11, 1400, 0.7]], lr: [[1, 8, 1000, 0.05]] });
  assert.deepEqual([0, 0.6, 1, 2].map((e) => model.secondsAt(e)), [0, 4, 8, 11]);
});
