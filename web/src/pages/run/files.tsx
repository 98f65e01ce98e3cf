// Log, configuration and checkpoints of a run.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { at, getText } from "../../api/client";
import { useList, useLoaded } from "../../api/hooks";
import type { Checkpoint } from "../../api/types";
import { bytes, count, duration, plain, when } from "../../lib/format";
import type { RunModel } from "../../lib/run_model";
import { Choice, Code, Empty, Panel, Shown } from "../../parts/misc";
import { Table, type Column } from "../../parts/table";

const kLevels = [{ id: "info", label: "All" }, { id: "warning", label: "Warnings" }, { id: "error", label: "Errors" }] as const;

export function LogTab({ run, model }: { run: string; model: RunModel }): JSX.Element {
  const [level, setLevel] = useState<"info" | "warning" | "error">("info");
  const notes = model.notes.filter((n) => level === "info" || n.level === level || (level === "warning" && n.level === "error"));
  return (
    <Panel title="Log" aside={<Choice label="Level" options={kLevels} now={level} choose={setLevel} />} wide>
      {notes.length === 0 ? <Empty title={level === "info" ? `${run} has written no note.` : "There are none."} />
        : <ol class="log" tabIndex={0} aria-label="notes">{notes.map((n, i) => (
            <li key={i} class={`log-${n.level}`}><span class="log-time">{duration(n.wall_s ?? n.t)}</span><span class="log-level">{n.level}</span><span>{n.text}</span></li>))}</ol>}
    </Panel>
  );
}

export function ConfigTab({ run }: { run: string }): JSX.Element {
  const config = useLoaded<string>(at("runs", run, "config"), getText);
  return (
    <Panel title="config.toml" wide>
      <Shown from={config}>{(text) => <Code label="the configuration" text={text} />}</Shown>
      <p class="muted">The whole resolved configuration: <code>troupe train config.toml</code> does the same run.</p>
    </Panel>
  );
}

export function CheckpointsTab({ run, directory }: { run: string; directory: string }): JSX.Element {
  const list = useList<Checkpoint>(at("runs", run, "checkpoints"));
  const columns: Column<Checkpoint>[] = [
    { key: "file", title: "file", wide: true, show: (c) => <code>{c.file}</code> },
    { key: "step", title: "step", numeric: true, show: (c) => count(c.step) },
    { key: "epoch", title: "epoch", numeric: true, show: (c) => plain(c.epoch, 4) },
    { key: "bytes", title: "size", numeric: true, show: (c) => bytes(c.bytes) },
    { key: "written", title: "written", show: (c) => when(c.written) },
  ];
  return (
    <Panel title="Checkpoints" wide>
      <Shown from={list}>{(rows) => rows.length === 0
        ? <Empty title="There is no checkpoint.">A run saves one at its end and every <code>run.checkpoint_every</code>.</Empty>
        : <><Table label="Checkpoints" columns={columns} rows={rows} id={(c) => c.file} />
            <p class="muted">Resume from the newest one on the command line:</p><Code label="the resume command" text={`troupe train --resume ${directory}`} /></>}</Shown>
    </Panel>
  );
}
