// One thing of the service, loaded when it is wished for: one request at a time, and again by itself after a failure that may pass.
import { ApiError } from "./client";

export interface Timers {
  later: (call: () => void, ms: number) => unknown;
  cancel: (timer: unknown) => void;
}

const kBrowser: Timers = {
  later: (call, ms) => setTimeout(call, ms),
  cancel: (timer) => clearTimeout(timer as number),
};

const kFirstPauseMs = 1_000;
const kLongestPauseMs = 15_000;

/** What the same request may get an answer to, a little later: the service is away or busy, or what is asked for is not there yet. */
export const mayPass = (problem: unknown): boolean =>
  !(problem instanceof ApiError) || problem.status >= 500 || [0, 404, 408, 429].includes(problem.status);

export class Loader<T> {
  private readonly control = new AbortController();
  private timer: unknown = null;
  private busy = false;
  private wished = false; // while an answer is awaited, which may be older than the wish
  private pauseMs = kFirstPauseMs;

  constructor(
    private readonly load: (signal: AbortSignal) => Promise<T>,
    private readonly begun: () => void,
    private readonly done: (data: T) => void,
    private readonly failed: (problem: unknown) => void,
    private readonly timers: Timers = kBrowser,
  ) {}

  /** Loads it. A wish during a request is fulfilled after it: wishes that are more frequent than answers never keep these away. */
  ask(): void {
    if (this.control.signal.aborted) return;
    this.timers.cancel(this.timer);
    this.timer = null;
    this.wished = this.busy;
    if (this.busy) return;
    this.busy = true;
    this.begun();
    const over = (): boolean => {
      this.busy = false;
      return this.control.signal.aborted;
    };
    this.load(this.control.signal).then((data) => {
      if (over()) return;
      this.pauseMs = kFirstPauseMs;
      this.done(data);
      if (this.wished) this.ask();
    }, (problem: unknown) => {
      if (over()) return;
      this.failed(problem);
      if (this.wished && !mayPass(problem)) return this.ask(); // what was asked for has changed meanwhile
      if (!mayPass(problem)) return;
      this.timer = this.timers.later(() => this.ask(), this.pauseMs);
      this.pauseMs = Math.min(this.pauseMs * 2, kLongestPauseMs);
    });
  }

  /** Gives the request up; nothing is told any more. */
  stop(): void {
    this.control.abort();
    this.timers.cancel(this.timer);
  }
}
