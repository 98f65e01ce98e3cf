import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { at, message, put, send } from "../api/client";
import { useActing, useEvery, useLoaded, useMay, useServerEvents, useThrottled } from "../api/hooks";
import type { Job, JobDetails } from "../api/types";
import { ago, cell, when } from "../lib/format";
import { asked, go, link } from "../lib/route";
import { Ask, Badge, Code, Empty, ErrorLine, Figure, Link, Page, Panel } from "../parts/misc";
import { took } from "./jobs";

const kMostLog = 400_000; // characters that stay on the page
const kPartBytes = 1 << 20; // the most that one answer has
const kPollMs = 1000;

/** The end of a job's output, which grows while it runs. */
function Log({ id, running }: { id: string; running: boolean }): JSX.Element {
  const [text, setText] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [follow, setFollow] = useState(true);
  const next = useRef(0);
  const busy = useRef(false);
  const wished = useRef(false); // while an answer is awaited, which may lack the end
  const box = useRef<HTMLPreElement>(null);
  const more = async (): Promise<void> => {
    wished.current = busy.current;
    if (busy.current) return;
    busy.current = true;
    try {
      for (;;) {
        wished.current = false;
        const { text: part, headers } = await send(`${at("jobs", id, "log")}${asked({ from: String(next.current), limit: kPartBytes })}`);
        const to = Number(headers.get("X-Next"));
        if (part !== "") setText((old) => (old + part).slice(-kMostLog));
        const read = Number.isFinite(to) ? Math.max(0, to - next.current) : 0;
        next.current += read;
        if (read < kPartBytes / 2 && !wished.current) break; // bytes, not characters: one of them can be four
      }
      setError(null);
    } catch (problem) {
      setError(message(problem));
    } finally {
      busy.current = false;
    }
  };
  useEffect(() => void more(), [running]);
  useEvery(kPollMs, () => (running || error !== null) && void more());
  useEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text, follow]);
  const scrolled = (): void => {
    const b = box.current;
    if (b) setFollow(b.scrollHeight - b.scrollTop - b.clientHeight < 24);
  };
  return (
    <Panel title="Output" wide aside={!follow && <button type="button" class="button small" onClick={() => setFollow(true)}>To the end</button>}>
      <ErrorLine error={error} />
      {text === "" ? <Empty title={running ? "The job has printed nothing yet." : "The job printed nothing."} />
        : <pre class="output" ref={box} tabIndex={0} aria-label="output of the job" onScroll={scrolled}>{text.replace(/[^\n]*\r(?!\n)/g, "")}</pre>}
    </Panel>
  );
}

export function JobPage({ id }: { id: string }): JSX.Element {
  const loaded = useLoaded<JobDetails>(at("jobs", id));
  const mayRun = useMay("run");
  const [error, setError] = useState<string | null>(null);
  const [question, ask] = useState<"stop" | "kill" | "delete" | null>(null);
  const [busy, acting] = useActing(loaded.data);
  const again = useThrottled(loaded.reload, 300);
  useServerEvents(["job"], (_, row) => (!row || String((row as Job).id) === id) && again());
  useEvery(5000, again);
  const job = loaded.data;
  useEffect(() => setError(null), [job?.state]); // what was refused in another state
  if (!job) return <Page title={`Job ${id}`}><ErrorLine error={loaded.error} retry={loaded.reload} />{!loaded.error && <p class="loading" role="status">Loading…</p>}</Page>;
  const act = (method: "POST" | "DELETE", path: string, body?: unknown): Promise<void> =>
    acting(put(method, path, body).then(() => { setError(null); if (method === "DELETE") go("#/jobs"); }, (problem: unknown) => setError(message(problem)))
      .then(loaded.reload));
  const path = (what: string): string => at("jobs", id, what);
  const { state } = job;
  const active = /queued|running|stopping/.test(state);
  const resumable = /stopped|failed|lost/.test(state) && (job.run !== null || job.kind === "grid"); // without a run it would start
  return (
    <Page title={job.name || `job ${id}`} above={<p class="crumb"><Link to="#/jobs">Jobs</Link> / <span>{id}</span></p>} actions={mayRun && (
      <>
        {state === "running" && <button type="button" disabled={busy} class="button" onClick={() => void act("POST", path("checkpoint"))}>Checkpoint</button>}
        {(state === "queued" || state === "running") && <button type="button" disabled={busy} class="button" onClick={() => ask("stop")}>Stop</button>}
        {(state === "running" || state === "stopping") && <button type="button" disabled={busy} class="button danger" onClick={() => ask("kill")}>Kill</button>}
        {resumable && <button type="button" disabled={busy} class="button primary" onClick={() => void act("POST", path("resume"))}>Resume</button>}
        {!active && <button type="button" disabled={busy} class={resumable ? "button" : "button primary"} onClick={() => void act("POST", path("start"))}>Start</button>}
        {(!active || state === "queued") && <button type="button" disabled={busy} class="button danger" onClick={() => ask("delete")}>Delete</button>}
      </>)}>
      <p class="run-line"><Badge state={state} /><span class="muted">{job.kind} · {job.user}</span>
        {job.run && <Link to={link(["runs", job.run])}>{state === "running" ? "Watch its run" : "Its run"}: {job.run}</Link>}</p>
      <ErrorLine error={error ?? loaded.error} />
      <ErrorLine error={job.error} />
      <dl class="figures">
        {([["Submitted", job.submitted], ["Started", job.started], ["Ended", job.ended]] as const).map(([label, time]) => (
          <Figure key={label} label={label} value={ago(time)} note={time ? when(time) : ""} />))}
        <Figure label="Time" value={took(job)} /><Figure label="Workers" value={cell("workers", job.workers)} /><Figure label="Priority" value={job.priority} />
        <Figure label="Exit code" value={cell("exit_code", job.exit_code)} /><Figure label="Nodes" value={cell("nodes", job.nodes)} />
      </dl>
      <Log id={id} running={active} />
      <div class="columns">
        <Panel title="History">{job.history.length > 0
          ? <ol class="log" tabIndex={0} aria-label="history">{job.history.map((h, i) => <li key={i}><span class="log-time">{when(h.at)}</span><span>{h.event}</span></li>)}</ol>
          : <Empty title="Nothing has happened yet." />}</Panel>
        <Panel title="Configuration">
          {job.command_line && <Code label="the command line" text={job.command_line} />}
          {job.config ? <Code label="the configuration" text={job.config} /> : <Empty title="This job has no configuration." />}
        </Panel>
      </div>
      {question === "stop" && state === "queued" && <Ask title="Stop this job?" yes="Take it out of the queue" text="It does not begin. Start puts it into the queue again."
        act={() => void act("POST", path("stop"), {})} close={() => ask(null)} />}
      {question === "stop" && state !== "queued" && <Ask title="Stop this job?" yes="Save a checkpoint and stop" text="It saves a checkpoint, writes its summary and ends. Resume goes on from there."
        act={() => void act("POST", path("stop"), { checkpoint: true })} close={() => ask(null)} />}
      {question === "kill" && <Ask title="Kill this job?" yes="Kill" danger text="It ends at once. What it learned since its last checkpoint is lost."
        act={() => void act("POST", path("stop"), { checkpoint: false })} close={() => ask(null)} />}
      {question === "delete" && <Ask title="Delete this job?" yes="Delete" danger text="Its output and its place in the queue go. The directory of its run stays."
        act={() => void act("DELETE", at("jobs", id))} close={() => ask(null)} />}
    </Page>
  );
}
