// Who took part when, where the run's samples are, and how much of what was possible came of it.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { lanes, type Ledger, type MemberEvent } from "../../lib/accounts";
import { count, duration, percent, perSecond, plain, plural } from "../../lib/format";
import type { RunModel } from "../../lib/run_model";
import type { Axis } from "../../lib/thin";
import { Chart, smoothed, type Mark, type Place, type Series } from "../../parts/chart";
import { Lanes } from "../../parts/lanes";
import { Choice, Empty, Figure, Panel } from "../../parts/misc";
import { kAxes, showX } from "../compare";

const kSmooth = 0.9;
const kListed = 100; // events
const kManyLanes = 60; // of more, only those that differ are drawn
const kFurthest = 10;
const kColours: Record<string, string> = { lost: "bad", absent: "bad", silent: "wait", heard: "good", joined: "good", started: "muted", began: "muted" };
const kSays: Record<string, string> = {
  began: "is there", absent: "not connected yet", joined: "joined", lost: "lost", silent: "silent", heard: "heard again", started: "a session began",
};

const kParts = [
  { key: "done", title: "done", note: "computed" },
  { key: "given_up", title: "given up", note: "in steps that were passed over" },
  { key: "leased", title: "leased", note: "workers have them now" },
  { key: "free", title: "free", note: "to be leased" },
  { key: "omitted", title: "omitted", note: "not in this epoch: a dropped tail, slices of lost workers" },
] as const;

const kRun = [
  { key: "useful", title: "useful", note: "done, and in the model" },
  { key: "computed", title: "computed", note: "by any worker, counted each time" },
  { key: "lost", title: "lost", note: "leased to workers that were lost" },
  { key: "returned", title: "returned", note: "of these, leased again" },
  { key: "passed", title: "given up", note: "in steps that were passed over" },
  { key: "rolled_back", title: "rolled back", note: "done, and undone by a resume from an older checkpoint" },
] as const;

function LedgerPanel({ ledger }: { ledger: Ledger }): JSX.Element {
  const size = ledger.size || 1;
  const text = kParts.map((p) => `${p.title} ${percent(ledger[p.key] / size, 1)}`).join(", ");
  return (
    <Panel title={`Samples of epoch ${count(ledger.epoch + 1)}`}>
      <span class="ledger-bar" role="img" aria-label={text} title={text}>
        {kParts.map((p) => <span key={p.key} class={`ledger-${p.key}`} style={{ width: `${(ledger[p.key] / size) * 100}%` }} />)}</span>
      <table class="facts"><tbody>{kParts.map((p) => (
        <tr key={p.key}><th scope="row"><span class={`swatch ledger-${p.key}`} aria-hidden="true" /> {p.title}</th>
          <td class="number">{count(ledger[p.key])}</td><td class="number">{percent(ledger[p.key] / size, 1)}</td><td class="muted">{p.note}</td></tr>))}</tbody></table>
      <h3 class="below">The whole run</h3>
      <table class="facts"><tbody>{kRun.map((p) => (
        <tr key={p.key}><th scope="row">{p.title}</th><td class="number">{count(ledger[p.key])}</td><td class="muted">{p.note}</td></tr>))}</tbody></table>
    </Panel>
  );
}

