import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { at, message, put } from "../api/client";
import { useEvery, useList, useLoaded, useMay, useServerEvents, useThrottled } from "../api/hooks";
import type { NodeRow, RunRow } from "../api/types";
import { bytes, duration, percent } from "../lib/format";
import { written } from "../lib/filter";
import { asked, link } from "../lib/route";
import { Ask, Badge, Empty, ErrorLine, Link, Page, Panel, Shown } from "../parts/misc";

/** A share from 0 to 1 as a bar with its number. */
function Gauge({ label, part, note, scarce }: { label: string; part: number | null; note: string; scarce?: boolean }): JSX.Element {
  const shown = part === null ? 0 : Math.min(1, Math.max(0, part));
  return (
    <div class="gauge">
      <span class="gauge-label">{label}</span>
      <span class="gauge-bar" role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(shown * 100)}>
        <span class={scarce && shown > 0.92 ? "full" : ""} style={{ width: `${shown * 100}%` }} />
      </span>
      <span class="gauge-note">{note}</span>
    </div>
  );
}

const used = (all: number | null, free: number | null): number | null => (all && free !== null ? (all - free) / all : null);

/** A node tells the names of its runs. The run itself where one that trains has this name, or else all that have it. */
function RunOfNode({ name, running }: { name: string; running: readonly RunRow[] }): JSX.Element {
  const named = running.filter((r) => r.name === name);
  return <Link to={named.length === 1 ? link(["runs", named[0]!.run]) : link("runs", { filter: written({ key: "name", operator: "=", value: name }) })}>{name}</Link>;
}

export function NodeCards({ nodes, remove }: { nodes: NodeRow[]; remove?: (address: string) => void }): JSX.Element {
  const names = [...new Set(nodes.flatMap((n) => n.runs))].sort().join("\n"); // who else trains meanwhile changes nothing
  const running = useLoaded<{ runs: RunRow[] }>(names ? `/runs${asked({ filter: "status=running", limit: 100 })}` : null);
  useEffect(running.reload, [names]);
  if (nodes.length === 0)
    return <Empty title="No node is registered.">Jobs run on this host unless they name nodes. Start <code>troupe node</code> on another machine and add its address: the form of a new job then offers it.</Empty>;
  return (
    <ul class="node-cards">
      {nodes.map((n) => {
        const memory = used(n.memory, n.memory_free);
        return (
          <li key={n.address} class={n.state === "dead" ? "node-card dead" : "node-card"}>
            <div class="node-head"><h3>{n.address}</h3><Badge state={n.state} /></div>
            <p class="muted">heard {n.heard_s === null ? "never" : `${duration(Math.round(n.heard_s))} ago`} · {n.cores ?? "?"} cores</p>
            <Gauge label="load" part={n.load !== null && n.cores ? n.load / n.cores : null} note={n.load === null ? "–" : `${n.load.toFixed(1)} of ${n.cores ?? "?"}`} />
            <Gauge label="memory" scarce part={memory} note={memory === null ? "–" : `${bytes((n.memory ?? 0) - (n.memory_free ?? 0))} of ${bytes(n.memory)}`} />
            {n.gpus.map((g, i) => (
              <div key={i} class="gpu"><p class="muted">GPU {i}: {g.name}</p>
                <Gauge label="load" part={g.load} note={percent(g.load, 0)} />
                <Gauge label="memory" scarce part={used(g.memory, g.memory_free)} note={g.memory_free === null ? "–" : `${bytes(g.memory - g.memory_free)} of ${bytes(g.memory)}`} />
              </div>
            ))}
            {n.error && <p class="bad">{n.error}</p>}
            {n.runs.length > 0 && <p class="node-runs">runs {n.runs.map((r) => <RunOfNode key={r} name={r} running={running.data?.runs ?? []} />)}</p>}
            {remove && <button type="button" class="button small" aria-label={`remove ${n.address}`} onClick={() => remove(n.address)}>Remove</button>}
          </li>
        );
      })}
    </ul>
  );
}

export function NodesPage(): JSX.Element {
  const nodes = useList<NodeRow>("/nodes");
  const admin = useMay("admin");
  const [address, setAddress] = useState("");
  const [error, setError] = useState<string | null>(null);
  const [leaving, setLeaving] = useState<string | null>(null);
  const again = useThrottled(nodes.reload, 1000);
  useServerEvents(["node"], again);
  useEvery(5000, again);
  const act = (work: Promise<unknown>): void => {
    work.then(() => { setError(null); setAddress(""); }, (problem: unknown) => setError(message(problem))).finally(nodes.reload);
  };
  return (
    <Page title="Nodes">
      {admin && (
        <form class="inline-form" onSubmit={(e) => { e.preventDefault(); if (address.trim()) act(put("POST", "/nodes", { address: address.trim() })); }}>
          <label for="address">Add a node</label>
          <input id="address" placeholder="10.0.0.11:4242" value={address} onInput={(e) => setAddress(e.currentTarget.value)} />
          <button type="submit" class="button" disabled={!address.trim()}>Add</button>
        </form>
      )}
      <ErrorLine error={error} />
      <Panel>
        <Shown from={nodes}>{(list) => <NodeCards nodes={list} {...(admin ? { remove: setLeaving } : {})} />}</Shown>
      </Panel>
      {leaving && <Ask title={`Remove ${leaving}?`} text="The form of a new job no longer offers it. The node itself goes on." yes="Remove"
        act={() => act(put("DELETE", at("nodes", leaving)))} close={() => setLeaving(null)} />}
    </Page>
  );
}
