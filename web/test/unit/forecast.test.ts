import assert from "node:assert/strict";
import { test } from "node:test";
import { ahead, curve, isComputed, sentence, type Forecast } from "../../src/lib/forecast";

const given = (more: Partial<Forecast>): Forecast => ({
  run: "a", strategy: "bsp", own: false, pending: false, epochs: 2, begun_at: 0, exchange_gb_per_s: null, evaluation_s: 0, actual: [[1, 9600, 150]], points: [[1, 7200, 112]],
  now: { t: 1, actual: { samples: 9600, steps: 150, epoch: 1.5 }, forecast: { samples: 7200, steps: 112, epoch: 1.125 } }, end_s: 2, cut_off: false, notes: [], ...more,
});

test("ASentenceSaysWhereAStrategyWouldBe", () => {
  assert.equal(ahead(given({})), -0.25);
  assert.match(sentence(given({})), /^bsp would now be at epoch 1\.1[23]5? \(7,200 samples\): 25 % behind\.$/);
  const same = given({ own: true, strategy: "easgd", now: { t: 1, actual: { samples: 9600, steps: 150, epoch: 1.5 }, forecast: { samples: 9601, steps: 150, epoch: 1.5 } } });
  assert.match(sentence(same), /^easgd, as it is, would now be at .*: where the run is\.$/);
});

test("AForecastThatHasEndedOrWasCutOffSaysSo", () => {
  const now = { t: 5, actual: { samples: 9600, steps: 150, epoch: 1.5 }, forecast: null };
  assert.match(sentence(given({ now })), /^bsp would have ended by now, after /);
  assert.match(sentence(given({ now, cut_off: true, end_s: null })), /takes too long to compute/);
  assert.equal(ahead(given({ now })), null);
});

test("CurvesBeginAtNothing", () => {
  assert.deepEqual(curve([[1, 10, 2], [2, 20, 4]], "samples"), { x: [0, 1, 2], y: [0, 10, 20] });
  assert.deepEqual(curve([[1, 10, 2]], "steps"), { x: [0, 1], y: [0, 2] });
  assert.equal(isComputed({ run: "a", pending: true }), false);
});
