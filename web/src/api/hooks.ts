// What pages load, and when they load it again.
import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { address, get, getList, message } from "./client";
import { Loader } from "./loader";
import { ResumingStream, whileVisible } from "./stream";
import type { Role, Server } from "./types";

export interface Loaded<T> {
  data: T | null;
  error: string | null;
  loading: boolean;
  reload: () => void;
}

/**
 * Loads `path` (null: nothing), and again when it changes, reload() is called, or it has failed and may come. Old data stays until the new is
 * there, and an error until an answer is.
 */
export function useLoaded<T>(path: string | null, load: (path: string, signal: AbortSignal) => Promise<T> = get): Loaded<T> {
  const [state, set] = useState<{ path: string | null; data: T | null; error: string | null; loading: boolean }>(
    { path, data: null, error: null, loading: path !== null });
  const latest = useRef(load);
  latest.current = load;
  const loader = useRef<Loader<T> | null>(null);
  useEffect(() => {
    if (path === null) return undefined;
    const made = new Loader<T>(
      (signal) => latest.current(path, signal),
      () => set((old) => ({ ...old, error: old.path === path ? old.error : null, loading: true })), // the path is still that of the data
      (data) => set({ path, data, error: null, loading: false }),
      (problem) => set((old) => ({ path, data: old.path === path ? old.data : null, error: message(problem), loading: false })));
    loader.current = made;
    made.ask();
    return () => made.stop();
  }, [path]);
  const reload = useCallback(() => loader.current?.ask(), []);
  return { data: state.data, error: state.error, loading: state.loading, reload };
}

/** useLoaded of a list. */
export const useList = <T,>(path: string | null): Loaded<T[]> => useLoaded<T[]>(path, getList<T>);

type Listener = (kind: string, row: Changed) => void;
const listeners = new Set<Listener>();
let stopEvents: (() => void) | null = null;
let stopSoon: ReturnType<typeof setTimeout> | null = null;
const kKeptMs = 5_000; // the connection, from one page to the next
const kBegunMs = 2_500; // the service looks for changed runs every two seconds, and compares with its first look after someone listens

/** A row; null: the connection was away, or the page was hidden; undefined: it has just begun, and a page may have asked before it did. */
export type Changed = object | null | undefined;

/** Events of the whole service (`run`, `job`, `node`), over one connection for all parts of the page. Without a row any may have changed. */
export function useServerEvents(kinds: readonly string[], call: (kind: string, row: Changed) => void): void {
  const latest = useRef(call);
  latest.current = call;
  const wanted = kinds.join();
  useEffect(() => {
    const listener: Listener = (kind, row) => {
      if (wanted.split(",").includes(kind)) latest.current(kind, row);
    };
    listeners.add(listener);
    if (stopSoon) clearTimeout(stopSoon);
    stopSoon = null;
    if (!stopEvents) {
      const all = ["run", "job", "node"];
      let wasLive = false;
      const stream = new ResumingStream(() => address("/events"), all, -1, (kind, text) => {
        let row: unknown = null;
        try {
          row = JSON.parse(text);
        } catch {
          return;
        }
        if (typeof row === "object" && row !== null) listeners.forEach((each) => each(kind, row as object));
      }, (connection) => {
        if (connection !== "live") return;
        const tell = (row: Changed): void => all.forEach((kind) => listeners.forEach((each) => each(kind, row)));
        if (wasLive) tell(null);
        else setTimeout(() => tell(undefined), kBegunMs);
        wasLive = true;
      });
      stopEvents = whileVisible(stream);
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      stopSoon = setTimeout(() => {
        stopEvents?.();
        stopEvents = stopSoon = null;
      }, kKeptMs);
    };
  }, [wanted]);
}

/** Calls at most once per `ms`, the last time after the last wish. */
export function useThrottled(call: () => void, ms: number): () => void {
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  const latest = useRef(call);
  latest.current = call;
  useEffect(() => () => void (timer.current && clearTimeout(timer.current)), []);
  return useCallback(() => {
    if (timer.current) return;
    timer.current = setTimeout(() => {
      timer.current = null;
      latest.current();
    }, ms);
  }, [ms]);
}

/** Calls every `ms` while the page is seen. */
export function useEvery(ms: number, call: () => void): void {
  const latest = useRef(call);
  latest.current = call;
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && latest.current(), ms);
    return () => clearInterval(timer);
  }, [ms]);
}

/** Whether buttons wait: an action is under way, or `data` is still what it was at its end. Their second click would be refused. */
export function useActing(data: unknown): [boolean, (work: Promise<unknown>) => Promise<void>] {
  const [under, setUnder] = useState(0);
  const [before, setBefore] = useState<unknown>(null);
  const latest = useRef(data);
  latest.current = data;
  const act = useCallback(async (work: Promise<unknown>): Promise<void> => {
    setUnder((n) => n + 1);
    await work.catch(() => undefined);
    setBefore(latest.current);
    setUnder((n) => n - 1);
  }, []);
  return [under > 0 || (before !== null && before === data), act];
}

export const ServerContext = createContext<Server | null>(null);
const kRanks: Record<Role, number> = { read: 0, run: 1, admin: 2 };

/** Whether this user may do what needs `role`. */
export function useMay(role: Role): boolean {
  const server = useContext(ServerContext);
  return server !== null && kRanks[server.role] >= kRanks[role];
}
