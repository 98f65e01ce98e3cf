// The workers of a run one by one: their time, whom they wait for, how stale their updates are.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { bytes, count, duration, percent, perSecond, plain, plural } from "../../lib/format";
import type { RunModel, Worker } from "../../lib/run_model";
import { Heatmap } from "../../parts/heatmap";
import { Empty, Panel } from "../../parts/misc";
import { Table, ordered, type Column } from "../../parts/table";
import { TimeBar, TimeLegend, total } from "../../parts/times";

const kLongest = 10;

type Value = (w: Worker, model: RunModel) => number | null | undefined;
const kValues: Record<string, Value> = {
  worker: (w) => w.worker, steps: (w) => w.steps, samples: (w) => w.samples,
  rate: (w) => w.samples_per_s,
  time: total, wait: (w) => (total(w) > 0 ? w.wait_s / total(w) : null), exchanges: (w) => w.exchanges, bytes: (w) => w.bytes,
  stale: (w) => w.staleness_mean, most: (w) => w.staleness_max, loss: (w) => w.loss, accuracy: (w) => w.accuracy,
  heard: (w, m) => (m.status === "running" && m.heard.has(w.worker) ? m.t - m.heard.get(w.worker)! : null),
};

/** Where the run went on: what is said of workers leaves out what they did before. */
export function OfThisSession({ model }: { model: RunModel }): JSX.Element | null {
  return model.resumedAt === null ? null
    : <p class="muted">These numbers cover this session only, which went on at epoch {plain(model.resumedAt)}.</p>;
}

export function WorkersTab({ model }: { model: RunModel }): JSX.Element {
  const [sort, setSort] = useState({ key: "worker", descending: false });
  const rows = ordered(model.workers, (w) => kValues[sort.key]?.(w, model), sort.descending);
  const numeric = (key: string, title: string, show: (v: number | null | undefined) => string, help?: string): Column<Worker> => ({
    key, title, numeric: true, sortable: true, ...(help ? { help } : {}), show: (w) => show(kValues[key]!(w, model)),
  });
  const columns: Column<Worker>[] = [
    numeric("worker", "worker", (v) => String(v)),
    numeric("steps", "steps", count),
    numeric("samples", "samples", count),
    numeric("rate", "samples/s", perSecond),
    { key: "bar", title: "compute, exchange, wait, load", wide: true, show: (w) => <TimeBar times={w} label={`worker ${w.worker}`} /> },
    numeric("wait", "waits", (v) => percent(v, 1), "share of its time that it waits for others"),
    numeric("exchanges", "exchanges", count),
    numeric("bytes", "bytes", bytes),
    numeric("stale", "staleness", (v) => plain(v), "mean over its updates"),
    numeric("most", "most", count, "greatest staleness of one of its updates"),
    numeric("loss", "loss", (v) => plain(v), "since its last report"),
    numeric("accuracy", "accuracy", (v) => percent(v, 1), "since its last report"),
    numeric("heard", "heard", (v) => (v === null ? "–" : duration(Math.max(0, v ?? 0))), "time since its last report"),
  ];
  if (rows.length === 0) return <Empty title={model.partial ? "Loading…" : "No worker has reported yet."}>The first reports come with the first steps.</Empty>;
  return (
    <Panel title={plural(rows.length, "worker")} aside={<TimeLegend />} wide>
      <Table label="Workers" columns={columns} rows={rows} id={(w) => w.worker} sort={sort} onSort={(key, descending) => setSort({ key, descending })} />
      <OfThisSession model={model} />
    </Panel>
  );
}

