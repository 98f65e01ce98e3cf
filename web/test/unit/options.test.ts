import assert from "node:assert/strict";
import { test } from "node:test";
import type { Option } from "../../src/api/types";
import { changed, found, inForce, range, read, words } from "../../src/lib/options";

const option = (key: string, type: Option["type"], value: unknown, more: Partial<Option> = {}): Option =>
  ({ key, section: key.split(".")[0]!, type, default: value, help: `help of ${key}`, rule: "", ...more });
const kOptions = [
  option("run.epochs", "integer", 5, { minimum: 1 }), option("strategy.name", "text", "bsp"), option("data.batch", "integers", [64]),
  option("strategy.tau", "integer", 10, { strategies: ["easgd"] }), option("strategy.tau", "integer", 4, { strategies: ["sync_easgd"] }),
  option("train.lr", "number", "auto", { minimum: 0 }), option("data.shuffle", "boolean", true),
];

test("OnlyTheRowsOfTheStrategyAreInForce", () => {
  assert.equal(inForce(kOptions, "sync_easgd").find((o) => o.key === "strategy.tau")!.default, 4);
  assert.equal(inForce(kOptions, "bsp").some((o) => o.key === "strategy.tau"), false);
});

test("OnlyWhatDiffersFromTheDefaultsIsSent", () => {
  const values = { "run.epochs": 5, "data.batch": [32], "strategy.name": "easgd", "strategy.tau": 4, "unknown.key": 1 };
  assert.deepEqual(changed(inForce(kOptions, "easgd"), values, "easgd"), { "data.batch": [32], "strategy.name": "easgd", "strategy.tau": 4 });
  assert.deepEqual(changed(inForce(kOptions, "sync_easgd"), values, "sync_easgd"), { "data.batch": [32], "strategy.name": "easgd" });
});

test("FieldsBecomeValuesOfTheirType", () => {
  assert.equal(read(kOptions[0]!, " 7 "), 7);
  assert.equal(read(kOptions[0]!, "seven"), "seven");
  assert.equal(read(kOptions[5]!, "auto"), "auto");
  assert.equal(read(kOptions[5]!, "1e-3"), 0.001);
  assert.deepEqual(read(kOptions[2]!, "64, 16"), [64, 16]);
  assert.deepEqual(read(kOptions[2]!, "[64]"), [64]);
  assert.equal(read(kOptions[6]!, "true"), true);
  assert.equal(read(kOptions[1]!, "easgd"), "easgd");
});

test("OptionsAreFoundByKeyAndByHelp", () => {
  assert.deepEqual(found(kOptions, "TAU help").map((o) => o.key), ["strategy.tau", "strategy.tau"]);
  assert.equal(found(kOptions, "").length, kOptions.length);
  assert.equal(range(kOptions[0]!), "≥ 1");
  assert.equal(range(option("a.b", "integer", 1, { minimum: 1, maximum: 1e9 })), "≥ 1"); // the table's bound for counts says nothing
  assert.equal(range(option("a.b", "number", 1, { minimum: 0, maximum: 1 })), "0 to 1");
});

test("ACommandLineBecomesItsWords", () => {
  assert.deepEqual(words(" python  train.py --size 64 "), ["python", "train.py", "--size", "64"]);
  assert.deepEqual(words(`python -c "print('a b')" --name='x y' ""`), ["python", "-c", "print('a b')", "--name=x y", ""]);
  assert.deepEqual(words(""), []);
});
