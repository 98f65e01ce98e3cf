import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { RunDetails } from "../../api/types";
import { bytes, count, percent, perSecond, plain, plural } from "../../lib/format";
import type { RunModel } from "../../lib/run_model";
import { quoted } from "../../lib/shell";
import type { Axis } from "../../lib/thin";
import { Chart, smoothed, type Series } from "../../parts/chart";
import { Choice, Code, Panel } from "../../parts/misc";
import { TimeBar, TimeLegend, type Times } from "../../parts/times";
import { Topology } from "../../parts/topology";
import { kAxes, showX } from "../compare";
import { OfThisSession } from "./workers";

interface Plot {
  title: string;
  names: [series: string, label: string, colour: string][];
  y: (v: number) => string;
  log?: boolean;
}

const kDashes: Record<string, number[]> = { train: [7, 4], validation: [2, 3] };

const kPlots: Plot[] = [
  { title: "Loss", names: [["step.loss", "step", "line-0"], ["train.loss", "train", "line-3"], ["test.loss", "test", "line-1"], ["validation.loss", "validation", "line-2"]], y: (v) => plain(v), log: true },
  { title: "Accuracy", names: [["step.accuracy", "step", "line-0"], ["train.accuracy", "train", "line-3"], ["test.accuracy", "test", "line-1"], ["validation.accuracy", "validation", "line-2"]], y: (v) => percent(v, 1) },
  { title: "Samples per second", names: [["rate", "now", "line-5"], ["train.images_per_s", "of an epoch", "line-0"]], y: perSecond },
  { title: "Learning rate", names: [["lr", "lr", "line-0"]], y: (v) => plain(v) },
];

function sum(model: RunModel): Times {
  const all = { compute_s: 0, exchange_s: 0, wait_s: 0, load_s: 0 };
  for (const w of model.workers) {
    all.compute_s += w.compute_s;
    all.exchange_s += w.exchange_s;
    all.wait_s += w.wait_s;
    all.load_s += w.load_s;
  }
  return all;
}

/** How far the run is in its samples; the tab Members has the ledger. Those of steps that were passed over are done, but not computed. */
function SampleCounts({ model }: { model: RunModel }): JSX.Element {
  const whole = model.epochs > 0;
  const part = whole ? model.done / model.epochs : 0;
  const left = Math.round(model.epochSamples * Math.max(0, model.epochs - model.done));
  const of = (key: "passed" | "replaced" | "dropped" | "refused"): number => model.workers.reduce((n, w) => n + (w[key] ?? 0), 0);
  const here = model.resumedAt === null ? "" : "; in this session";
  const lines: [string, string, string][] = [
    ["computed", count(model.samples), whole ? `${percent(part, 1)} of the epochs are done` : "–"],
    [model.status === "running" ? "still to come" : "not trained", count(left), whole ? percent(1 - part, 1) : "–"],
    ["replaced", count(of("replaced")), `could not be read; others took their place${here}`],
    ["steps passed over", count(of("passed")), `their leases were given up${here}`],
    ["updates dropped", count(of("dropped")), `left out by a server, too late or of no use${here}`],
    ["updates refused", count(of("refused")), `held a number that is not finite${here}`],
  ];
  return (
    <>
      <span class="sample-bar" role="img" aria-label={`${percent(part, 1)} of the epochs are done`}>
        <span class="sample-bar-done" style={{ width: `${part * 100}%` }} /></span>
      <table class="facts"><tbody>{lines.map(([what, n, note]) => (
        <tr key={what}><th scope="row">{what}</th><td class="number">{n}</td><td class="muted">{note}</td></tr>))}</tbody></table>
    </>
  );
}

export function Overview({ details, model, version }: { details: RunDetails; model: RunModel; version: number }): JSX.Element {
  const [axis, setAxis] = useState<Axis>("seconds");
  const [weight, setWeight] = useState(0.8);
  const [log, setLog] = useState(true);
  const plots = useMemo(() => kPlots.map((plot) => {
    const series = plot.names.flatMap(([name, label, colour]): Series[] => {
      const curve = model.curves.get(name);
      return curve && curve.value.length ? [{ label, x: [...curve[axis]], y: [...curve.value], colour, points: curve.value.length < 40 && !/^(step\.|rate)/.test(name), ...(kDashes[label] ? { dash: kDashes[label] } : {}) }] : [];
    });
    const positive = series.every((s) => s.y.every((v) => v > 0));
    return { ...plot, log: !!plot.log && log && positive && series.length > 0, series: smoothed(series, weight, (s) => s.label === "step") };
  }), [version, axis, weight, log, model]);
  const times = sum(model);
  const workers = Math.max(1, model.workers.length);
  const mean: Times = { compute_s: times.compute_s / workers, exchange_s: times.exchange_s / workers, wait_s: times.wait_s / workers, load_s: times.load_s / workers };
  const sent = model.workers.reduce((n, w) => n + w.bytes, 0);
  const exchanges = model.workers.reduce((n, w) => n + w.exchanges, 0);
  const hash = details.summary?.center_hash;
  return (
    <>
      <div class="toolbar">
        <span class="field"><span class="field-name">over</span><Choice label="Horizontal axis" options={kAxes} now={axis} choose={setAxis} /></span>
        <label class="field"><span class="field-name">smooth</span>
          <input type="range" min="0" max="0.98" step="0.02" value={weight} onInput={(e) => setWeight(Number(e.currentTarget.value))} /></label>
        <label class="field"><input type="checkbox" checked={log} onChange={() => setLog(!log)} /> loss on a logarithmic axis</label>
      </div>
      <div class="charts">
        {plots.map((plot) => <section class="panel" key={plot.title}><Chart title={plot.title} series={plot.series} x={showX[axis]} y={plot.y} log={plot.log} sync={`run-${axis}`} /></section>)}
      </div>
      <div class="columns">
        <Panel title="Where a worker's time goes">
          {model.workers.length > 0 ? <><TimeBar times={mean} label="mean over the workers" /><TimeLegend times={mean} /></> : <p class="muted">{model.partial ? "Loading…" : "No worker has reported yet."}</p>}
          <p class="muted">{bytes(sent)} in {plural(exchanges, "exchange")}: {bytes(exchanges > 0 ? sent / exchanges : null)} each.</p>
          <OfThisSession model={model} />
        </Panel>
        <Panel title="Samples"><SampleCounts model={model} /></Panel>
        <Panel title="Workers and servers">
          {model.workers.length > 0 ? <Topology workers={model.workers} servers={model.servers} waits={model.waits} columns={model.columns} />
            : <p class="muted">{model.partial ? "Loading…" : "No worker has reported yet."}</p>}
        </Panel>
        <Panel title="Do it again">
          <p class="muted">Executes the recorded run again, in the recorded order, and compares every hash.</p>
          <Code label="the replay command" text={`troupe replay ${quoted(details.directory || details.run)}`} />
          {hash && <p class="muted">Hash of the final model: <code>{hash}</code></p>}
          {details.note && <><h3>Note</h3><p class="note-text">{details.note}</p></>}
        </Panel>
      </div>
    </>
  );
}