export function WaitsTab({ model, version }: { model: RunModel; version: number }): JSX.Element {
  const value = (row: number, column: number): number => model.waits[row]?.[column] ?? 0;
  const most = useMemo(() => {
    const longest: { row: number; column: number; seconds: number }[] = []; // the matrix can have 250,000 cells: no sort of them all
    model.waits.forEach((list, row) => list.forEach((seconds, column) => {
      if (!(seconds > (longest.length < kLongest ? 0 : longest[kLongest - 1]!.seconds))) return;
      longest.splice(kLongest - 1);
      longest.push({ row, column, seconds });
      longest.sort((a, b) => b.seconds - a.seconds);
    }));
    return longest;
  }, [version, model]);
  const all = model.waits.reduce((sum, row) => sum + row.reduce((n, v) => n + v, 0), 0);
  const say = (row: number, column: number): string =>
    `${model.rows[row] ?? `worker ${row}`} waited ${duration(value(row, column))} for ${model.columns[column] ?? "?"}`;
  if (model.rows.length === 0) return <Empty title={model.partial ? "Loading…" : "No worker has reported yet."} />;
  return (
    <div class="columns uneven">
      <Panel title="Who waits for whom">
        <Heatmap label="Seconds that each worker waited for each member" rows={model.rows} columns={model.columns} value={value} say={say}
          colour="wait" show={duration} version={version} caption={{ rows: "who waits", columns: "for whom" }} />
      </Panel>
      <Panel title="Longest waits">
        {most.length === 0 ? <Empty title="Nobody has waited for anybody." /> : (
          <table class="facts"><thead><tr><th scope="col">who</th><th scope="col">for whom</th><th scope="col" class="number">seconds</th><th scope="col" class="number">of all waits</th></tr></thead>
            <tbody>{most.map((p) => (
              <tr key={`${p.row}-${p.column}`}><td class="nowrap">{model.rows[p.row]}</td><td class="nowrap">{model.columns[p.column]}</td>
                <td class="number">{duration(p.seconds)}</td><td class="number">{percent(p.seconds / all, 1)}</td></tr>))}</tbody></table>
        )}
        <p class="muted">A worker causes a wait if its part comes last; a server, if it serves others first or answers late. All waits together: {duration(all)}.</p>
        <OfThisSession model={model} />
      </Panel>
    </div>
  );
}

export function StalenessTab({ model, version }: { model: RunModel; version: number }): JSX.Element {
  const { edges, workers } = model.staleness;
  const used = workers.reduce((last, row) => Math.max(last, row.reduce((l, n, i) => (n > 0 ? i : l), -1)), -1);
  const bins = edges.slice(0, Math.min(edges.length, Math.max(used + 2, 6)));
  const name = (i: number): string => (i === edges.length - 1 ? `≥ ${edges[i]}` : edges[i + 1]! - edges[i]! === 1 ? `${edges[i]}` : `${edges[i]}–${edges[i + 1]! - 1}`);
  const value = (row: number, column: number): number => workers[row]?.[column] ?? 0;
  if (model.partial) return <Empty title="Loading…" />;
  if (used < 0)
    return <Empty title="No update of this run has a staleness.">Strategies in which all workers meet at a step, or only pull, have none. For others it appears with the first exchanges.</Empty>;
  const all = workers.map((row) => row.reduce((n, v) => n + v, 0));
  const list = [...model.workers].sort((a, b) => (b.staleness_mean ?? 0) - (a.staleness_mean ?? 0)).slice(0, 10);
  return (
    <div class="columns uneven">
      <Panel title="Updates by staleness">
        <Heatmap label="Updates of each worker by their staleness" rows={model.rows} columns={bins.map((_, i) => name(i))} value={value} byRow
          say={(row, column) => `${model.rows[row] ?? ""}: ${count(value(row, column))} of ${count(all[row])} updates had staleness ${name(column)} (${percent(value(row, column) / (all[row] || 1), 1)})`}
          colour="accent" show={count} version={version} caption={{ rows: "worker", columns: "staleness" }} />
      </Panel>
      <Panel title="Stalest workers">
        <table class="facts"><thead><tr><th scope="col">worker</th><th scope="col" class="number">mean</th><th scope="col" class="number">most</th><th scope="col" class="number">updates</th></tr></thead>
          <tbody>{list.map((w) => <tr key={w.worker}><td>worker {w.worker}</td><td class="number">{plain(w.staleness_mean)}</td><td class="number">{count(w.staleness_max)}</td>
            <td class="number">{count(all[model.workers.indexOf(w)] ?? null)}</td></tr>)}</tbody></table>
        <p class="muted">Staleness of an update: versions of the centre that the worker had not seen when its update came.</p>
        <OfThisSession model={model} />
      </Panel>
    </div>
  );
}
