// Where the run would be by now under other strategies, simulated by the service from the times that the run has measured.
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { at, get, message } from "../../api/client";
import { useList } from "../../api/hooks";
import { mayPass } from "../../api/loader";
import { ahead, curve, isComputed, sentence, type Forecast, type ForecastAxis, type ForecastPending } from "../../lib/forecast";
import { count, duration, percent, plain } from "../../lib/format";
import { asked, setQuery, useRoute } from "../../lib/route";
import { Chart, type Series } from "../../parts/chart";
import { Choice, ErrorLine, Panel } from "../../parts/misc";

interface Answer {
  forecast: Forecast | null;
  error: string | null;
}

const kOwn = "";
const kNone = "-"; // in the address: no strategy beside the run
const kComputingMs = 1_000, kAgainMs = 3_000, kFreshMs = 15_000;
const kLines = 6; // colours of lines; the first is the run's
const kAxes: readonly { id: ForecastAxis; label: string }[] = [{ id: "samples", label: "samples" }, { id: "steps", label: "steps" }];

/** Asks for each, again while it is computed, and again now and then while the run trains. */
function useForecasts(run: string, strategies: readonly string[], running: boolean): Map<string, Answer> {
  const [answers, set] = useState<Map<string, Answer>>(new Map());
  const wanted = strategies.join();
  useEffect(() => {
    const control = new AbortController();
    const timers = new Set<ReturnType<typeof setTimeout>>();
    const keep = (name: string, answer: Answer): void => set((old) => new Map(old).set(name, answer));
    const ask = async (name: string): Promise<void> => {
      let wait: number | null = running ? kFreshMs : null;
      try {
        const answer = await get<Forecast | ForecastPending>(at("runs", run, "forecast") + asked({ strategy: name }), control.signal);
        if (isComputed(answer)) keep(name, { forecast: answer, error: null });
        if (answer.pending) wait = kComputingMs;
      } catch (error) {
        if (control.signal.aborted) return;
        set((old) => new Map(old).set(name, { forecast: old.get(name)?.forecast ?? null, error: message(error) }));
        if (mayPass(error)) wait = kAgainMs;
      }
      if (wait === null || control.signal.aborted) return;
      const timer = setTimeout(() => {
        timers.delete(timer);
        if (document.visibilityState === "visible") void ask(name);
        else timers.add(setTimeout(() => void ask(name), kFreshMs));
      }, wait);
      timers.add(timer);
    };
    wanted.split(",").forEach((name) => void ask(name));
    return () => {
      control.abort();
      timers.forEach(clearTimeout);
    };
  }, [run, wanted, running]);
  return answers;
}

export function ForecastTab({ run, own, running }: { run: string; own: string; running: boolean }): JSX.Element {
  const route = useRoute();
  const known = useList<{ name: string; summary?: string }>("/strategies");
  const [axis, setAxis] = useState<ForecastAxis>("samples");
  const given = route.query.get("beside");
  const beside = (given ?? (own === "bsp" ? "easgd" : "bsp")).split(",").filter((name) => name && name !== kNone);
  const names = [kOwn, ...beside];
  const answers = useForecasts(run, names, running);
  const toggle = (name: string): void => setQuery({ beside: (beside.includes(name) ? beside.filter((b) => b !== name) : [...beside, name]).join() || kNone });
  const found = names.flatMap((name) => answers.get(name)?.forecast ?? []);
  const series = useMemo((): Series[] => {
    const actual = found[0];
    if (!actual) return [];
    return [{ label: "the run", ...curve(actual.actual, axis), colour: "line-0" },
      ...found.map((f, i): Series => ({ label: f.own ? `${f.strategy}, simulated` : f.strategy, ...curve(f.points, axis), colour: `line-${1 + (i % (kLines - 1))}`, dash: f.own ? [2, 3] : [7, 4] }))];
  }, [answers, axis, beside.join()]);
  const first = found[0];
  return (
    <>
      <p class="lead">Where the run would be by now under another strategy, simulated from the times that it has measured itself. <strong>It knows times, not losses</strong>:
        how far another strategy would have come, not how well it would have learned.</p>
      <div class="toolbar">
        <fieldset class="field choose"><legend class="field-name">beside the run</legend>
          {(known.data ?? []).filter((s) => s.name !== own).map((s) => (
            <label key={s.name} title={s.summary}><input type="checkbox" checked={beside.includes(s.name)} onChange={() => toggle(s.name)} /> {s.name}</label>))}
        </fieldset>
        <span class="field"><span class="field-name">of</span><Choice label="Vertical axis" options={kAxes} now={axis} choose={setAxis} /></span>
      </div>
      <ErrorLine error={known.error} retry={known.reload} />
      <section class="panel"><Chart title={axis === "samples" ? "Samples over time" : "Steps over time"} series={series} x={(v) => duration(v)} y={(v) => count(Math.round(v))} height={300} /></section>
      <Panel title="Now" wide>
        <table class="facts forecasts"><thead><tr><th scope="col">strategy</th><th scope="col">now</th><th scope="col">beside the run</th><th scope="col">ends after</th></tr></thead>
          <tbody>
            {first && <tr><th scope="row">the run</th><td class="number">epoch {plain(first.now.actual.epoch, 3)}</td><td>–</td><td class="number">{running ? "–" : duration(first.now.t)}</td></tr>}
            {names.map((name) => {
              const answer = answers.get(name);
              const f = answer?.forecast;
              const lead = f ? ahead(f) : null;
              return (
                <tr key={name}><th scope="row">{name === kOwn ? `${own}, simulated` : name}</th>
                  {f ? <><td class="number">{f.now.forecast ? `epoch ${plain(f.now.forecast.epoch, 3)}` : f.cut_off ? "not reached" : "ended"}</td>
                    <td class="number">{lead === null ? "–" : `${lead > 0 ? "+" : ""}${percent(lead, 0)}`}</td><td class="number">{f.end_s === null ? "–" : duration(f.end_s)}</td></>
                    : <td colSpan={3} class="muted">{answer?.error ?? "being simulated…"}</td>}</tr>
              );
            })}
          </tbody></table>
        <ul class="said" aria-live="polite">{found.map((f) => <li key={`${f.strategy}${f.own}`}>{sentence(f)}{f.notes.map((n) => <span class="muted" key={n}> {n}</span>)}</li>)}</ul>
      </Panel>
      {first && <p class="muted">It takes each worker's steps to be as long as those so far; exchanges {first.exchange_gb_per_s === null ? "to take no time, as the run has made none yet"
        : `to run at the ${plain(first.exchange_gb_per_s, 3)} GB/s that the run's own have had`}; a pause of {duration(first.evaluation_s)} at each epoch's end; and that no member is lost.
        The line "{own}, simulated" shows how well that holds: it should lie on the run's.</p>}
    </>
  );
}