export function MembersTab({ model, version }: { model: RunModel; version: number }): JSX.Element {
  const [axis, setAxis] = useState<Axis>("seconds");
  const [place, setPlace] = useState<Place | null>(null);
  const placed = (now: Place): void => setPlace((old) => (old && old.left === now.left && old.width === now.width && old.min === now.min && old.max === now.max ? old : now));
  const at = (e: MemberEvent): number => {
    if (e.epoch === null) return NaN;
    return axis === "epoch" ? e.epoch : axis === "samples" ? e.epoch * model.epochSamples : e.train_s ?? model.secondsAt(e.epoch);
  };
  const { series, distance, rows, apart, marks, missing } = useMemo(() => {
    const of = (name: string, label: string, colour: string): Series[] => {
      const curve = model.curves.get(name);
      return curve ? [{ label, x: [...curve[axis]], y: [...curve.value], colour }] : [];
    };
    const drawn = [...smoothed(of("step.loss", "step", "line-0"), kSmooth), ...of("test.loss", "test", "line-1")];
    const end = Math.max(0, ...drawn.map((s) => s.x[s.x.length - 1] ?? 0), ...model.members.map(at).filter(Number.isFinite));
    const workers = Math.max(0, ...model.workers.map((w) => w.worker + 1), ...model.members.map((e) => (e.worker ?? -1) + 1));
    const begun = Math.min(end, ...model.members.filter((e) => e.event === "started").map(at).filter(Number.isFinite));
    const found = lanes(model.members, workers, end, at);
    return {
      series: drawn, distance: smoothed(of("step.distance", "distance", "line-2"), kSmooth), rows: found,
      // Its stretches touch, none is silent, and they reach from the begin to the end.
      apart: found.flatMap((segments, w) => (segments[0]?.from === begun && segments[segments.length - 1]?.to === end &&
        segments.every((s, i) => !s.silent && (i === 0 || segments[i - 1]!.to === s.from)) ? [] : [w])),
      missing: found.filter((segments) => !segments.some((s) => s.to >= end)).length,
      marks: model.members.filter((e) => e.event !== "began" && !(e.event === "started" && e.epoch === 0)).map((e): Mark => ({ x: at(e), colour: kColours[e.event] ?? "muted" })),
    };
  }, [version, axis, model]);
  if (model.workers.length === 0) return <Empty title={model.partial ? "Loading…" : "No worker has reported yet."} />;
  const ledger = model.ledger;
  const few = rows.length > kManyLanes && apart.length < rows.length;
  const drawn = few ? apart : rows.map((_, w) => w);
  const events = [...model.members].reverse().slice(0, kListed);
  const far = [...model.workers].filter((w) => typeof w.distance === "number").sort((a, b) => b.distance! - a.distance!);
  return (
    <>
      {ledger && (
        <dl class="figures">
          <Figure label="Goodput" value={percent(ledger.goodput, 1)} note="useful of what was possible" />
          <Figure label="Useful samples" value={count(ledger.useful)} note={`of ${count(Math.round(ledger.possible))} possible`} />
          <Figure label="Useful per second" value={perSecond(ledger.wall_s > 0 ? ledger.useful / ledger.wall_s : null)} note={`over ${duration(ledger.wall_s)}`} />
          <Figure label="Computed in vain" value={count(Math.max(0, ledger.computed - ledger.useful))} note="lost, rolled back, or wrapped around" />
        </dl>)}
      <div class="toolbar"><span class="field"><span class="field-name">over</span><Choice label="Horizontal axis" options={kAxes} now={axis} choose={setAxis} /></span>
        <ul class="legend"><li><span class="swatch lane-here" aria-hidden="true" />takes part</li><li><span class="swatch lane-silent" aria-hidden="true" />silent</li>
          <li><span class="swatch lane-none" aria-hidden="true" />no member</li></ul></div>
      <Panel wide>
        <Chart title="Loss, and who took part" series={series} x={showX[axis]} log={series.every((s) => s.y.every((v) => v > 0)) && series.length > 0} marks={marks} placed={placed} />
        <Lanes label={`${plural(rows.length, "worker")}, ${count(missing)} of them not there at the end; ${plural(marks.length, "event")}`} lanes={drawn.map((w) => rows[w]!)} names={drawn.map(String)} marks={marks} place={place} version={version} />
        {few && <p class="muted">{apart.length === 0 ? `All ${plural(rows.length, "worker")} took part from the begin to the end.`
          : `Lanes of ${plural(apart.length, "worker")}; the other ${count(rows.length - apart.length)} took part from the begin to the end.`}</p>}
      </Panel>
      <div class="columns">
        {ledger ? <LedgerPanel ledger={ledger} /> : <Panel title="Samples"><Empty title="This run has no ledger.">Older programs wrote none.</Empty></Panel>}
        <Panel title="Distance from the centre">
          {distance.length === 0 ? <Empty title="No distance was measured.">Workers measure it when they meet the centre: a server's parameters with elastic averaging and pulls, those that the round began with in local SGD. In bsp all workers have the same; gossip and pairs have no centre.</Empty> : <>
            <Chart title="‖x − c‖ of any worker" series={distance} x={showX[axis]} />
            <table class="facts"><thead><tr><th scope="col">furthest</th><th scope="col" class="number">distance</th></tr></thead>
              <tbody>{far.slice(0, kFurthest).map((w) => <tr key={w.worker}><td>worker {w.worker}</td><td class="number">{plain(w.distance)}</td></tr>)}</tbody></table></>}
        </Panel>
        <Panel title="Events">
          {events.length === 0 ? <Empty title="No worker has come or gone." /> : (
            <ol class="log" tabIndex={0} aria-label="events">{events.map((e, i) => (
              <li key={i} class={e.event === "lost" ? "log-error" : e.event === "silent" || e.event === "absent" ? "log-warning" : "log-info"}>
                <span class="log-time">{duration(e.wall_s ?? e.t)}</span>
                <span>{e.worker !== null && `worker ${e.worker} `}<b>{kSays[e.event] ?? e.event}</b>{e.node ? ` (${e.node})` : ""}
                  <span class="muted"> · epoch {plain(e.epoch, 4)}{e.steps ? `, its step ${count(e.steps)}` : ""}{e.reason ? `: ${e.reason}` : ""}</span></span></li>))}</ol>)}
        </Panel>
      </div>
    </>
  );
}
