// What pages load, and when they load it again.
import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import { address, get, getList, message } from "./client";
import { ResumingStream, whileVisible } from "./stream";
import type { Role, Server } from "./types";

export interface Loaded<T> {
  data: T | null;
  error: string | null;
  loading: boolean;
  reload: () => void;
  set: (data: T) => void;
}

/** Loads `path` (null: nothing), and again when it changes or reload() is called. Old data stays until the new is there. */
export function useLoaded<T>(path: string | null, load: (path: string, signal: AbortSignal) => Promise<T> = get): Loaded<T> {
  const [state, set] = useState<{ path: string | null; data: T | null; error: string | null; loading: boolean }>(
    { path, data: null, error: null, loading: path !== null });
  const [turn, setTurn] = useState(0);
  const loader = useRef(load);
  loader.current = load;
  useEffect(() => {
    if (path === null) return undefined;
    const control = new AbortController();
    set((old) => ({ ...old, error: null, loading: true })); // the path is still that of the data
    loader.current(path, control.signal).then(
      (data) => !control.signal.aborted && set({ path, data, error: null, loading: false }),
      (error: unknown) => !control.signal.aborted &&
        set((old) => ({ path, data: old.path === path ? old.data : null, error: message(error), loading: false })));
    return () => control.abort();
  }, [path, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  const replace = useCallback((data: T) => set((old) => ({ ...old, data })), []);
  return { data: state.data, error: state.error, loading: state.loading, reload, set: replace };
}

/** useLoaded of a list. */
export const useList = <T,>(path: string | null): Loaded<T[]> => useLoaded<T[]>(path, getList<T>);

type Listener = (kind: string, data: unknown) => void;
const listeners = new Set<Listener>();
let stopEvents: (() => void) | null = null;

/**
 * Events of the whole service (`run`, `job`, `node`: a row each), over one connection for all parts of the page. A row that is null: the
 * connection was away, or the page was hidden, and any of these may have changed.
 */
export function useServerEvents(kinds: readonly string[], call: (kind: string, data: unknown) => void): void {
  const latest = useRef(call);
  latest.current = call;
  const wanted = kinds.join();
  useEffect(() => {
    const listener: Listener = (kind, data) => {
      if (wanted.split(",").includes(kind)) latest.current(kind, data);
    };
    listeners.add(listener);
    if (!stopEvents) {
      const all = ["run", "job", "node"];
      let wasLive = false;
      const stream = new ResumingStream(() => address("/events"), all, -1, (kind, text) => {
        let data: unknown = null;
        try {
          data = JSON.parse(text);
        } catch {
          return;
        }
        listeners.forEach((each) => each(kind, data));
      }, (connection) => {
        if (connection !== "live") return;
        if (wasLive) all.forEach((kind) => listeners.forEach((each) => each(kind, null)));
        wasLive = true;
      });
      stopEvents = whileVisible(stream);
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && stopEvents) {
        stopEvents();
        stopEvents = null;
      }
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

export const ServerContext = createContext<Server | null>(null);
const kRanks: Record<Role, number> = { read: 0, run: 1, admin: 2 };

/** Whether this user may do what needs `role`. */
export function useMay(role: Role): boolean {
  const server = useContext(ServerContext);
  return server !== null && kRanks[server.role] >= kRanks[role];
}
