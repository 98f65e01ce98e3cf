import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { at, get } from "../api/client";
import { useLoaded } from "../api/hooks";
import type { Comparison, Curves, Summary } from "../api/types";
import { bytes, cell, count, duration, kNone, percent, perSecond, plain, short } from "../lib/format";
import { namesOf } from "../lib/names";
import { asked, link, setQuery } from "../lib/route";
import { curveOf, type Axis, type Curve } from "../lib/thin";
import { Chart, smoothed, type Series } from "../parts/chart";
import { Badge, Choice, Empty, ErrorLine, Link, Page, Panel, Shown } from "../parts/misc";
import { TimeBar, TimeLegend } from "../parts/times";

export const kAxes: { id: Axis; label: string }[] = [{ id: "seconds", label: "time" }, { id: "samples", label: "samples" }, { id: "epoch", label: "epochs" }];
export const showX: Record<Axis, (v: number) => string> = {
  seconds: duration, samples: (v) => short(v), epoch: (v) => `epoch ${plain(v, 3)}`,
};
const kSeries = ["test.accuracy", "test.loss", "step.loss", "step.accuracy", "train.loss", "train.images_per_s", "lr", "validation.accuracy", "validation.loss"];
const isShare = (name: string): boolean => /accuracy|top5/.test(name);
const kColours = 8;
const kNoCurves: ReadonlyMap<string, Map<string, Curve>> = new Map();

const kResults: [string, (s: Summary) => string][] = [
  ["test accuracy", (s) => percent(s.test?.accuracy)], ["test loss", (s) => plain(s.test?.loss, 4)], ["train loss", (s) => plain(s.train?.loss, 4)],
  ["wall time", (s) => duration(s.wall_s)], ["images/s", (s) => perSecond(s.train?.images_per_s)], ["epochs", (s) => plain(s.epochs)],
  ["steps", (s) => count(s.steps)], ["samples", (s) => count(s.samples)], ["bytes", (s) => bytes(s.exchange?.bytes)],
  ["staleness, mean", (s) => plain(s.exchange?.staleness_mean)], ["staleness, most", (s) => count(s.exchange?.staleness_max)],
  ["dropped", (s) => count(s.exchange?.dropped)],
];

/** Colour and dash of the n-th run: after eight colours the dashes change. */
const look = (n: number): { colour: string; dash?: number[] } =>
  ({ colour: `line-${n % kColours}`, ...(n >= kColours ? { dash: n >= 2 * kColours ? [2, 3] : [7, 4] } : {}) });

export function ComparePage({ runs, query }: { runs: string[]; query: URLSearchParams }): JSX.Element {
  const axis = (kAxes.find((a) => a.id === query.get("over"))?.id ?? "seconds") as Axis;
  const [weight, setWeight] = useState(0.6);
  const compared = useLoaded<Comparison>(runs.length ? `/compare${asked({ run: runs })}` : null);
  const wanted = runs.join("\n");
  const loaded = useLoaded(wanted || null, async (_, signal) => new Map(await Promise.all(runs.map(async (run): Promise<[string, Map<string, Curve>]> => {
    const answer = await get<{ series: Curves }>(`${at("runs", run, "curves")}${asked({ series: kSeries.join(), points: 1000 })}`, signal);
    return [run, new Map(Object.entries(answer.series).map(([name, points]) => [name, curveOf(points)]))];
  }))));
  const curves = loaded.data ?? kNoCurves;
  const names = useMemo(() => namesOf(runs, compared.data), [compared.data, wanted]);
  const charts = useMemo(() => kSeries.map((name) => ({
    name,
    series: smoothed(runs.flatMap((run, i): Series[] => {
      const curve = curves.get(run)?.get(name);
      return curve && curve.value.length ? [{ label: names.get(run) ?? run, x: curve[axis], y: curve.value, points: curve.value.length < 40 && !name.startsWith("step."), ...look(i) }] : [];
    }), name.startsWith("step.") ? weight : 0),
  })).filter((chart) => chart.series.length > 0), [curves, axis, weight, names]);

  if (runs.length === 0)
    return <Page title="Compare"><Empty title="No run is chosen."><Link to="#/runs">Choose runs in the table</Link>, then compare them here.</Empty></Page>;
  return (
    <Page title={`Compare ${runs.length} runs`} actions={<Link class="button" to="#/runs">Choose others</Link>}>
      <div class="toolbar">
        <span class="field"><span class="field-name">over</span><Choice label="Horizontal axis" options={kAxes} now={axis} choose={(over) => setQuery({ over })} /></span>
        <label class="field"><span class="field-name">smooth step curves</span>
          <input type="range" min="0" max="0.98" step="0.02" value={weight} onInput={(e) => setWeight(Number(e.currentTarget.value))} /></label>
      </div>
      <ErrorLine error={loaded.error} retry={loaded.reload} />
      <div class="charts">
        {charts.map((chart) => (
          <section class="panel" key={chart.name}>
            <Chart title={chart.name} series={chart.series} x={showX[axis]} y={isShare(chart.name) ? (v) => percent(v, 2) : /per_s/.test(chart.name) ? perSecond : plain}
              log={/loss$/.test(chart.name) && chart.series.every((s) => s.y.every((v) => v > 0))} sync={`compare-${axis}`} />
          </section>
        ))}
      </div>
      <Shown from={compared}>{({ differ, runs: rows }) => (
        <>
          <Panel title="Results" wide>
            <Side rows={rows.map((r) => r.run)} names={names} statuses={rows.map((r) => r.status)}
              lines={kResults.map(([label, show]) => [label, rows.map((r) => (r.summary ? show(r.summary) : kNone))])}
              last={["where the time goes", rows.map((r) => (r.summary?.time ? <TimeBar times={r.summary.time} label={r.name} /> : kNone))]} />
            <TimeLegend />
          </Panel>
          <Panel title="Options that differ" wide>
            {differ.length === 0 ? <Empty title="All options are the same." />
              : <Side rows={rows.map((r) => r.run)} names={names} lines={differ.map((key) => [key, rows.map((r) => cell("option", r.options[key]))])} />}
          </Panel>
        </>
      )}</Shown>
    </Page>
  );
}

type Line = [string, (JSX.Element | string)[]];

/** Runs side by side: a column each. */
function Side({ rows, names, statuses, lines, last }: {
  rows: string[]; names: Map<string, string>; statuses?: string[]; lines: Line[]; last?: Line;
}): JSX.Element {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Runs side by side">
      <table class="table side-by-side">
        <thead><tr><th scope="col"><span class="hidden">what</span></th>{rows.map((run, i) => (
          <th scope="col" key={run} class="number"><span class="run-colour" style={{ background: `var(--${look(i).colour})` }} aria-hidden="true" />
            <Link to={link(["runs", run])}>{names.get(run) ?? run}</Link>{statuses && <> <Badge state={statuses[i] ?? ""} /></>}</th>))}</tr></thead>
        <tbody>{[...lines, ...(last ? [last] : [])].map(([label, values]) => (
          <tr key={label} class={values.every((v) => typeof v !== "string" || v === values[0]) ? undefined : "differs"}>
            <th scope="row">{label}</th>{values.map((v, i) => <td key={i} class="number">{typeof v === "string" ? <span class="clip" title={v}>{v}</span> : v}</td>)}</tr>))}</tbody>
      </table>
    </div>
  );
}
