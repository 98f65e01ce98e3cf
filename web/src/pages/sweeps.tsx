import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { at } from "../api/client";
import { useEvery, useLoaded, useServerEvents, useThrottled } from "../api/hooks";
import type { Sweep, SweepParameter, SweepRow, SweepTrial } from "../api/types";
import { cell, count, duration, percent, plain } from "../lib/format";
import { link } from "../lib/route";
import { epochsTrained, polylines, progress, ranked, scoreOf } from "../lib/sweep";
import { Chart, type Series } from "../parts/chart";
import { Badge, Empty, ErrorLine, Figure, Link, Page, Panel, Shown } from "../parts/misc";
import { Table, type Column } from "../parts/table";
import { useWidth } from "../parts/width";

export function SweepsPage(): JSX.Element {
  const answer = useLoaded<{ sweeps: SweepRow[]; problems: string[] }>("/sweeps");
  const again = useThrottled(answer.reload, 2000);
  useServerEvents(["run"], again);
  useEvery(10_000, again);
  const columns: Column<SweepRow>[] = [
    { key: "name", title: "sweep", wide: true, show: (s) => <Link to={link(["sweeps", s.name])} class="run-link">{s.name}</Link> },
    { key: "state", title: "state", show: (s) => <Badge state={s.state} /> },
    { key: "method", title: "method", show: (s) => (s.schedule === "none" ? s.method : `${s.method}, ${s.schedule}`) },
    { key: "trials", title: "runs", numeric: true, show: (s) => progress(s.trials, s.most_runs) },
    { key: "best", title: "best", numeric: true, show: (s) => <span title={s.metric}>{cell(s.metric, s.best)}</span> },
    { key: "epochs", title: "epochs trained", numeric: true, show: epochsTrained },
    { key: "elapsed", title: "time", numeric: true, show: (s) => duration(s.elapsed_s) },
  ];
  return (
    <Page title="Sweeps">
      <Shown from={answer}>{({ sweeps, problems }) => (
        <>
          {problems.map((p) => <ErrorLine key={p} error={p} />)}
          {sweeps.length === 0
            ? <Empty title="There are no sweeps yet.">A grid file with <code>[sweep]</code> searches settings: <code>troupe grid configs/grids/easgd-sweep.toml</code>. Or <Link to="#/new">submit a job</Link> of the kind grid.</Empty>
            : <Table label="Sweeps" columns={columns} rows={sweeps} id={(s) => s.name} />}
        </>
      )}</Shown>
    </Page>
  );
}

const kHeight = 260, kTop = 34, kBottom = 26, kMissing = 14; // px; a line passes below an axis whose parameter its trial does not have

function ends(p: SweepParameter): [string, string] {
  return p.kind === "choice" ? ["", ""] : [plain(p.low), plain(p.high)];
}

function Parallel({ sweep, chosen }: { sweep: Sweep; chosen: number | null }): JSX.Element {
  const { box, width } = useWidth();
  const lines = useMemo(() => polylines(sweep), [sweep]);
  const best = lines[lines.length - 1]?.trial.trial;
  const axes = sweep.parameters.length + 1;
  const drawn = Math.max(width, 96 * axes); // narrower, and the names of axes would cover each other
  const x = (i: number): number => 48 + (i * (drawn - 110)) / Math.max(1, axes - 1);
  const y = (part: number | null): number => (part === null ? kHeight - kBottom + kMissing : kTop + (1 - part) * (kHeight - kTop - kBottom));
  const scores = lines.map((l) => scoreOf(l.trial)!);
  return (
    <div class="parallel" ref={box} tabIndex={0} role="region" aria-label="Parallel coordinates">
      <svg width={drawn} height={kHeight} role="img" aria-label={`${lines.length} trials from their settings to ${sweep.metric}; the table below has the numbers`}>
        {lines.map((l) => {
          const kind = l.trial.trial === chosen ? "chosen" : l.trial.trial === best ? "best" : l.whole ? "whole" : "stopped";
          return <polyline key={l.trial.trial} class={`parallel-line ${kind}`} points={l.at.map((part, i) => `${x(i)},${y(part)}`).join(" ")} />;
        })}
        {sweep.parameters.map((p, i) => (
          <g key={`${p.key} ${i}`} class="parallel-axis">
            <line x1={x(i)} x2={x(i)} y1={y(1)} y2={y(0)} />
            <text x={x(i)} y={14} text-anchor="middle" class="parallel-name">{p.key.split(".").pop()}</text>
            {p.kind === "choice"
              ? (p.choices ?? []).map((c, k) => <text key={k} x={x(i) + 5} y={y((k + 0.5) / p.choices!.length) + 4}>{String(c)}</text>)
              : ends(p).map((text, k) => <text key={k} x={x(i) + 5} y={y(k) + (k === 0 ? -2 : 10)}>{text}</text>)}
          </g>
        ))}
        <g class="parallel-axis">
          <line x1={x(axes - 1)} x2={x(axes - 1)} y1={y(1)} y2={y(0)} />
          <text x={x(axes - 1)} y={14} text-anchor="middle" class="parallel-name">{sweep.metric.split(".").pop()}</text>
          {scores.length > 0 && [Math.min(...scores), Math.max(...scores)].map((s, k) => (
            <text key={k} x={x(axes - 1) + 5} y={y(k) + (k === 0 ? -2 : 10)}>{cell(sweep.metric, s)}</text>))}
        </g>
      </svg>
    </div>
  );
}

