import type { JSX } from "preact";
import { useContext } from "preact/hooks";
import { ServerContext, useEvery, useList, useLoaded, useMay, useServerEvents, useThrottled } from "../api/hooks";
import type { Job, NodeRow, RunRow } from "../api/types";
import { ago, percent, perSecond, plain, plural } from "../lib/format";
import { asked, link } from "../lib/route";
import { Badge, Empty, Figure, Link, Page, Panel, Shown } from "../parts/misc";
import { NodeCards } from "./nodes";

interface Runs {
  runs: RunRow[];
  total: number;
}

function RunList({ runs }: { runs: RunRow[] }): JSX.Element {
  return (
    <ul class="run-list aligned">
      {runs.map((r) => (
        <li key={r.run}>
          <span class="run-what"><Link to={link(["runs", r.run])} class="run-link">{r.name || r.run}</Link>
            <span class="muted">{r.strategy ?? "?"} · {r.model ?? "?"}{typeof r.workers === "number" && ` · ${plural(r.workers, "worker")}`}</span></span>
          <Badge state={r.status} />
          <span class="run-numbers">{percent(r.accuracy)} <span class="muted">accuracy</span></span>
          <span class="run-numbers">{plain(r.loss)} <span class="muted">loss</span></span>
          <span class="run-numbers">{perSecond(r.images_per_s)}</span>
        </li>
      ))}
    </ul>
  );
}

export function HomePage(): JSX.Element {
  const server = useContext(ServerContext);
  const running = useLoaded<Runs>(`/runs${asked({ filter: "status=running", limit: 20 })}`);
  const recent = useLoaded<Runs>(`/runs${asked({ limit: 8 })}`);
  const jobs = useList<Job>("/jobs");
  const nodes = useList<NodeRow>("/nodes");
  const mayRun = useMay("run");
  const runsAgain = useThrottled(() => { running.reload(); recent.reload(); }, 1000);
  const jobsAgain = useThrottled(jobs.reload, 500);
  const nodesAgain = useThrottled(nodes.reload, 2000);
  useServerEvents(["run", "job", "node"], (kind) => (kind === "run" ? runsAgain() : kind === "job" ? jobsAgain() : nodesAgain()));
  useEvery(15_000, () => { runsAgain(); jobsAgain(); nodesAgain(); });
  const active = jobs.data?.filter((j) => /queued|running|stopping/.test(j.state)) ?? [];
  return (
    <Page title="Home" actions={mayRun && <Link to="#/new" class="button primary">New job</Link>}>
      <dl class="figures">
        <Figure label="Running now" value={running.data ? running.data.total : "–"} note="runs" />
        <Figure label="Active jobs" value={jobs.data ? active.length : "–"} note={server ? `${plural(server.slots.total, "slot")}` : ""} />
        <Figure label="Nodes alive" value={nodes.data ? nodes.data.filter((n) => n.state === "alive").length : "–"}
          note={nodes.data ? `of ${nodes.data.length}` : ""} />
        <Figure label="All runs" value={recent.data ? recent.data.total : "–"} />
      </dl>
      <div class="columns">
        <Panel title="Active jobs" aside={<Link to="#/jobs">All jobs</Link>}>
          <Shown from={jobs}>{() => active.length === 0
            ? <Empty title="Nothing is queued or running.">{mayRun ? <Link to="#/new">Submit a job</Link> : "Jobs appear here as soon as someone submits one."}</Empty>
            : <ul class="run-list">{active.map((j) => (
                <li key={j.id}><Link to={link(["jobs", String(j.id)])} class="run-link">{j.name || `job ${j.id}`}</Link><Badge state={j.state} />
                  <span class="muted">{j.kind} · {j.user} · submitted {ago(j.submitted)}</span>
                  {j.run && <Link to={link(["runs", j.run])}>watch</Link>}</li>))}</ul>}</Shown>
        </Panel>
        <Panel title="Running now" aside={<Link to={link("runs", { filter: "status=running" })}>In the table</Link>}>
          <Shown from={running}>{({ runs }) => runs.length === 0
            ? <Empty title="No run trains at the moment.">A run that <code>troupe train</code> starts in this directory appears here by itself.</Empty>
            : <RunList runs={runs} />}</Shown>
        </Panel>
        <Panel title="Newest runs" aside={<Link to="#/runs">All runs</Link>}>
          <Shown from={recent}>{({ runs }) => runs.length === 0
            ? <Empty title="There are no runs yet.">Start one: <code>troupe train configs/glyphs-easgd.toml</code> needs no data.</Empty>
            : <RunList runs={runs} />}</Shown>
        </Panel>
        <Panel title="Nodes" aside={<Link to="#/nodes">All nodes</Link>}>
          <Shown from={nodes}>{(list) => <NodeCards nodes={list.slice(0, 6)} />}</Shown>
        </Panel>
      </div>
      {server && <p class="muted">Runs are in <code>{server.directory}</code>.</p>}
    </Page>
  );
}
