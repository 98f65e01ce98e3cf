import assert from "node:assert/strict";
import { test } from "node:test";
import { ascending, curveOf, smooth, thin, thinned } from "../../src/lib/thin";

test("ThinnedCurvesKeepEndsAndExtremesAndOrder", () => {
  for (const n of [5, 100, 999, 20_000]) {
    const values = Array.from({ length: n }, (_, i) => Math.sin(i * 1.7) * (1 + (i % 13)));
    const spike = Math.floor(n / 3);
    values[spike] = 1000;
    values[spike + 1] = -1000;
    const kept = thinned(values, 50);
    assert.ok(kept.length <= 50);
    assert.equal(kept[0], 0);
    assert.equal(kept[kept.length - 1], n - 1);
    assert.ok(kept.includes(spike) && kept.includes(spike + 1));
    assert.ok(kept.every((k, i) => i === 0 || k > kept[i - 1]!));
  }
});

test("AShortCurveIsLeftAlone", () => {
  const curve = curveOf([[0.1, 1, 10, 5], [0.2, 2, 20, 4]]);
  assert.equal(thin(curve, 10), curve);
});

test("ThinningKeepsTheAxesTogether", () => {
  const curve = curveOf(Array.from({ length: 1000 }, (_, i) => [i / 100, i, i * 64, i * i]));
  const small = thin(curve, 100);
  for (let i = 0; i < small.value.length; i += 1) {
    assert.equal(small.value[i], small.seconds[i]! ** 2);
    assert.equal(small.samples[i], small.seconds[i]! * 64);
  }
});

test("PointsWithoutAFiniteValueAreLeftOut", () => {
  assert.deepEqual(curveOf([[1, 2, 3, null], [2, 3, 4, 0.5], [3, 4, 5, NaN]]), { epoch: [2], seconds: [3], samples: [4], value: [0.5] });
});

test("SmoothingAConstantChangesNothing", () => {
  for (const value of smooth([3, 3, 3, 3], 0.9)) assert.ok(Math.abs(value - 3) < 1e-12);
  assert.deepEqual(smooth([1, 5, 2], 0), [1, 5, 2]);
  // weight 0.5: 4; then (4·0.25 + 8·0.5) / 0.75
  assert.deepEqual(smooth([4, 8], 0.5).map((v) => Number(v.toFixed(9))), [4, Number(((4 * 0.25 + 8 * 0.5) / 0.75).toFixed(9))]);
});

test("AxesAreStrictlyAscending", () => {
  const xs = ascending([0, 0, 1, 1, 0.5, 2]);
  for (let i = 1; i < xs.length; i += 1) assert.ok(xs[i]! > xs[i - 1]!);
});