function curves(sweep: Sweep): Series[] {
  const best = sweep.history.filter((h) => h.best !== null);
  const of = (rung: number): Series => {
    const points = sweep.history.filter((h) => h.rung === rung && h.score !== null);
    return { label: sweep.rungs[rung] === 1 ? "after 1 epoch" : `after ${sweep.rungs[rung]} epochs`, x: points.map((h) => h.epochs), y: points.map((h) => h.score!), colour: `line-${(rung + 1) % 8}`, points: true, faint: true };
  };
  return [{ label: "best so far", x: best.map((h) => h.epochs), y: best.map((h) => h.best!), colour: "line-0" }, ...sweep.rungs.map((_, rung) => of(rung))];
}

function Importance({ sweep }: { sweep: Sweep }): JSX.Element {
  if (!sweep.importance) return <Empty title="It takes eight results to tell." />;
  const rows = sweep.parameters.map((p, i) => ({ key: p.key, part: sweep.importance![i] ?? 0 })).sort((a, b) => b.part - a.part);
  return (
    <ul class="importance">
      {rows.map((r, i) => (
        <li key={`${r.key} ${i}`}><span>{r.key}</span>
          <span class="gauge-bar" role="meter" aria-label={r.key} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(100 * r.part)}><span style={{ width: `${100 * r.part}%` }} /></span>
          <span class="gauge-note">{percent(r.part, 0)}</span></li>
      ))}
    </ul>
  );
}

function Trials({ sweep, choose }: { sweep: Sweep; choose: (trial: number | null) => void }): JSX.Element {
  const keys = [...new Set(sweep.parameters.map((p) => p.key))];
  const columns: Column<SweepTrial>[] = [
    { key: "trial", title: "trial", show: (t) => (
      <span class="nowrap" onMouseEnter={() => choose(t.trial)} onMouseLeave={() => choose(null)}>
        {t.run ? <Link to={link(["runs", t.run])} class="run-link" onFocus={() => choose(t.trial)} onBlur={() => choose(null)}>{String(t.trial).padStart(3, "0")}</Link> : String(t.trial).padStart(3, "0")}
      </span>) },
    ...keys.map((key): Column<SweepTrial> => ({ key, title: key.split(".").pop() ?? key, help: key, numeric: true, show: (t) => cell(key, t.settings[key]) })),
    { key: "epochs", title: "epochs", numeric: true, show: (t) => (t.diverged_after != null ? t.diverged_after.toFixed(2) : t.scores.length ? count(sweep.rungs[t.scores.length - 1]) : "–") },
    { key: "score", title: sweep.metric, numeric: true, show: (t) => cell(sweep.metric, scoreOf(t)) },
    { key: "status", title: "state", show: (t) => <Badge state={t.training_to !== null && sweep.state === "running" ? "running" : t.status === "done" && t.scores.length < sweep.rungs.length ? "stopped early" : t.status} /> },
  ];
  return <Table label="Trials, best first" columns={columns} rows={ranked(sweep)} id={(t) => t.trial} />;
}

export function SweepPage({ name }: { name: string }): JSX.Element {
  const answer = useLoaded<Sweep>(at("sweeps", name));
  const [chosen, choose] = useState<number | null>(null);
  const again = useThrottled(answer.reload, 1000);
  useServerEvents(["run"], again);
  useEvery(10_000, () => answer.data?.state === "running" && again());
  const series = useMemo(() => (answer.data ? curves(answer.data) : []), [answer.data]);
  return (
    <Page title={name} above={<p class="crumb"><Link to="#/sweeps">Sweeps</Link> / <span>{name}</span></p>}>
      <Shown from={answer}>{(sweep) => {
        const best = ranked(sweep)[0];
        const whole = sweep.trials.length * (sweep.rungs[sweep.rungs.length - 1] ?? 0);
        return (
          <>
            <dl class="figures">
              <Figure label="State" value={<Badge state={sweep.state} />} /><Figure label="Runs" value={progress(sweep.trials.length, sweep.most_runs)} />
              <Figure label={`Best ${sweep.metric}`} value={best ? cell(sweep.metric, scoreOf(best)) : "–"} />
              <Figure label="Epochs trained" value={epochsTrained(sweep)} note={whole > 0 ? `${percent(sweep.epochs_trained / whole, 0)} of all runs to their ends` : null} />
              <Figure label="Time" value={duration(sweep.elapsed_s)} />
            </dl>
            <Panel title="From settings to score" aside={<span class="muted">coloured: trained to the end · bold: the best</span>}>
              {sweep.ranking.length === 0 ? <Empty title="No trial has a score yet." /> : <Parallel sweep={sweep} chosen={chosen} />}
            </Panel>
            <div class="columns uneven">
              <Panel title="Scores over epochs trained" aside={<span class="muted">pale: each score, by its rung</span>}><Chart title={sweep.metric} series={series} x={(v) => count(v)} y={(v) => cell(sweep.metric, v)} /></Panel>
              <Panel title="What decides"><Importance sweep={sweep} /></Panel>
            </div>
            <Panel title="Trials"><Trials sweep={sweep} choose={choose} /></Panel>
            <p class="muted">Runs of this sweep in the table of runs: <Link to={link("runs", { filter: `grid=${name}` })}>grid={name}</Link></p>
          </>
        );
      }}</Shown>
    </Page>
  );
}
