import assert from "node:assert/strict";
import { test } from "node:test";
import type { Comparison } from "../../src/api/types";
import { namesOf } from "../../src/lib/names";

const run = (directory: string, name: string, options: Record<string, unknown> = {}): Comparison["runs"][number] =>
  ({ run: directory, name, status: "done", options, summary: null });
const names = (differ: string[], runs: Comparison["runs"]): string[] => [...namesOf(runs.map((r) => r.run), { differ, runs }).values()];

test("RunsOfDifferentNamesHaveTheirName", () => {
  assert.deepEqual(names(["strategy.name"], [run("1-a", "a", { "strategy.name": "bsp" }), run("2-b", "b", { "strategy.name": "easgd" })]), ["a", "b"]);
  assert.deepEqual([...namesOf(["1-a"], null).values()], ["1-a"]);
});

test("RunsOfOneNameHaveTheStrategyAndTheOnlyOptionThatDiffers", () => {
  const differ = ["strategy.name", "strategy.tau", "train.lr"];
  assert.deepEqual(names(differ, [
    run("1-a", "a", { "strategy.name": "easgd", "strategy.tau": 4, "train.lr": 0.5 }), run("2-a", "a", { "strategy.name": "easgd", "strategy.tau": 10, "train.lr": 0.5 }),
    run("3-a", "a", { "strategy.name": "bsp", "strategy.tau": null, "train.lr": 0.1 })]), ["a (easgd, tau=4)", "a (easgd, tau=10)", "a (bsp)"]);
  assert.deepEqual(names(["run.seed"], [run("1-a", "a", { "run.seed": 1 }), run("2-a", "a", { "run.seed": 2 })]), ["a (seed=1)", "a (seed=2)"]);
});

test("RunsThatNothingOrTooMuchTellsApartHaveTheirDirectory", () => {
  assert.deepEqual(names([], [run("1-a", "a"), run("2-a", "a")]), ["1-a", "2-a"]);
  assert.deepEqual(names(["x.y", "x.z"], [run("1-a", "a", { "x.y": 1, "x.z": 1 }), run("2-a", "a", { "x.y": 2, "x.z": 2 })]), ["1-a", "2-a"]);
  assert.deepEqual(names(["data.path"], [run("1-a", "a", { "data.path": "x".repeat(50) }), run("2-a", "a", { "data.path": "y" })]), ["1-a", "2-a"]);
});
