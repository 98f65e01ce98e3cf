import assert from "node:assert/strict";
import { test } from "node:test";
import type { Sweep } from "../../src/api/types";
import { epochsTrained, place, polylines, progress, ranked, scoreOf } from "../../src/lib/sweep";

const trial = (number: number, scores: (number | null)[], settings: Record<string, unknown>): Sweep["trials"][number] => (
  { trial: number, name: String(number), settings, scores, diverged_after: null, training_to: null, status: "done", run: null });

const kSweep: Sweep = {
  name: "s", metric: "test.accuracy", goal: "max", method: "tpe", schedule: "asha", state: "finished", most_runs: 4, most_epochs: null, epochs_trained: 6, elapsed_s: 1, rungs: [1, 3],
  parameters: [{ key: "lr", kind: "real", low: 0.01, high: 1, log: true }, { key: "s", kind: "choice", choices: ["a", "b"] }],
  trials: [trial(0, [0.5], { lr: 0.1, s: "a" }), trial(1, [0.75, 0.9], { lr: 1, s: "b" }), trial(2, [null], { lr: 0.5, s: "a" }), trial(3, [], { lr: 0.2 })],
  ranking: [1, 0, 2], importance: null, history: [],
};

test("PlacesFollowTheScaleOfTheSearch", () => {
  assert.equal(place(kSweep.parameters[0]!, 0.1), 0.5); // log 10 / log 100
  assert.equal(place(kSweep.parameters[0]!, 1), 1);
  assert.equal(place({ key: "x", kind: "integer", low: 0, high: 4 }, 1), 0.25);
  assert.equal(place(kSweep.parameters[1]!, "b"), 0.75);
  assert.equal(place(kSweep.parameters[1]!, undefined), null);
  assert.equal(place(kSweep.parameters[1]!, "c"), null);
});

test("TrialsWithoutAResultComeLastAndHaveNoLine", () => {
  assert.deepEqual(ranked(kSweep).map((t) => t.trial), [1, 0, 2, 3]);
  assert.equal(scoreOf(kSweep.trials[2]!), null);
  const lines = polylines(kSweep);
  assert.deepEqual(lines.map((l) => [l.trial.trial, l.whole, l.at]), [[0, false, [0.5, 0.25, 0]], [1, true, [1, 0.75, 1]]]);
});

test("ALinePassesBelowTheAxesOfOtherStrategies", () => {
  const of = (when: number[]): Sweep["parameters"][number] => ({ key: "lr", kind: "real", low: 0, high: 1, depends_on: 0, when });
  const sweep = { ...kSweep, parameters: [kSweep.parameters[1]!, of([0]), of([1])] };
  const at = Object.fromEntries(polylines(sweep).map((l) => [l.trial.trial, l.at.slice(1, 3)]));
  assert.deepEqual(at, { 0: [0.1, null], 1: [null, 1] });
});

test("ProgressNamesTheBudget", () => {
  assert.equal(progress(3, 40), "3 of 40 runs");
  assert.equal(progress(3, null), "3 runs");
  assert.equal(epochsTrained({ ...kSweep, most_epochs: 230 }), "6 of 230");
  assert.equal(epochsTrained(kSweep), "6");
});
