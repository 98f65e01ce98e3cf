// Curves with fewer points that look the same.

/** A curve: numbers in step, by x in ascending order. */
export interface Curve {
  epoch: number[];
  seconds: number[];
  samples: number[];
  value: number[];
}

export type Axis = "seconds" | "samples" | "epoch";

export const emptyCurve = (): Curve => ({ epoch: [], seconds: [], samples: [], value: [] });

/** The indices of at most `limit` points (at least 4): the first, the last, and the least and greatest value of each stretch between. */
export function thinned(values: readonly number[], limit: number): number[] {
  const n = values.length;
  if (n <= limit) return Array.from({ length: n }, (_, i) => i);
  const stretches = Math.max(1, Math.floor((limit - 2) / 2));
  const kept = [0];
  for (let s = 0; s < stretches; s += 1) {
    const from = 1 + Math.floor((s * (n - 2)) / stretches);
    const to = 1 + Math.floor(((s + 1) * (n - 2)) / stretches);
    let low = from;
    let high = from;
    for (let i = from; i < to; i += 1) {
      if (values[i]! < values[low]!) low = i;
      if (values[i]! > values[high]!) high = i;
    }
    if (to <= from) continue;
    kept.push(Math.min(low, high));
    if (low !== high) kept.push(Math.max(low, high));
  }
  kept.push(n - 1);
  return kept;
}

export function thin(curve: Curve, limit: number): Curve {
  if (curve.value.length <= limit) return curve;
  const kept = thinned(curve.value, limit);
  const pick = (list: number[]): number[] => kept.map((i) => list[i]!);
  return { epoch: pick(curve.epoch), seconds: pick(curve.seconds), samples: pick(curve.samples), value: pick(curve.value) };
}

/** An exponential moving average: each value moves by 1 − weight towards the next; without bias at the beginning. */
export function smooth(values: readonly number[], weight: number): number[] {
  if (weight <= 0) return [...values];
  let mean = 0;
  let total = 0;
  return values.map((value) => {
    mean = mean * weight + value * (1 - weight);
    total = total * weight + (1 - weight);
    return mean / total;
  });
}

/** From the service's [[epoch, seconds, samples, value], …]. Points without a finite value are left out. */
export function curveOf(points: readonly (readonly number[])[]): Curve {
  const curve = emptyCurve();
  for (const [epoch, seconds, samples, value] of points) {
    if (typeof value !== "number" || !Number.isFinite(value)) continue;
    curve.epoch.push(epoch ?? 0);
    curve.seconds.push(seconds ?? 0);
    curve.samples.push(samples ?? 0);
    curve.value.push(value);
  }
  return curve;
}

/** The curve's x values on an axis, made strictly ascending: reports of several workers can share an instant. */
export function ascending(xs: readonly number[]): number[] {
  let last = -Infinity;
  return xs.map((x) => {
    last = x > last ? x : last + Math.max(Math.abs(last), 1e-9) * 1e-12;
    return last;
  });
}
