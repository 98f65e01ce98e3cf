// Workers and servers of a run, as a picture: lines are exchanges, colours say how much of its time a worker waits.
import type { JSX } from "preact";
import { bytes, duration, percent, perSecond, plural } from "../lib/format";
import type { Worker } from "../lib/run_model";
import { total } from "./times";
import { useWidth } from "./width";

const kMostLinks = 48; // workers; more are drawn as squares without lines

const waiting = (w: Worker): number => (total(w) > 0 ? w.wait_s / total(w) : 0);
/** The share of time that a worker waits, in five steps of one colour: a pale one is not to be mistaken for none. */
const step = (w: Worker): number => Math.min(4, Math.floor(waiting(w) * 10));
const about = (w: Worker): string =>
  `worker ${w.worker}: waits ${percent(waiting(w), 1)} of its time (${duration(w.wait_s)}), ${perSecond(w.samples_per_s)} samples, ${bytes(w.bytes)} in ${plural(w.exchanges, "exchange")}`;

function Squares({ workers, width }: { workers: Worker[]; width: number }): JSX.Element {
  const across = Math.ceil(Math.sqrt(workers.length * (width > 500 ? 4 : 2)));
  const side = width / across;
  const height = Math.ceil(workers.length / across) * side;
  return (
    <svg class="topology" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${plural(workers.length, "worker")}, darker ones wait more`}>
      {workers.map((w, i) => (
        <rect key={w.worker} class={`member wait-${step(w)}`} x={(i % across) * side + 1} y={Math.floor(i / across) * side + 1}
          width={side - 2} height={side - 2} rx="2"><title>{about(w)}</title></rect>
      ))}
    </svg>
  );
}

interface Props {
  workers: Worker[];
  servers: number;
  waits: number[][];
  columns: string[];
}

/** Drawn in the pixels that there are, so that letters keep their size on a phone. */
export function Topology(props: Props): JSX.Element {
  const { box, width } = useWidth();
  return <div ref={box}>{width > 0 && <Picture {...props} width={width} />}</div>;
}

function Picture({ workers, servers, waits, columns, width }: Props & { width: number }): JSX.Element {
  const legend = (
    <p class="topology-legend muted">
      <span>share of time that a worker waits:</span>
      {[0, 1, 2, 3, 4].map((s) => <span key={s}><span class={`swatch wait-${s}`} aria-hidden="true" />{s === 4 ? "40 % or more" : `${s * 10}–${s * 10 + 10} %`}</span>)}
    </p>
  );
  if (workers.length > kMostLinks) return <><Squares workers={workers} width={width} />{legend}</>;
  const most = Math.max(1, ...workers.map((w) => w.bytes));
  const radius = Math.max(4, Math.min(18, width / workers.length / 2 - 2));
  const wide = (w: Worker): number => 1 + 4 * (w.bytes / most);
  if (servers === 0) { // every worker with every other: a ring stands for the reduction
    const height = 300;
    const place = (i: number): [number, number] => {
      const angle = (2 * Math.PI * i) / Math.max(1, workers.length) - Math.PI / 2;
      return [width / 2 + Math.min(240, width / 2 - 24) * Math.cos(angle), height / 2 + 112 * Math.sin(angle)];
    };
    return (
      <>
        <svg class="topology" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${plural(workers.length, "worker")} that exchange with each other, without a server`}>
          {workers.length > 1 && workers.map((w, i) => {
            const [x1, y1] = place(i);
            const [x2, y2] = place((i + 1) % workers.length);
            return <line key={w.worker} class="link" x1={x1} y1={y1} x2={x2} y2={y2} stroke-width={wide(w)} />;
          })}
          {workers.map((w, i) => {
            const [x, y] = place(i);
            return (
              <g key={w.worker}><circle class={`member wait-${step(w)}`} cx={x} cy={y} r={radius}><title>{about(w)}</title></circle>
                <text class={`member-name on-${step(w)}`} x={x} y={y}>{w.worker}</text></g>
            );
          })}
          <text class="topology-note" x={width / 2} y={height / 2}>no server</text>
        </svg>
        {legend}
      </>
    );
  }
  const height = 220;
  const across = (i: number, n: number): number => ((i + 0.5) * width) / n;
  const waited = (row: number, server: number): number => waits[row]?.[columns.length - servers + server] ?? 0;
  return (
    <>
      <svg class="topology" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={`${plural(workers.length, "worker")} and ${plural(servers, "server")}`}>
        {workers.map((w, i) => Array.from({ length: servers }, (_, s) => (
          <line key={`${w.worker}-${s}`} class="link" x1={across(i, workers.length)} y1={height - 44} x2={across(s, servers)} y2={44}
            stroke-width={wide(w) / Math.sqrt(servers)}>
            <title>{`worker ${w.worker} – server ${s}: worker ${w.worker} waited ${duration(waited(i, s))} for it`}</title>
          </line>
        )))}
        {Array.from({ length: servers }, (_, s) => (
          <g key={s}><rect class="member server" x={across(s, servers) - radius} y={44 - radius} width={2 * radius} height={2 * radius} rx="4">
            <title>{`server ${s}: the workers waited ${duration(workers.reduce((sum, _w, row) => sum + waited(row, s), 0))} for it`}</title></rect>
            <text class="member-name on-4" x={across(s, servers)} y={44}>{s}</text></g>
        ))}
        {workers.map((w, i) => (
          <g key={w.worker}><circle class={`member wait-${step(w)}`} cx={across(i, workers.length)} cy={height - 44} r={radius}><title>{about(w)}</title></circle>
            <text class={`member-name on-${step(w)}`} x={across(i, workers.length)} y={height - 44}>{w.worker}</text></g>
        ))}
        <text class="topology-side" x="4" y="14">{servers === 1 ? "server" : "servers"}</text>
        <text class="topology-side" x="4" y={height - 8}>workers; lines are as wide as the bytes are many</text>
      </svg>
      {legend}
    </>
  );
}
