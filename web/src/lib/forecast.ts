// What a forecast says, in words and curves. No page, no requests.
import { count, duration, plain } from "./format";

export interface ForecastPlace {
  samples: number;
  steps: number;
  epoch: number;
}

export interface Forecast {
  run: string;
  strategy: string;
  own: boolean;
  pending: boolean;
  epochs: number;
  begun_at: number;
  exchange_gb_per_s: number | null;
  evaluation_s: number;
  actual: number[][]; // [seconds, samples, steps]
  points: number[][];
  now: { t: number; actual: ForecastPlace; forecast: ForecastPlace | null };
  end_s: number | null;
  cut_off: boolean;
  notes: string[];
}

/** Of the first answer: it is being computed. */
export interface ForecastPending {
  run: string;
  pending: true;
}

export const isComputed = (f: Forecast | ForecastPending): f is Forecast => "points" in f;

/** How far the forecast is before the run, as a share of the run's samples; null: not known. */
export function ahead(f: Forecast): number | null {
  const place = f.now.forecast;
  return place && f.now.actual.samples > 0 ? place.samples / f.now.actual.samples - 1 : null;
}

/** "bsp would now be at epoch 1.5 (9,600 samples): 25 % behind." */
export function sentence(f: Forecast): string {
  const name = f.own ? `${f.strategy}, as it is,` : f.strategy;
  const place = f.now.forecast;
  if (!place)
    return f.cut_off ? `${name} was simulated for ${duration(f.points[f.points.length - 1]?.[0] ?? 0)} only: it takes too long to compute.`
      : `${name} would have ended by now${f.end_s === null ? "" : `, after ${duration(f.end_s)}`}.`;
  const lead = ahead(f);
  const share = lead === null ? "" : Math.abs(lead) < 0.005 ? ": where the run is" : `: ${Math.abs(lead * 100).toFixed(0)} % ${lead > 0 ? "ahead" : "behind"}`;
  return `${name} would now be at epoch ${plain(place.epoch, 3)} (${count(Math.round(place.samples))} samples)${share}.`;
}

export type ForecastAxis = "samples" | "steps";

/** A curve of a forecast or of the run, from 0 on. */
export function curve(points: readonly number[][], of: ForecastAxis): { x: number[]; y: number[] } {
  const column = of === "samples" ? 1 : 2;
  return { x: [0, ...points.map((p) => p[0]!)], y: [0, ...points.map((p) => p[column]!)] };
}
