// Where the values of a sweep lie on its axes, without a page.
import type { Sweep, SweepParameter, SweepTrial } from "../api/types";
import { count } from "./format";

/** From 0 to 1, as the sweep searches it; null: the trial does not have the parameter. */
export function place(p: SweepParameter, value: unknown): number | null {
  if (value === undefined || value === null) return null;
  if (p.kind === "choice") {
    const choices = p.choices ?? [];
    const at = choices.findIndex((c) => JSON.stringify(c) === JSON.stringify(value));
    return at < 0 ? null : (at + 0.5) / choices.length;
  }
  if (typeof value !== "number" || p.low === undefined || p.high === undefined || p.high <= p.low) return typeof value === "number" ? 0.5 : null;
  const part = p.log ? Math.log(value / p.low) / Math.log(p.high / p.low) : (value - p.low) / (p.high - p.low);
  return Math.min(1, Math.max(0, part));
}

/** Whether the trial has parameter i: parameters of different strategies may have the same key. */
export function exists(parameters: SweepParameter[], i: number, trial: SweepTrial): boolean {
  const { depends_on: on, when } = parameters[i]!;
  if (on === undefined) return true;
  const other = parameters[on]!;
  return exists(parameters, on, trial) && (when ?? []).some((k) => JSON.stringify(other.choices?.[k]) === JSON.stringify(trial.settings[other.key]));
}

/** The score at the highest rung that the trial has reached; null: none, or diverged. */
export const scoreOf = (trial: SweepTrial): number | null => trial.scores[trial.scores.length - 1] ?? null;

/** The trials, best first; behind them those without a result. */
export function ranked(sweep: Sweep): SweepTrial[] {
  const first = sweep.ranking.map((n) => sweep.trials[n]).filter((t): t is SweepTrial => t !== undefined);
  const seen = new Set(sweep.ranking);
  return [...first, ...sweep.trials.filter((t) => !seen.has(t.trial))];
}

export interface Polyline {
  trial: SweepTrial;
  at: (number | null)[]; // by axis, from 0 (below) to 1; the score is the last one
  whole: boolean; // trained to its end
}

/** A line for each trial with a score, the best one last. */
export function polylines(sweep: Sweep): Polyline[] {
  const scored = ranked(sweep).filter((t) => scoreOf(t) !== null);
  const scores = scored.map((t) => scoreOf(t)!);
  const low = Math.min(...scores), high = Math.max(...scores);
  return scored.map((trial) => ({
    trial,
    at: [...sweep.parameters.map((p, i) => (exists(sweep.parameters, i, trial) ? place(p, trial.settings[p.key]) : null)), high > low ? (scoreOf(trial)! - low) / (high - low) : 0.5],
    whole: trial.scores.length === sweep.rungs.length,
  })).reverse();
}

/** How a sweep's budget stands: "12 of 40 runs". */
export const progress = (trials: number, most: number | null): string => (most === null ? `${trials} runs` : `${trials} of ${most} runs`);
/** The same of epochs, over all trials: "120 of 230". */
export const epochsTrained = (sweep: { epochs_trained: number; most_epochs: number | null }): string =>
  sweep.most_epochs === null ? count(Math.round(sweep.epochs_trained)) : `${count(Math.round(sweep.epochs_trained))} of ${count(sweep.most_epochs)}`;
