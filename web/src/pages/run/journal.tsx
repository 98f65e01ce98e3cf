// The run's recorded events, each with the command that leads there.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { at } from "../../api/client";
import { useLoaded } from "../../api/hooks";
import { count, when } from "../../lib/format";
import { asked } from "../../lib/route";
import { quoted } from "../../lib/shell";
import { Code, Empty, Panel, Shown } from "../../parts/misc";
import { Table, type Column } from "../../parts/table";

interface Found {
  at: string;
  program: string;
}

export interface JournalEvent {
  record: number;
  member: string | null;
  event: number | null;
  text: string;
  step: number | null;
  slot: string | null;
  hash: string | null;
  until: string | null;
  replay: (Found & { result: "reached" | "differs" }) | null;
}

export interface Journal {
  segments: number[];
  segment: number | null;
  events: JournalEvent[];
  next: number | null;
  complete: boolean;
  cut_off: boolean;
  replay: (Found & { hashes: number; complete: boolean; difference: { member: string; event: number; message: string } | null }) | null;
}

const kPart = 200;

/** What the newest replay that reached an event says of it: of a hash, whether it was the same. */
function Verdict({ of }: { of: JournalEvent }): JSX.Element {
  if (of.until === null) return <>–</>;
  if (!of.replay) return <span class="muted">{of.hash ? "not replayed" : "–"}</span>;
  const said = of.replay.result === "differs" ? "differs" : of.hash ? "same hash" : "reached";
  return <span class={`nowrap verdict-${said === "differs" ? "bad" : of.hash ? "good" : "calm"}`} title={`replayed ${when(of.replay.at)}, Troupe ${of.replay.program}`}>
    <span aria-hidden="true">{said === "differs" ? "✗ " : of.hash ? "✓ " : ""}</span>{said}</span>;
}

function sentence(of: JournalEvent): string {
  if (!of.replay) return "No replay has reached this event yet.";
  const by = `The replay of ${when(of.replay.at)} (Troupe ${of.replay.program})`;
  if (of.replay.result === "differs") return `${by} found another ${of.hash ? "hash" : "event"} here.`;
  return of.hash ? `${by} reached the same hash.` : `${by} reached this event through the same ones before.`;
}

/** The newest replay of the segment, in a line. */
function LastReplay({ of, segment }: { of: NonNullable<Journal["replay"]>; segment: number }): JSX.Element {
  const d = of.difference;
  return <p class={d ? "bad" : "muted"}>Replayed {when(of.at)}, Troupe {of.program}: {d ? `it differs at event ${count(d.event)} of ${d.member}: ${d.message}`
    : `${of.hashes === 0 ? "no hash compared" : of.hashes === 1 ? "1 hash, as recorded" : `${count(of.hashes)} hashes, all as recorded`}, ${of.complete ? `to the end of segment ${segment}` : "not to the segment's end"}.`}</p>;
}

export function JournalTab({ run, directory, workers, servers }: { run: string; directory: string; workers: number; servers: number }): JSX.Element {
  const [segment, setSegment] = useState(0);
  const [member, setMember] = useState("");
  const [step, setStep] = useState("");
  const [from, setFrom] = useState(0);
  const [picked, choose] = useState<JournalEvent | null>(null);
  const start = (): void => setFrom(0);
  const wanted = /^\d+$/.test(step) ? step : "";
  const loaded = useLoaded<Journal>(at("runs", run, "journal") + asked({ segment: segment || "", member, step: from ? "" : wanted, from: from || "", limit: kPart }));
  const chosen = loaded.data?.events.find((e) => e.until !== null && e.until === picked?.until) ?? picked; // as it is now
  const columns: Column<JournalEvent>[] = [
    { key: "record", title: "record", numeric: true, show: (e) => count(e.record) },
    { key: "member", title: "member", show: (e) => e.member ?? "–" },
    { key: "event", title: "event", numeric: true, help: "among the events and hashes of its member", show: (e) => (e.event === null ? "–" : count(e.event)) },
    { key: "text", title: "what", wide: true, show: (e) => e.text },
    { key: "replay", title: "replay", help: "what the newest replay that reached it found", show: (e) => <Verdict of={e} /> },
    { key: "go", title: "", show: (e) => e.until && <button type="button" class="button small" aria-pressed={chosen?.until === e.until} aria-label={`replay up to ${e.until}`} onClick={() => choose(e)}>Replay</button> },
  ];
  const members = [...Array.from({ length: workers }, (_, i) => `worker${i}`), ...Array.from({ length: servers }, (_, i) => `server${i}`)];
  return (
    <>
      <p class="lead">Every decision that the run's numbers depend on, in the order in which it was written. A replay up to any of them ends in the very state that the run had there.</p>
      <div class="toolbar">
        <label class="field"><span class="field-name">member</span>
          <select value={member} onChange={(e) => { setMember(e.currentTarget.value); start(); }}>
            <option value="">all</option>{members.map((m) => <option key={m} value={m}>{m}</option>)}</select></label>
        <label class="field"><span class="field-name">from step</span>
          <input type="number" min="0" step="1" value={step} onInput={(e) => { setStep(e.currentTarget.value); start(); }} /></label>
        {loaded.data && loaded.data.segments.length > 1 && <label class="field"><span class="field-name">segment</span>
          <select value={String(loaded.data.segment)} onChange={(e) => { setSegment(Number(e.currentTarget.value)); start(); }}>
            {loaded.data.segments.map((s) => <option key={s} value={String(s)}>{s}</option>)}</select></label>}
        <button type="button" class="button" onClick={loaded.reload}>Reload</button>
      </div>
      {chosen?.until && <Panel title={`Up to event ${count(chosen.event)} of ${chosen.member}`} wide>
        <Code label="the command that leads there" text={`troupe replay ${quoted(directory || run)} --until '${chosen.until}'`} />
        <p class="muted">{chosen.hash ? <>The run recorded the hash <code>{chosen.hash}</code> of {chosen.slot} here: the replay ends there only if it comes to the same.</>
          : "It compares every hash recorded before, and prints those of the member's vectors there."} {sentence(chosen)}</p>
      </Panel>}
      <Shown from={loaded}>
        {(journal) => journal.segments.length === 0
          ? <Empty title="The run keeps no journal.">Set <code>run.journal</code> to <code>"all"</code> or a size.</Empty>
          : <Panel title={`Segment ${journal.segment}`} aside={<span class="muted">{journal.complete ? "to its end" : journal.cut_off ? "no more of it is read" : journal.next === null ? "so far" : ""}</span>} wide>
            {journal.replay ? <LastReplay of={journal.replay} segment={journal.segment!} />
              : <p class="muted">No replay of this segment has been kept. <code>troupe replay</code> keeps what it finds in the run's directory.</p>}
            {journal.events.length === 0 ? <p class="muted">No event so far.</p>
              : <div class="one-line"><Table label="Events of the journal" columns={columns} rows={journal.events} id={(e) => e.record} chosen={(e) => e.until !== null && e.until === chosen?.until} /></div>}
            <div class="pager">
              {from > 0 && <button type="button" class="button" onClick={start}>From the beginning</button>}
              {journal.next !== null && <button type="button" class="button" onClick={() => setFrom(journal.next!)}>Next {kPart}</button>}
            </div>
          </Panel>}
      </Shown>
    </>
  );
}
