// Server-sent events that go on where they stopped.

/** The part of EventSource that is used, so that tests have one of their own. */
export interface Source {
  readonly readyState: number; // 2: closed for good
  close(): void;
  addEventListener(kind: string, call: (event: { data: string; lastEventId: string }) => void): void;
  onopen: (() => void) | null;
  onerror: (() => void) | null;
}

export interface Parts {
  open: (url: string) => Source;
  later: (call: () => void, ms: number) => unknown;
  cancel: (timer: unknown) => void;
}

const kBrowser: Parts = {
  open: (url) => new EventSource(url) as unknown as Source,
  later: (call, ms) => setTimeout(call, ms),
  cancel: (timer) => clearTimeout(timer as number),
};

const kFirstPauseMs = 500;
const kLongestPauseMs = 20_000;

export type Connection = "connecting" | "live" | "waiting";

/**
 * Follows a stream whose ids are positions that only grow. Gives each event once, in order. While the connection is lost, the browser
 * tries again by itself and sends Last-Event-ID; when it gives up, this opens a new stream from the last position, after pauses that grow.
 */
export class ResumingStream {
  private source: Source | null = null;
  private timer: unknown = null;
  private pauseMs = kFirstPauseMs;
  private running = false;

  constructor(
    private readonly url: (from: number) => string,
    private readonly kinds: readonly string[],
    private position: number,
    private readonly take: (kind: string, data: string) => void,
    private readonly report: (connection: Connection) => void = () => undefined,
    private readonly parts: Parts = kBrowser,
  ) {}

  /** The position after the last event that was given. */
  get last(): number {
    return this.position;
  }

  start(): void {
    if (this.running) return;
    this.running = true;
    this.connect();
  }

  /** Closes the connection and keeps the position: start() goes on from there. */
  stop(): void {
    this.running = false;
    this.source?.close();
    this.source = null;
    this.parts.cancel(this.timer);
  }

  private connect(): void {
    this.report("connecting");
    const source = this.parts.open(this.url(this.position));
    this.source = source;
    source.onopen = () => {
      this.pauseMs = kFirstPauseMs;
      this.report("live");
    };
    source.onerror = () => {
      if (!this.running || this.source !== source) return;
      this.report("waiting");
      if (source.readyState !== 2) return; // the browser tries again
      source.close();
      this.timer = this.parts.later(() => this.running && this.connect(), this.pauseMs);
      this.pauseMs = Math.min(this.pauseMs * 2, kLongestPauseMs);
    };
    for (const kind of this.kinds)
      source.addEventListener(kind, (event) => {
        if (!this.running || this.source !== source) return;
        const id = Number(event.lastEventId);
        if (event.lastEventId !== "" && Number.isFinite(id)) {
          if (id <= this.position) return; // given before the connection was lost
          this.position = id;
        }
        this.take(kind, event.data);
      });
  }
}

/** Runs the stream only while the page is seen: a browser has six connections to a server, for all its tabs. */
export function whileVisible(stream: ResumingStream): () => void {
  const changed = (): void => (document.visibilityState === "visible" ? stream.start() : stream.stop());
  document.addEventListener("visibilitychange", changed);
  changed();
  return () => {
    document.removeEventListener("visibilitychange", changed);
    stream.stop();
  };
}
