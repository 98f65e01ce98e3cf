// A lane for each worker: when it was a member of the run, under a chart with the same axis. On a canvas: 500 lanes are one picture.
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Segment } from "../lib/accounts";
import { token, useTheme } from "../lib/theme";
import type { Mark, Place } from "./chart";
import { useWidth } from "./width";

interface Props {
  label: string;
  lanes: Segment[][];
  names: string[]; // of the lanes
  marks: readonly Mark[];
  place: Place | null; // of the chart above
  version: unknown;
}

const kTallest = 20;
const kHighest = 420;
const kLegible = 11; // px: lanes as tall as that have their number

export function Lanes({ label, lanes, names, marks, place, version }: Props): JSX.Element {
  const { box, width } = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const { dark } = useTheme();
  const high = Math.max(1, Math.min(kTallest, Math.floor(kHighest / Math.max(1, lanes.length))));
  useEffect(() => {
    const element = canvas.current;
    if (!element || width === 0 || !place) return;
    const ratio = window.devicePixelRatio || 1;
    const height = Math.max(1, high * lanes.length);
    element.width = width * ratio;
    element.height = height * ratio;
    element.style.height = `${height}px`;
    const c = element.getContext("2d");
    if (!c) return;
    c.scale(ratio, ratio);
    const span = place.max - place.min || 1;
    const at = (x: number): number => place.left + Math.min(1, Math.max(0, (x - place.min) / span)) * place.width;
    const gap = high >= 6 ? 2 : 0;
    c.fillStyle = token("cell");
    c.fillRect(place.left, 0, place.width, height);
    const colours = [token("compute"), token("wait")];
    const [text, surface] = [token("muted"), token("surface")];
    lanes.forEach((segments, w) => {
      for (const s of segments) {
        c.fillStyle = colours[s.silent ? 1 : 0]!;
        const left = at(s.from);
        const inset = s.silent && high >= 6 ? Math.floor(high / 3) : 0; // thinner, too: colour is not all
        c.fillRect(left, w * high + inset, Math.max(1, at(s.to) - left), high - gap - 2 * inset);
      }
    });
    c.fillStyle = surface;
    if (gap) for (let w = 1; w <= lanes.length; w += 1) c.fillRect(place.left, w * high - gap, place.width, gap);
    c.fillStyle = text;
    c.font = "11px system-ui, sans-serif";
    c.textBaseline = "middle";
    c.textAlign = "right";
    const every = Math.max(1, Math.ceil(kLegible / high));
    for (let w = 0; w < lanes.length; w += every) c.fillText(names[w] ?? "", place.left - 6, (w + 0.5) * high - gap / 2);
    c.setLineDash([3, 3]);
    for (const mark of marks) {
      if (mark.x < place.min || mark.x > place.max) continue;
      c.strokeStyle = token(mark.colour);
      c.beginPath();
      c.moveTo(at(mark.x), 0);
      c.lineTo(at(mark.x), height);
      c.stroke();
    }
  }, [width, place, version, lanes, names, marks, dark, high]);
  return <div class="lanes" ref={box}><canvas ref={canvas} role="img" aria-label={label} /></div>;
}
