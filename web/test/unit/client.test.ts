import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { ApiError, get, getList, put, send } from "../../src/api/client";

const real = { fetch: globalThis.fetch, setTimeout: globalThis.setTimeout };
afterEach(() => void Object.assign(globalThis, real));

type Body = ConstructorParameters<typeof Response>[0];
const answers = (body: Body, status = 200): void => {
  globalThis.fetch = (_url, ask) => {
    const signal = ask?.signal;
    const whole = new Response(body, { status });
    // As in a browser: the signal also ends the reading of the body.
    const text = whole.text.bind(whole);
    whole.text = () => Promise.race([text(), new Promise<string>((_, refuse) => {
      const refused = (): void => refuse(new DOMException("aborted", "AbortError"));
      if (signal?.aborted) refused();
      signal?.addEventListener("abort", refused);
    })]);
    return Promise.resolve(whole);
  };
};
const endless = (): ReadableStream => new ReadableStream({ start: (out) => out.enqueue(new TextEncoder().encode("[1,")) });
const failure = async (work: Promise<unknown>): Promise<ApiError> => {
  const error: unknown = await work.then(() => null, (problem: unknown) => problem);
  assert.ok(error instanceof ApiError, String(error));
  return error;
};

test("AnswersAreReadAsJsonOrText", async () => {
  answers('{"runs": [1, 2], "total": 2}');
  assert.deepEqual(await get("/runs"), { runs: [1, 2], total: 2 });
  assert.deepEqual(await getList("/runs"), [1, 2]);
  assert.equal((await send("/runs")).text, '{"runs": [1, 2], "total": 2}');
  answers("");
  assert.equal(await put("DELETE", "/session"), null);
});

test("AnErrorHasTheServicesWordsOrThePathAndTheStatus", async () => {
  answers('{"error": {"code": "config", "message": "run.epochs = -3: at least 1"}}', 400);
  const told = await failure(get("/check"));
  assert.deepEqual([told.status, told.code, told.message], [400, "config", "run.epochs = -3: at least 1"]);
  answers("<html>", 502);
  const untold = await failure(put("POST", "/jobs", {}));
  assert.equal(untold.status, 502);
  assert.match(untold.message, /^POST \/jobs: 502/);
});

test("AnAnswerThatIsNotJsonIsAnErrorWithItsPath", async () => {
  answers("<html>");
  assert.match((await failure(get("/runs"))).message, /^GET \/runs: the answer is not JSON/);
});

test("AnAnswerThatStopsHalfwayEndsAtTheDeadline", async () => {
  const deadlines: (() => void)[] = [];
  globalThis.setTimeout = ((call: () => void) => deadlines.push(call)) as unknown as typeof setTimeout;
  answers(endless());
  const waiting = failure(get("/runs"));
  await new Promise((done) => setImmediate(done));
  assert.equal(deadlines.length, 1);
  deadlines[0]!();
  assert.match((await waiting).message, /no whole answer within 30 s/);
});

test("AConnectionThatBreaksHalfwayIsAnError", async () => {
  answers(new ReadableStream({ start: (out) => out.error(new TypeError("network error")) }));
  assert.equal((await failure(get("/runs"))).code, "unreachable");
});

test("WhoAskedMayGiveUpWhileTheAnswerIsRead", async () => {
  const control = new AbortController();
  answers(endless());
  const waiting = failure(get("/runs", control.signal));
  await new Promise((done) => setImmediate(done));
  control.abort();
  assert.equal((await waiting).code, "aborted");
});
