import assert from "node:assert/strict";
import { test } from "node:test";
import { ResumingStream, type Parts, type Source } from "../../src/api/stream";

/** A network under the test's hand: connections open, send and break when told; timers run when told. */
class Network {
  sources: FakeSource[] = [];
  urls: string[] = [];
  timers: { call: () => void; ms: number; cancelled: boolean }[] = [];
  parts: Parts = {
    open: (url) => {
      const source = new FakeSource();
      this.urls.push(url);
      this.sources.push(source);
      return source;
    },
    later: (call, ms) => {
      const timer = { call, ms, cancelled: false };
      this.timers.push(timer);
      return timer;
    },
    cancel: (timer) => {
      if (timer) (timer as { cancelled: boolean }).cancelled = true;
    },
  };
  get now(): FakeSource {
    return this.sources[this.sources.length - 1]!;
  }
  tick(): void {
    const timer = this.timers[this.timers.length - 1];
    if (timer && !timer.cancelled) timer.call();
  }
}

class FakeSource implements Source {
  readyState = 0;
  closed = false;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;
  private calls = new Map<string, (event: { data: string; lastEventId: string }) => void>();
  close(): void {
    this.closed = true;
    this.readyState = 2;
  }
  addEventListener(kind: string, call: (event: { data: string; lastEventId: string }) => void): void {
    this.calls.set(kind, call);
  }
  open(): void {
    this.readyState = 1;
    this.onopen?.();
  }
  send(kind: string, id: number | "", data: string): void {
    this.calls.get(kind)?.({ data, lastEventId: String(id) });
  }
  break(forGood: boolean): void {
    this.readyState = forGood ? 2 : 0;
    this.onerror?.();
  }
}

function made(from = 100): { net: Network; got: string[]; told: string[]; stream: ResumingStream } {
  const net = new Network();
  const got: string[] = [];
  const told: string[] = [];
  const stream = new ResumingStream((at) => `/events?from=${at}`, ["worker", "note"], from, (kind, data) => got.push(`${kind}:${data}`),
    (connection) => told.push(connection), net.parts);
  return { net, got, told, stream };
}

test("TheFirstConnectionStartsAtThePosition", () => {
  const { net, got, stream } = made();
  stream.start();
  stream.start();
  assert.deepEqual(net.urls, ["/events?from=100"]);
  net.now.open();
  net.now.send("worker", 110, "a");
  assert.deepEqual(got, ["worker:a"]);
  assert.equal(stream.last, 110);
});

test("LinesThatTheServiceSendsAgainAreGivenOnce", () => {
  const { net, got, stream } = made();
  stream.start();
  net.now.open();
  net.now.send("worker", 110, "a");
  net.now.break(false); // the browser connects again by itself
  net.now.open();
  net.now.send("worker", 105, "before a");
  net.now.send("worker", 110, "a");
  net.now.send("note", 120, "b");
  assert.equal(net.sources.length, 1);
  assert.deepEqual(got, ["worker:a", "note:b"]);
});

test("WhenTheBrowserGivesUpANewStreamStartsBehindTheLastLine", () => {
  const { net, told, stream } = made();
  stream.start();
  net.now.open();
  net.now.send("note", 150, "x");
  net.now.break(true);
  assert.equal(net.sources.length, 1);
  net.tick();
  assert.deepEqual(net.urls, ["/events?from=100", "/events?from=150"]);
  net.now.open();
  assert.deepEqual(told, ["connecting", "live", "waiting", "connecting", "live"]);
});

test("PausesGrowToALimitAndShrinkAfterSuccess", () => {
  const { net, stream } = made();
  stream.start();
  for (let i = 0; i < 10; i += 1) {
    net.now.break(true);
    net.tick();
  }
  const pauses = net.timers.map((t) => t.ms);
  assert.deepEqual(pauses.slice(0, 4), [500, 1000, 2000, 4000]);
  assert.equal(Math.max(...pauses), 20_000);
  net.now.open();
  net.now.break(true);
  assert.equal(net.timers[net.timers.length - 1]!.ms, 500);
});

test("AStoppedStreamIsSilentAndGoesOnWhereItWas", () => {
  const { net, got, stream } = made();
  stream.start();
  const first = net.now;
  first.send("worker", 110, "a");
  stream.stop();
  assert.ok(first.closed);
  first.send("worker", 130, "late");
  first.break(true);
  stream.start();
  assert.deepEqual(net.urls, ["/events?from=100", "/events?from=110"]);
  net.now.send("worker", 130, "b");
  assert.deepEqual(got, ["worker:a", "worker:b"]);
});

test("ATimerOfAStoppedStreamOpensNothing", () => {
  const { net, stream } = made();
  stream.start();
  net.now.break(true);
  stream.stop();
  net.tick();
  net.timers[0]!.call();
  assert.equal(net.sources.length, 1);
});

test("EventsWithoutAnIdAreGivenAndMoveNothing", () => {
  const { net, got, stream } = made(-1);
  stream.start();
  net.now.send("note", "", "x");
  net.now.send("note", "", "x");
  assert.deepEqual(got, ["note:x", "note:x"]);
  assert.equal(stream.last, -1);
});
