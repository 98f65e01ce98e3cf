// Curves, by uPlot: one plot with a legend that shows the values under the cursor.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { plain } from "../lib/format";
import { ascending, smooth } from "../lib/thin";
import { token, useTheme } from "../lib/theme";

export interface Series {
  label: string;
  x: readonly number[];
  y: readonly number[];
  colour: string; // a token of the style sheet: "line-0"
  dash?: number[];
  faint?: boolean; // thin and pale: raw values behind smoothed ones
  points?: boolean;
}

/** A moment on the x axis: a vertical line. */
export interface Mark {
  x: number;
  colour: string; // a token
}

/** Where the plot's area is, in pixels from the left of the chart, and what its axis spans. */
export interface Place {
  left: number;
  width: number;
  min: number;
  max: number;
}

interface Props {
  title: string;
  series: Series[];
  x: (value: number) => string;
  y?: (value: number) => string;
  log?: boolean;
  height?: number;
  sync?: string; // charts of one name share their cursor
  marks?: readonly Mark[];
  placed?: (place: Place) => void;
}

/** Each curve twice where it is smoothed: pale as it is, and strong as its moving average. */
export function smoothed(series: Series[], weight: number, only: (s: Series) => boolean = () => true): Series[] {
  if (weight <= 0) return series;
  return series.flatMap((s) => (only(s) && s.y.length > 4 ? [{ ...s, faint: true }, { ...s, y: smooth(s.y, weight) }] : [s]));
}

/** Labels of an axis; where they would be the same, with more digits. */
function apart(values: readonly (number | null)[], show: (value: number) => string): string[] {
  const labels = values.map((v) => (v === null ? "" : show(v)));
  const said = labels.filter((l) => l !== "");
  return new Set(said).size === said.length ? labels : values.map((v) => (v === null ? "" : plain(v, 6)));
}

function joined(series: Series[]): uPlot.AlignedData {
  if (series.length === 0) return [[]];
  const tables = series.map((s) => [ascending(s.x), s.y as number[]] as unknown as uPlot.AlignedData);
  return tables.length === 1 ? tables[0]! : uPlot.join(tables);
}

export function Chart({ title, series, x, y = (v) => plain(v), log = false, height = 220, sync, marks, placed }: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const legend = useRef<HTMLUListElement>(null);
  const plot = useRef<uPlot | null>(null);
  const shown = useRef({ series, x, y, marks, placed });
  shown.current = { series, x, y, marks, placed };
  const { dark } = useTheme();
  const shape = JSON.stringify([series.map((s) => [s.label, s.colour, s.dash, s.faint, s.points]), log, dark, height, sync]);

  const tell = (u: uPlot): void => {
    const items = legend.current?.querySelectorAll<HTMLElement>("[data-series]");
    items?.forEach((item) => {
      const at = Number(item.dataset["series"]);
      const values = u.data[at + 1] as (number | null | undefined)[] | undefined;
      const index = u.cursor.idx;
      let value: number | null | undefined = null;
      if (values) {
        for (let i = index ?? values.length - 1; i >= 0 && (value === null || value === undefined); i -= 1) value = values[i];
      }
      item.textContent = value === null || value === undefined ? "–" : shown.current.y(value);
    });
    const where = legend.current?.querySelector<HTMLElement>("[data-x]");
    const index = u.cursor.idx;
    const at = index !== null && index !== undefined ? u.data[0][index] : undefined;
    if (where) where.textContent = at === undefined ? "" : `at ${shown.current.x(at)}`;
  };

  const drawMarks = (u: uPlot): void => {
    const { min, max } = u.scales["x"] ?? {};
    const { left, top, width, height: high } = u.bbox;
    const ratio = uPlot.pxRatio;
    if (typeof min === "number" && typeof max === "number") shown.current.placed?.({ left: left / ratio, width: width / ratio, min, max });
    u.ctx.save();
    u.ctx.lineWidth = ratio;
    u.ctx.setLineDash([3 * ratio, 3 * ratio]);
    for (const mark of shown.current.marks ?? []) {
      const at = u.valToPos(mark.x, "x", true);
      if (!(at >= left && at <= left + width)) continue;
      u.ctx.strokeStyle = token(mark.colour);
      u.ctx.beginPath();
      u.ctx.moveTo(at, top);
      u.ctx.lineTo(at, top + high);
      u.ctx.stroke();
    }
    u.ctx.restore();
  };

  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const grid = { stroke: token("grid"), width: 1 };
    const axis = { stroke: token("muted"), grid, ticks: { ...grid, size: 4 }, font: "11px system-ui, sans-serif" };
    const options: uPlot.Options = {
      width: Math.max(120, element.clientWidth),
      height,
      padding: [8, 16, 0, 0],
      legend: { show: false },
      cursor: { points: { size: 6 }, drag: { x: true, y: false }, ...(sync ? { sync: { key: sync, setSeries: false } } : {}) },
      scales: { x: { time: false }, y: log ? { distr: 3 } : {} },
      axes: [
        { ...axis, space: 60, size: 28, gap: 4, values: (_, splits) => splits.map((v) => shown.current.x(v)) },
        { ...axis, space: 32, gap: 4, size: (_, labels) => 12 + 6.5 * Math.max(3, ...(labels ?? []).map((l) => l?.length ?? 0)),
          values: (_, splits) => apart(splits, shown.current.y) },
      ],
      series: [{}, ...series.map((s): uPlot.Series => {
        const colour = token(s.colour) || s.colour;
        return {
          label: s.label,
          stroke: colour,
          width: s.faint ? 1 : 1.75,
          alpha: s.faint ? 0.28 : 1,
          spanGaps: true,
          ...(s.dash ? { dash: s.dash } : {}),
          points: s.points ? { show: true, size: 5, fill: colour } : { show: false },
        };
      })],
      hooks: { setCursor: [tell], setData: [tell], ready: [tell], draw: [drawMarks] },
    };
    const u = new uPlot(options, joined(shown.current.series), element);
    plot.current = u;
    const observer = new ResizeObserver(() => {
      const width = Math.max(120, element.clientWidth);
      if (width !== u.width) u.setSize({ width, height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      u.destroy();
      plot.current = null;
    };
  }, [shape]);

  useEffect(() => {
    plot.current?.setData(joined(series));
  }, [series]);

  const named = series.map((s, i) => ({ s, i })).filter(({ s }) => !s.faint);
  const empty = series.every((s) => s.y.length === 0);
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <ul class="legend" ref={legend}>
          {named.map(({ s, i }) => (
            <li key={`${s.label}${i}`}>
              <svg width="16" height="8" aria-hidden="true"><line x1="0" x2="16" y1="4" y2="4" stroke={`var(--${s.colour})`} stroke-width="2.5"
                stroke-dasharray={s.dash?.join(" ")} /></svg>
              {s.label} <b data-series={i}>–</b>
            </li>
          ))}
          <li class="legend-x" data-x />
        </ul>
      </figcaption>
      <div class="chart-box" ref={box} role="img" aria-label={`${title}: ${named.map(({ s }) =>
        `${s.label} ${s.y.length ? y(s.y[s.y.length - 1]!) : "no value"}`).join(", ") || "no curve"}`} />
      {empty && <p class="chart-empty">No values yet.</p>}
    </figure>
  );
}
