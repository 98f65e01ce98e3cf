// Loads a run, then follows it live.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { address, ApiError, at, get, message } from "../../api/client";
import { ResumingStream, whileVisible, type Connection } from "../../api/stream";
import type { Curves, RunDetails, RunState } from "../../api/types";
import { RunModel } from "../../lib/run_model";
import { asked } from "../../lib/route";

const kRedrawMs = 250;
const kManyWorkers = 100; // of more, the page draws half as often
const kLongMs = 500;
const kKinds = ["started", "worker", "epoch", "evaluation", "member", "ledger", "note", "ended"];
export const kSeries = ["step.loss", "train.loss", "test.loss", "validation.loss", "step.accuracy", "train.accuracy", "test.accuracy",
  "validation.accuracy", "test.top5", "train.images_per_s", "lr", "step.distance"];

export interface LiveRun {
  details: RunDetails | null;
  model: RunModel | null;
  version: number; // changes when the model does
  connection: Connection | "over";
  error: string | null;
  reload: () => void;
  again: () => void; // reload() unless it loads
}

export function useRun(run: string): LiveRun {
  const [details, setDetails] = useState<RunDetails | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [connection, setConnection] = useState<Connection | "over">("connecting");
  const [version, setVersion] = useState(0);
  const [turn, setTurn] = useState(0);
  const model = useRef<RunModel | null>(null);
  const busy = useRef(false);
  useEffect(() => {
    const control = new AbortController();
    busy.current = true;
    let stopStream: (() => void) | null = null;
    let timer: ReturnType<typeof setTimeout> | null = null;
    const redraw = (): void => {
      timer ??= setTimeout(() => {
        timer = null;
        setVersion((n) => n + 1);
      }, (model.current?.workers.length ?? 0) > kManyWorkers ? 2 * kRedrawMs : kRedrawMs);
    };
    const load = async (): Promise<void> => {
      const { signal } = control;
      const curvesOf = (): Promise<{ series: Curves }> =>
        get(`${at("runs", run, "curves")}${asked({ series: kSeries.join(), points: 2000 })}`, signal);
      const begun = performance.now();
      const stating = get<RunState>(at("runs", run, "state"), signal).catch((problem: unknown) => {
        if (problem instanceof ApiError && (problem.status === 404 || problem.status === 409)) return null; // no metrics.jsonl yet
        throw problem;
      });
      stating.catch(() => undefined); // it is awaited only where the others have come
      const [found, first] = await Promise.all([get<RunDetails>(at("runs", run), signal), curvesOf()]);
      let curves = first;
      const show = (state: RunState | null, partial = false): RunModel => {
        const made = new RunModel(found, state, curves.series);
        made.partial = partial && made.workers.length === 0;
        model.current = made;
        setDetails(found);
        setError(null);
        setVersion((n) => n + 1);
        return made;
      };
      // The state of a long run takes the service seconds when nobody has asked before; what its summary says is there at once.
      if (!signal.aborted && found.status !== "running" && !model.current) show(null, true);
      const state = await stating;
      if (found.status === "running" && performance.now() - begun > kLongMs) curves = await curvesOf(); // without a gap before the stream
      if (signal.aborted) return;
      const made = show(state);
      if (made.status !== "running") {
        setConnection("over");
        return;
      }
      const stream = new ResumingStream((from) => `${address(at("runs", run, "events"))}${asked({ from: Math.max(0, from) })}`, kKinds,
        state?.position ?? -1, (kind, line) => {
          made.apply(line);
          redraw();
          if (kind === "ended") setTimeout(() => !signal.aborted && setTurn((n) => n + 1), 1500); // its summary is there then
        }, setConnection);
      stopStream = whileVisible(stream);
    };
    load().catch((problem: unknown) => !control.signal.aborted && setError(message(problem)))
      .finally(() => { busy.current &&= control.signal.aborted; }); // one that was aborted has a successor
    return () => {
      control.abort();
      stopStream?.();
      if (timer) clearTimeout(timer);
    };
  }, [run, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  /** Not while it loads: the service answers what was aborted, too, and a slow answer would never come. */
  const again = useCallback(() => !busy.current && setTurn((n) => n + 1), []);
  return { details, model: model.current, version, connection, error, reload, again };
}
