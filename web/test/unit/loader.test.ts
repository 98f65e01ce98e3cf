import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError } from "../../src/api/client";
import { Loader, mayPass } from "../../src/api/loader";

/** Requests that the test answers, and timers that it fires. */
function world() {
  const told: string[] = [];
  const requests: { yes: (data: string) => Promise<void>; no: (problem: unknown) => Promise<void>; signal: AbortSignal }[] = [];
  const timers: { call: () => void; ms: number; cancelled: boolean }[] = [];
  const settled = (): Promise<void> => new Promise((done) => setImmediate(done));
  const loader = new Loader<string>(
    (signal) => new Promise((resolve, reject) => {
      requests.push({ signal, yes: (data) => (resolve(data), settled()), no: (problem) => (reject(problem), settled()) });
    }),
    () => told.push("begun"), (data) => told.push(data), (problem) => told.push(`failed: ${(problem as Error).message}`),
    { later: (call, ms) => timers[timers.push({ call, ms, cancelled: false }) - 1],
      cancel: (timer) => { if (timer) (timer as { cancelled: boolean }).cancelled = true; } });
  return { loader, told, requests, timers };
}
const away = new ApiError(0, "unreachable", "away");

test("FrequentRequestsDoNotStarveAnswers", async () => {
  const { loader, told, requests } = world();
  loader.ask();
  for (let i = 0; i < 5; i += 1) loader.ask();
  assert.equal(requests.length, 1);
  assert.equal(requests[0]!.signal.aborted, false);
  await requests[0]!.yes("old");
  assert.equal(requests.length, 2, "the answer may be older than the last wish");
  await requests[1]!.yes("new");
  assert.equal(requests.length, 2);
  assert.deepEqual(told, ["begun", "old", "begun", "new"]);
});

test("AFailureThatMayPassIsTriedAgainAfterPausesThatGrow", async () => {
  const { loader, told, requests, timers } = world();
  loader.ask();
  for (let i = 0; i < 6; i += 1) {
    await requests[i]!.no(away);
    timers[i]!.call();
  }
  assert.deepEqual(timers.map((t) => t.ms), [1000, 2000, 4000, 8000, 15000, 15000]);
  await requests[6]!.yes("there");
  assert.equal(told[told.length - 1], "there");
  loader.ask();
  await requests[7]!.no(away);
  assert.equal(timers[6]!.ms, 1000, "an answer has made it patient again");
});

test("AskingAgainDoesNotWaitForThePause", async () => {
  const { loader, requests, timers } = world();
  loader.ask();
  await requests[0]!.no(away);
  loader.ask();
  assert.equal(requests.length, 2);
  assert.equal(timers[0]!.cancelled, true);
});

test("APermanentErrorIsNotRetried", async () => {
  const { loader, told, requests, timers } = world();
  loader.ask();
  await requests[0]!.no(new ApiError(400, "usage", "no such filter"));
  assert.equal(timers.length, 0);
  assert.deepEqual(told, ["begun", "failed: no such filter"]);
  for (const [status, passes] of [[0, true], [404, true], [429, true], [503, true], [400, false], [401, false], [403, false], [409, false]] as const)
    assert.equal(mayPass(new ApiError(status, "", "")), passes, String(status));
});

test("AWishDuringARequestIsFulfilledAlsoWhereThatFailsForGood", async () => {
  const { loader, told, requests, timers } = world();
  loader.ask();
  loader.ask();
  await requests[0]!.no(new ApiError(409, "busy", "not now"));
  assert.equal(requests.length, 2);
  await requests[1]!.yes("there");
  assert.equal(told[told.length - 1], "there");
  assert.deepEqual([requests.length, timers.length], [2, 0]);
});

test("NothingIsToldAfterTheEnd", async () => {
  const { loader, told, requests, timers } = world();
  loader.ask();
  loader.ask();
  loader.stop();
  assert.equal(requests[0]!.signal.aborted, true);
  await requests[0]!.no(away);
  loader.ask();
  assert.deepEqual([told, requests.length, timers.length], [["begun"], 1, 0]);
});
