// A matrix of numbers as colours, on a canvas: 500 × 500 cells are one picture. Arrow keys move over the cells.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { token, useTheme } from "../lib/theme";
import { useWidth } from "./width";

interface Props {
  label: string;
  rows: string[];
  columns: string[];
  value: (row: number, column: number) => number;
  say: (row: number, column: number) => string; // one line about a cell
  colour: string; // token of the strongest cell
  show: (value: number) => string;
  version: unknown; // changes with the values
  caption: { rows: string; columns: string };
  byRow?: boolean; // each row has its own scale: histograms
}

const kLabelRoom = 76;
const kHeadRoom = 64;
const kLargest = 64;
const kLegible = 52; // cells as wide as that say their number

type Colour = [number, number, number];
function rgb(text: string): Colour {
  const hex = /^#([0-9a-f]{6})$/i.exec(text)?.[1] ?? "888888";
  return [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)) as Colour;
}

export function Heatmap({ label, rows, columns, value, say, colour, show, version, caption, byRow = false }: Props): JSX.Element {
  const { box, width } = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [at, setAt] = useState<{ row: number; column: number } | null>(null);
  const { dark } = useTheme();
  const roomy = width - kLabelRoom - 4;
  const cell = Math.max(1, Math.min(kLargest, Math.floor(roomy / Math.max(1, columns.length))));
  const high = Math.min(Math.max(cell, 6), 26, Math.max(1, Math.floor(640 / Math.max(1, rows.length))));
  const cellWidth = cell > 1 ? cell : Math.max(0.2, roomy / Math.max(1, columns.length));
  let most = 0;
  for (let r = 0; r < rows.length; r += 1) for (let c = 0; c < columns.length; c += 1) most = Math.max(most, value(r, c) || 0);

  useEffect(() => {
    const element = canvas.current;
    if (!element || width === 0 || rows.length === 0 || columns.length === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const full = { width: Math.min(Math.max(width, kLabelRoom + Math.ceil(cellWidth * columns.length)), kLabelRoom + Math.ceil(cellWidth * columns.length) + 52), height: kHeadRoom + high * rows.length };
    element.width = full.width * ratio;
    element.height = full.height * ratio;
    element.style.width = `${full.width}px`;
    element.style.height = `${full.height}px`;
    const c = element.getContext("2d");
    if (!c) return;
    c.scale(ratio, ratio);
    const small = document.createElement("canvas");
    // Where cells are finer than pixels, a pixel shows the greatest of its cells: no wait is lost.
    const wide = Math.min(columns.length, Math.max(1, Math.floor(cellWidth * columns.length)));
    const tall = Math.min(rows.length, Math.max(1, Math.floor(high * rows.length)));
    small.width = wide;
    small.height = tall;
    const inner = small.getContext("2d");
    if (!inner) return;
    const picture = inner.createImageData(wide, tall);
    const parts = new Float32Array(wide * tall); // of the way from no colour to the full one
    const none = rgb(token("cell"));
    const strongest = rgb(token(colour));
    for (let r = 0; r < rows.length; r += 1) {
      let scale = most;
      if (byRow) {
        scale = 0;
        for (let k = 0; k < columns.length; k += 1) scale = Math.max(scale, value(r, k) || 0);
      }
      const line = Math.floor((r * tall) / rows.length);
      for (let k = 0; k < columns.length; k += 1) {
        const v = value(r, k) || 0;
        const part = scale > 0 && v > 0 ? 0.08 + 0.92 * Math.sqrt(v / scale) : 0;
        const place = line * wide + Math.floor((k * wide) / columns.length);
        parts[place] = Math.max(parts[place]!, part);
      }
    }
    for (let p = 0; p < parts.length; p += 1) {
      for (let i = 0; i < 3; i += 1) picture.data[4 * p + i] = Math.round(none[i]! + (strongest[i]! - none[i]!) * parts[p]!);
      picture.data[4 * p + 3] = 255;
    }
    inner.putImageData(picture, 0, 0);
    c.imageSmoothingEnabled = false;
    c.drawImage(small, kLabelRoom, kHeadRoom, cellWidth * columns.length, high * rows.length);
    c.fillStyle = token("surface");
    if (cellWidth >= 8) for (let k = 0; k <= columns.length; k += 1) c.fillRect(kLabelRoom + k * cellWidth - 0.5, kHeadRoom, 1, high * rows.length);
    if (high >= 8) for (let r = 0; r <= rows.length; r += 1) c.fillRect(kLabelRoom, kHeadRoom + r * high - 0.5, cellWidth * columns.length, 1);
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.textAlign = "center";
    if (cellWidth >= kLegible && high >= 18)
      for (let r = 0; r < rows.length; r += 1)
        for (let k = 0; k < columns.length; k += 1) {
          const v = value(r, k) || 0;
          if (v === 0) continue;
          const place = 4 * (r * columns.length + k);
          const light = 0.299 * picture.data[place]! + 0.587 * picture.data[place + 1]! + 0.114 * picture.data[place + 2]!;
          c.fillStyle = light > 140 ? "#14181d" : "#ffffff";
          c.fillText(show(v), kLabelRoom + (k + 0.5) * cellWidth, kHeadRoom + (r + 0.5) * high);
        }
    c.fillStyle = token("muted");
    c.textAlign = "right";
    const everyRow = Math.max(1, Math.ceil(13 / high));
    for (let r = 0; r < rows.length; r += everyRow) c.fillText(rows[r]!, kLabelRoom - 6, kHeadRoom + (r + 0.5) * high);
    const everyColumn = Math.max(1, Math.ceil((cellWidth >= 13 ? 13 : 26) / cellWidth));
    c.textAlign = "left";
    for (let k = 0; k < columns.length; k += everyColumn) {
      if (kLabelRoom + k * cellWidth > width - 44 && k > 0 && cellWidth < 13) break; // it would be cut off
      c.save();
      c.translate(kLabelRoom + (k + 0.5) * cellWidth, kHeadRoom - 6);
      c.rotate(-Math.PI / 4);
      c.fillText(columns[k]!, 0, 0);
      c.restore();
    }
    if (at && at.row < rows.length && at.column < columns.length) {
      c.strokeStyle = token("text");
      c.lineWidth = 2;
      c.strokeRect(kLabelRoom + at.column * cellWidth, kHeadRoom + at.row * high, Math.max(3, cellWidth), Math.max(3, high));
    }
  }, [width, version, rows.length, columns.length, at, dark, colour]);

  const find = (event: MouseEvent): void => {
    const place = canvas.current?.getBoundingClientRect();
    if (!place) return;
    const column = Math.floor((event.clientX - place.left - kLabelRoom) / cellWidth);
    const row = Math.floor((event.clientY - place.top - kHeadRoom) / high);
    setAt(row >= 0 && column >= 0 && row < rows.length && column < columns.length ? { row, column } : null);
  };
  const key = (event: KeyboardEvent): void => {
    const move: Record<string, [number, number]> = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const by = move[event.key];
    if (!by) return;
    event.preventDefault();
    const now = at ?? { row: -by[0] || 0, column: -by[1] || 0 };
    setAt({
      row: Math.min(rows.length - 1, Math.max(0, now.row + by[0])),
      column: Math.min(columns.length - 1, Math.max(0, now.column + by[1])),
    });
  };
  return (
    <div class="heatmap" ref={box}>
      <div class="heatmap-head">
        <span>{caption.rows} ↓ · {caption.columns} →</span>
        <span class="scale" aria-hidden="true">0<span class="scale-bar" style={{ background: `linear-gradient(to right, var(--cell), var(--${colour}))` }} />
          {byRow ? "most of the row" : show(most)}</span>
      </div>
      <div class="heatmap-box">
        <canvas ref={canvas} tabIndex={0} role="img" aria-label={`${label}. Arrow keys move over the cells.`}
          onMouseMove={find} onMouseLeave={() => setAt(null)} onKeyDown={key} />
      </div>
      <p class="readout" aria-live="polite">{at && at.row < rows.length && at.column < columns.length ? say(at.row, at.column) : "Point at a cell, or move with the arrow keys."}</p>
    </div>
  );
}
