import assert from "node:assert/strict";
import { test } from "node:test";
import { holds, joined, parsed, toggled, written, type Condition } from "../../src/lib/filter";

const conditions = (filter: string): Condition[] => {
  const found = parsed(filter);
  assert.ok("conditions" in found, JSON.stringify(found));
  return found.conditions;
};

test("EveryOperatorIsRead", () => {
  for (const operator of ["=", "!=", "<", "<=", ">", ">=", "~"] as const)
    assert.deepEqual(conditions(`train.lr${operator}0.05`), [{ key: "train.lr", operator, value: "0.05" }]);
});

test("BlanksAndTheWordAndDivideConditions", () => {
  const both = [{ key: "strategy", operator: "=", value: "easgd" }, { key: "accuracy", operator: ">", value: "0.99" }];
  assert.deepEqual(conditions("strategy=easgd accuracy>0.99"), both);
  assert.deepEqual(conditions("  strategy = easgd   and accuracy > 0.99 "), both);
  assert.deepEqual(conditions(""), []);
});

test("AKeyThatBeginsWithAndIsAKey", () => {
  assert.deepEqual(conditions("android=1"), [{ key: "android", operator: "=", value: "1" }]);
});

test("ValuesWithBlanksStandInQuotes", () => {
  const c: Condition = { key: "note", operator: "~", value: "section 4" };
  assert.equal(written(c), 'note~"section 4"');
  assert.deepEqual(conditions('note~"section 4" tau=4'), [c, { key: "tau", operator: "=", value: "4" }]);
});

test("WhatIsWrittenIsReadBack", () => {
  const list: Condition[] = [{ key: "tag", operator: "!=", value: "α β" }, { key: "run", operator: "=", value: "a/b-1.2" }, { key: "error", operator: "=", value: "" }];
  assert.deepEqual(conditions(joined(list)), list);
});

test("AWrongFilterNamesItsColumn", () => {
  const wrong = parsed("strategy=easgd accuracy");
  assert.ok("error" in wrong && wrong.at === 15 && wrong.error.startsWith("column 16:"));
  assert.ok("error" in parsed("tau=4tau=5 ="));
});

test("ToggleTwiceLeavesTheFilterAsItWas", () => {
  const c: Condition = { key: "tag", operator: "=", value: "paper" };
  const once = toggled("strategy=easgd", c);
  assert.equal(once, "strategy=easgd tag=paper");
  assert.ok(holds(once, c));
  assert.equal(toggled(once, c), "strategy=easgd");
});

test("AnotherValueOfAKeyReplacesTheFirstButTagsAdd", () => {
  assert.equal(toggled("status=running tau=4", { key: "status", operator: "=", value: "done" }), "tau=4 status=done");
  assert.equal(toggled("tag=a", { key: "tag", operator: "=", value: "b" }), "tag=a tag=b");
});
