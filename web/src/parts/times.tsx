// Where the seconds of workers go: compute, exchange, wait, load.
import type { JSX } from "preact";
import { duration, percent } from "../lib/format";

export interface Times {
  compute_s: number;
  exchange_s: number;
  wait_s: number;
  load_s: number;
}

export const kTimes = [
  { key: "compute_s", name: "compute", help: "forward, backward, optimizer" },
  { key: "exchange_s", name: "exchange", help: "blocked while its exchange is worked on" },
  { key: "wait_s", name: "wait", help: "blocked while it waits for other members" },
  { key: "load_s", name: "load", help: "blocked while it waits for its batch" },
] as const;

export const total = (t: Times): number => t.compute_s + t.exchange_s + t.wait_s + t.load_s;

/** One bar; its parts in the fixed order and with fixed patterns, so that colour is not all that tells them apart. */
export function TimeBar({ times, label }: { times: Times; label: string }): JSX.Element {
  const all = total(times) || 1;
  const text = kTimes.map((k) => `${k.name} ${duration(times[k.key])} (${percent(times[k.key] / all, 1)})`).join(", ");
  return (
    <span class="time-bar" role="img" aria-label={`${label}: ${text}`} title={text}>
      {kTimes.map((k) => <span key={k.key} class={`time-${k.name}`} style={{ width: `${(times[k.key] / all) * 100}%` }} />)}
    </span>
  );
}

export function TimeLegend({ times }: { times?: Times }): JSX.Element {
  const all = times ? total(times) : 0;
  return (
    <ul class="legend times">
      {kTimes.map((k) => (
        <li key={k.key} title={k.help}>
          <span class={`swatch time-${k.name}`} aria-hidden="true" />{k.name}
          {times && all > 0 && <> <b>{percent(times[k.key] / all, 1)}</b> <span class="muted">{duration(times[k.key])}</span></>}
        </li>
      ))}
    </ul>
  );
}
