// What a user may do with a run: stop, checkpoint, resume, tag, remove. The service checks the role again.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { at, message, put } from "../../api/client";
import { useActing, useEvery, useLoaded, useMay, useServerEvents } from "../../api/hooks";
import type { Job, RunDetails } from "../../api/types";
import { go, link } from "../../lib/route";
import type { RunModel } from "../../lib/run_model";
import { Ask, ErrorLine } from "../../parts/misc";

const kAgainMs = 5000;

type Question = "stop" | "kill" | "remove" | "note";

export function RunControls({ details, model, reload }: { details: RunDetails; model: RunModel; reload: () => void }): JSX.Element | null {
  const mayRun = useMay("run");
  const admin = useMay("admin");
  const known = details.job !== null;
  const job = useLoaded<Job>(known ? at("jobs", details.job!) : null);
  const [question, ask] = useState<Question | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [done, setDone] = useState<string | null>(null);
  const [busy, acting] = useActing(job.data);
  const [tags, setTags] = useState(details.tags.join(" "));
  const [note, setNote] = useState(details.note);
  useServerEvents(["job"], (_, row) => {
    if (known && (!row || (row as Job).id === details.job)) job.reload();
  });
  useEvery(kAgainMs, () => known && job.reload());
  if (!mayRun) return null;
  const act = (work: Promise<unknown>, said: string): void => {
    setError(null);
    void acting(work.then(() => setDone(said), (problem: unknown) => setError(message(problem))).then(job.reload));
  };
  const state = job.data?.state;
  const path = (what: string): string => at("jobs", details.job ?? "", what);
  const running = state === "running";
  const over = model.status !== "running";
  return (
    <>
      {known && running && <>
        <button type="button" class="button" disabled={busy} onClick={() => act(put("POST", path("checkpoint")), "A checkpoint is being saved.")}>Checkpoint</button>
        <button type="button" class="button" disabled={busy} onClick={() => ask("stop")}>Stop</button>
      </>}
      {known && state === "stopping" && <button type="button" class="button danger" disabled={busy} onClick={() => ask("kill")}>Kill</button>}
      {known && state && /stopped|failed|lost/.test(state) &&
        <button type="button" class="button primary" disabled={busy} onClick={() => act(put("POST", path("resume")), "The job is queued again.")}>Resume</button>}
      <button type="button" class="button" onClick={() => go(link("new", { from: details.run }))}>New job like this</button>
      <button type="button" class="button" onClick={() => ask("note")}>Tags and note</button>
      {admin && over && <button type="button" class="button danger" onClick={() => ask("remove")}>Remove</button>}
      {!known && !over && <span class="muted">Started outside the service: stop it with Ctrl-C where it runs.</span>}
      {done && <span class="muted" role="status">{done}</span>}
      <ErrorLine error={error ?? (job.data ? null : job.error)} />
      {question === "stop" && <Ask title="Stop this run?" yes="Save a checkpoint and stop" text="It saves a checkpoint, writes its summary and ends. Resume goes on from there."
        act={() => act(put("POST", path("stop"), { checkpoint: true }), "The run is stopping.")} close={() => ask(null)} />}
      {question === "kill" && <Ask title="Kill this run?" yes="Kill" danger text="It ends at once. What it learned since its last checkpoint is lost."
        act={() => act(put("POST", path("stop"), { checkpoint: false }), "The run was killed.")} close={() => ask(null)} />}
      {question === "remove" && <Ask title="Remove this run for good?" yes="Remove" danger text={<>The directory <code>{details.directory}</code> goes, with its checkpoints.</>}
        act={() => put("DELETE", at("runs", details.run)).then(() => go("#/runs"), (problem: unknown) => setError(message(problem)))} close={() => ask(null)} />}
      {question === "note" && <Ask title="Tags and note" yes="Save"
        text={<div class="form-lines">
          <label for="tags">Tags, divided by blanks</label><input id="tags" value={tags} onInput={(e) => setTags(e.currentTarget.value)} />
          <label for="note">Note</label><textarea id="note" rows={4} value={note} onInput={(e) => setNote(e.currentTarget.value)} />
        </div>}
        act={() => put("PUT", at("runs", details.run, "notes"), { tags: tags.split(/\s+/).filter(Boolean), note })
          .then(reload, (problem: unknown) => setError(message(problem)))} close={() => ask(null)} />}
    </>
  );
}
