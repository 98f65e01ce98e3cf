import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, bytes, cell, count, duration, extents, percent, perSecond, plain, plural, short, when } from "../../src/lib/format";

const spaced = (text: string): string => text.replace(/\u202f/g, " ");

test("NumbersThatAreNotThereAreADash", () => {
  for (const show of [count, plain, short, bytes, percent, perSecond, duration])
    for (const value of [null, undefined, NaN, Infinity]) assert.equal(show(value), "–");
  assert.equal(when(null), "–");
  assert.equal(ago(undefined), "–");
});

test("CountsAreGroupedByThousands", () => {
  assert.equal(count(431080), "431,080");
  assert.equal(count(0), "0");
  assert.equal(plural(1, "worker"), "1 worker");
  assert.equal(plural(1200, "worker"), "1,200 workers");
});

test("SmallNumbersKeepTheirSignificantDigits", () => {
  assert.equal(plain(0.004794232735), "0.00479");
  assert.equal(plain(12.345), "12.3");
  assert.equal(plain(2814), "2,814");
  assert.equal(plain(1.234e-7), "1.23e-7");
  assert.equal(plain(0), "0");
});

test("PrefixesStepAtAThousandAlsoAfterRounding", () => {
  assert.equal(spaced(short(999)), "999");
  assert.equal(spaced(short(999.6)), "1.00 k");
  assert.equal(spaced(short(19372.4)), "19.4 k");
  assert.equal(spaced(short(999_950)), "1.00 M");
  assert.equal(spaced(bytes(2570061312)), "2.57 GB");
  assert.equal(spaced(short(-1500)), "-1.50 k");
});

test("DurationsHaveAtMostTwoUnitsAndNeverSixtyOfOne", () => {
  assert.equal(spaced(duration(0.000356)), "356 µs");
  assert.equal(spaced(duration(0.0163)), "16.3 ms");
  assert.equal(spaced(duration(41.23)), "41.2 s");
  assert.equal(spaced(duration(59.97)), "1 min 00 s");
  assert.equal(spaced(duration(192)), "3 min 12 s");
  assert.equal(spaced(duration(3599.7)), "1 h 00 min");
  assert.equal(spaced(duration(7440)), "2 h 04 min");
  assert.equal(spaced(duration(86399)), "1 d 00 h");
  assert.equal(spaced(duration(277200)), "3 d 05 h");
});

test("ColumnsAreShownByWhatTheirNameMeans", () => {
  assert.equal(spaced(cell("validation.best.accuracy", 0.9986)), "99.86 %");
  assert.equal(spaced(cell("wall_s", 41.23)), "41.2 s");
  assert.equal(spaced(cell("images_per_s", 19372)), "19.4 k/s");
  assert.equal(cell("tau", 4), "4");
  assert.equal(cell("error", ""), "–");
  assert.equal(cell("tags", ["a", "b"]), "a, b");
});

test("ATimeWithoutAZoneIsShownAsItIs", () => {
  assert.equal(when("2026-01-02 03:04:05"), "2026-01-02 03:04:05");
  const at = new Date(2026, 0, 2, 3, 4, 5);
  assert.equal(when(at.toISOString()), "2026-01-02 03:04:05");
  assert.equal(spaced(ago("2026-01-02T03:04:05Z", Date.parse("2026-01-02T03:07:17Z"))), "3 min 12 s ago");
});

test("ShapesAreShownByTheirExtents", () => {
  assert.equal(extents([3, 224, 224]), "3×224×224");
  assert.equal(extents([500, 1, 1]), "500");
  assert.equal(extents([]), "–");
});
