// What the form of a new job knows about options.
import type { Option } from "../api/types";

export type Values = Record<string, unknown>;

export const isOfStrategy = (o: Option, strategy: string): boolean => !o.strategies?.length || o.strategies.includes(strategy);

/** A value as a person writes it in a field. */
export function shown(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

/** A field's text as the option's type has it; a text that is none stays a text, and the check names the rule. */
export function read(o: Option, text: string): unknown {
  const trimmed = text.trim();
  if (o.type === "boolean") return trimmed === "true";
  if (/^(integers|numbers|texts|structure)$/.test(o.type)) {
    if (trimmed === "") return [];
    try {
      return JSON.parse(trimmed.startsWith("[") || trimmed.startsWith("{") ? trimmed : `[${trimmed}]`);
    } catch {
      return o.type === "texts" ? trimmed.split(",").map((t) => t.trim()) : trimmed;
    }
  }
  if (o.type === "integer" || o.type === "number") { // or a word, as "auto"
    const n = Number(trimmed);
    return trimmed !== "" && Number.isFinite(n) ? n : trimmed;
  }
  return text;
}

/** Only what differs from the defaults, and only keys that this strategy reads. */
export function changed(options: readonly Option[], values: Values, strategy: string): Values {
  const out: Values = {};
  for (const o of options) {
    if (!(o.key in values) || !isOfStrategy(o, strategy)) continue;
    if (JSON.stringify(values[o.key]) !== JSON.stringify(o.default)) out[o.key] = values[o.key];
  }
  return out;
}

/** Options that a text finds: in the key, or in the help. */
export function found(options: readonly Option[], text: string): Option[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return options.filter((o) => words.every((w) => o.key.toLowerCase().includes(w) || o.help.toLowerCase().includes(w)));
}

/** The rows in force, each key once: several strategies may share a key, with their own defaults. */
export function inForce(options: readonly Option[], strategy: string): Option[] {
  const rows = new Map<string, Option>();
  for (const o of options) {
    if (!isOfStrategy(o, strategy)) continue;
    if (!rows.has(o.key) || o.strategies?.length) rows.set(o.key, o);
  }
  return [...rows.values()];
}

/** "≥ 1", "0 to 1": the rule of a number, as far as the table says it. */
export function range(o: Option): string {
  const bound = (n: number | undefined): string | null => (n === undefined || Math.abs(n) >= 1e9 ? null : n.toLocaleString("en", { maximumSignificantDigits: 8 }));
  const low = bound(o.minimum);
  const high = bound(o.maximum);
  if (low !== null && high !== null) return `${low} to ${high}`;
  return low !== null ? `≥ ${low}` : high !== null ? `≤ ${high}` : "";
}

/** A command line as its words: blanks divide, quotes hold together. No variables, no patterns. */
export function words(line: string): string[] {
  const found: string[] = [];
  for (const [, word] of line.matchAll(/((?:"[^"]*"|'[^']*'|[^\s"'])+)/g)) found.push(word!.replace(/"([^"]*)"|'([^']*)'/g, (_all, a?: string, b?: string) => a ?? b ?? ""));
  return found;
}
