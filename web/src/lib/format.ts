// Numbers as people read them. Every function takes null and undefined, too, and answers with a dash.
type Maybe = number | null | undefined;

export const kNone = "–";
const kSpace = "\u202f"; // narrow, and no line break between a number and its unit

const known = (n: Maybe): n is number => typeof n === "number" && Number.isFinite(n);
const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

/** 431080 → "431,080". */
export const count = (n: Maybe): string => (known(n) ? grouped.format(n) : kNone);

/** At most `digits` significant digits, without an exponent where a person would write none: 0.0048, 12.3, 1.2e-7. */
export function plain(n: Maybe, digits = 3): string {
  if (!known(n)) return kNone;
  if (n === 0) return "0";
  const size = Math.abs(n);
  if (size < 1e-4 || size >= 1e15) return n.toExponential(Math.max(0, digits - 1)).replace("e+", "e");
  if (size >= 10 ** digits) return grouped.format(n);
  return String(Number(n.toPrecision(digits)));
}

/** 19372.4 → "19.4 k": thousands by a prefix. */
export function short(n: Maybe, unit = ""): string {
  if (!known(n)) return kNone;
  const prefixes = ["", "k", "M", "G", "T", "P"];
  let value = Math.abs(n);
  let power = 0;
  while (value >= 999.5 && power < prefixes.length - 1) {
    value /= 1000;
    power += 1;
  }
  const digits = value >= 99.95 || (power === 0 && Number.isInteger(value)) ? 0 : value >= 9.995 ? 1 : 2;
  const suffix = `${prefixes[power]}${unit}`;
  return `${n < 0 ? "-" : ""}${value.toFixed(digits)}${suffix ? kSpace + suffix : ""}`;
}

/** Bytes, in powers of 1000: 2570061312 → "2.57 GB". */
export const bytes = (n: Maybe): string => short(n, "B");

/** A rate: "19.4 k/s". */
export const perSecond = (n: Maybe): string => (known(n) ? `${short(n)}/s` : kNone);

/** 0.9986 → "99.86 %". */
export const percent = (n: Maybe, digits = 2): string => (known(n) ? `${(n * 100).toFixed(digits)}${kSpace}%` : kNone);

/** Seconds as a duration: "0.36 ms", "41.2 s", "3 min 12 s", "2 h 04 min", "3 d 05 h". */
export function duration(s: Maybe): string {
  if (!known(s)) return kNone;
  const size = Math.abs(s);
  if (size === 0) return `0${kSpace}s`;
  if (size < 0.000_999_5) return `${plain(s * 1e6)}${kSpace}µs`;
  if (size < 0.999_5) return `${plain(s * 1e3)}${kSpace}ms`;
  if (size < 59.95) return `${plain(s)}${kSpace}s`;
  const pad = (n: number): string => String(n).padStart(2, "0");
  const whole = Math.round(size);
  const sign = s < 0 ? "-" : "";
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)}${kSpace}min ${pad(whole % 60)}${kSpace}s`;
  const minutes = Math.round(size / 60);
  if (minutes < 1440) return `${sign}${Math.floor(minutes / 60)}${kSpace}h ${pad(minutes % 60)}${kSpace}min`;
  const hours = Math.round(size / 3600);
  return `${sign}${Math.floor(hours / 24)}${kSpace}d ${pad(hours % 24)}${kSpace}h`;
}

/** An ISO time as "3 min 12 s ago". */
export function ago(time: string | null | undefined, now: number = Date.now()): string {
  const at = time ? Date.parse(time) : NaN;
  if (Number.isNaN(at)) return kNone;
  const seconds = Math.max(0, (now - at) / 1000);
  return seconds < 2 ? "just now" : `${duration(Math.round(seconds))} ago`;
}

/** An ISO time in the browser's zone, "2026-01-02 03:04:05"; anything else as it is. */
export function when(time: string | null | undefined): string {
  if (!time) return kNone;
  if (!/(Z|[+-]\d\d:?\d\d)$/.test(time)) return time; // a run's `started` is local to its host already
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return time;
  const two = (n: number): string => String(n).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ` +
    `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** [3, 224, 224] → "3×224×224"; a vector's [500, 1, 1] → "500". */
export function extents(shape: readonly number[]): string {
  if (shape.length === 0) return kNone;
  const vector = shape.length === 3 && shape[1] === 1 && shape[2] === 1;
  return vector ? String(shape[0]) : shape.join("×");
}

/** 1, "worker" → "1 worker"; 3, "worker" → "3 workers". */
export const plural = (n: number, word: string): string => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

/** How a column of the run store or an option's value is shown. */
export function cell(key: string, value: unknown): string {
  if (value === null || value === undefined || value === "") return kNone;
  if (Array.isArray(value)) return value.length ? value.map(String).join(", ") : kNone;
  if (typeof value !== "number") return typeof value === "object" ? JSON.stringify(value) : String(value);
  const last = key.split(".").pop() ?? key;
  if (/accuracy|top5/.test(last)) return percent(value);
  if (/_s$/.test(last) && !/per_s$/.test(last)) return duration(value);
  if (/per_s$/.test(last)) return perSecond(value);
  if (/bytes/.test(last)) return bytes(value);
  if (Number.isInteger(value)) return count(value);
  return plain(value, 4);
}
