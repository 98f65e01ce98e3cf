// What a run accounts for besides its loss: who took part when, where its samples are, which bytes went where. Pure.

/** A `member` line of metrics.jsonl; "started": a session began with all workers but those told absent. */
export interface MemberEvent {
  t: number | null;
  event: string;
  worker: number | null;
  node?: string | null;
  reason?: string | null;
  steps?: number | null;
  epoch: number | null;
  train_s?: number | null;
  members?: number | null;
  wall_s?: number | null;
}

/** A `ledger` line. */
export interface Ledger {
  epoch: number;
  size: number;
  done: number;
  given_up: number;
  leased: number;
  free: number;
  omitted: number;
  useful: number;
  computed: number;
  lost: number;
  returned: number;
  passed: number;
  rolled_back: number;
  possible: number;
  goodput: number | null;
  wall_s: number;
}

/** Bytes of one purpose with one member: ["push", 0, 4096] to server 0; ["collective", null, 64] with a group. */
export type Traffic = readonly [purpose: string, member: number | null, bytes: number];

export interface Segment {
  from: number;
  to: number;
  silent: boolean;
}

/** Each worker's stretches of membership, on the axis of `place`, until `end`. A session that begins at an earlier place cuts what lies behind it. */
export function lanes(events: readonly MemberEvent[], workers: number, end: number, place: (e: MemberEvent) => number): Segment[][] {
  const found: Segment[][] = Array.from({ length: workers }, () => []);
  const open: ({ from: number; silent: boolean } | null)[] = Array.from({ length: workers }, () => ({ from: 0, silent: false }));
  const close = (w: number, at: number): void => {
    const now = open[w];
    if (now && at > now.from) found[w]!.push({ from: now.from, to: at, silent: now.silent });
    open[w] = null;
  };
  for (const e of events) {
    const at = place(e);
    if (!Number.isFinite(at)) continue;
    if (e.event === "started") {
      for (let w = 0; w < workers; w += 1) {
        close(w, at);
        found[w] = found[w]!.filter((s) => s.from < at).map((s) => ({ ...s, to: Math.min(s.to, at) }));
        open[w] = { from: at, silent: false };
      }
      continue;
    }
    const w = e.worker;
    if (w === null || w < 0 || w >= workers) continue;
    if (e.event === "lost" || e.event === "absent") close(w, at);
    else if (e.event === "joined" || e.event === "silent" || e.event === "heard") {
      close(w, at);
      open[w] = { from: at, silent: e.event === "silent" };
    }
  }
  for (let w = 0; w < workers; w += 1) close(w, end);
  return found;
}

export interface Matrix {
  columns: string[];
  cells: Float64Array; // row by row
  purposes: Map<string, number>; // bytes of each, over all workers and whatever is chosen
}

const kServers = new Set(["push", "pull", "exchange"]);
const other = (purpose: string, member: number | null): string =>
  member === null || purpose === "collective" ? "group" : kServers.has(purpose) ? `server ${member}` : `worker ${member}`;
const rank = (name: string): number => (name === "group" ? 2e9 : (name.startsWith("server") ? 1e9 : 0) + Number(name.split(" ")[1]));

/** Bytes by worker and by the member at the other end; `purpose` "" takes all. Only members that anything went to or came from are columns. */
export function trafficMatrix(rows: readonly (readonly Traffic[] | undefined)[], purpose: string): Matrix {
  const purposes = new Map<string, number>();
  const used = new Set<string>();
  for (const row of rows)
    for (const [what, member, bytes] of row ?? []) {
      purposes.set(what, (purposes.get(what) ?? 0) + bytes);
      if (!purpose || what === purpose) used.add(other(what, member));
    }
  const columns = [...used].sort((a, b) => rank(a) - rank(b));
  const at = new Map(columns.map((name, i) => [name, i]));
  const cells = new Float64Array(rows.length * columns.length);
  rows.forEach((row, r) => {
    for (const [what, member, bytes] of row ?? [])
      if (!purpose || what === purpose) cells[r * columns.length + at.get(other(what, member))!]! += bytes;
  });
  return { columns, cells, purposes };
}
