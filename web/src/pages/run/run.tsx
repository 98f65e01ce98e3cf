// A run: its head, and a tab for each question.
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { address, at } from "../../api/client";
import { useEvery, useServerEvents } from "../../api/hooks";
import { count, duration, percent, perSecond, plain, short, when } from "../../lib/format";
import { link, setQuery } from "../../lib/route";
import { Badge, ErrorLine, Figure, Link, Page, Progress, Tabs, type Tab } from "../../parts/misc";
import { RunControls } from "./controls";
import { ConfigTab, CheckpointsTab, LogTab } from "./files";
import { ForecastTab } from "./forecast";
import { JournalTab } from "./journal";
import { MembersTab } from "./members";
import { Overview } from "./overview";
import { TrafficTab } from "./traffic";
import { useRun, type LiveRun } from "./use_run";
import { StalenessTab, WaitsTab, WorkersTab } from "./workers";

const kTabs: Tab[] = [
  { id: "overview", label: "Overview" }, { id: "workers", label: "Workers" }, { id: "waits", label: "Waits" },
  { id: "staleness", label: "Staleness" }, { id: "members", label: "Members" }, { id: "traffic", label: "Traffic" }, { id: "forecast", label: "Forecast" },
  { id: "journal", label: "Journal" }, { id: "log", label: "Log" }, { id: "config", label: "Config" }, { id: "checkpoints", label: "Checkpoints" },
];

const kConnections: Record<LiveRun["connection"], string> = {
  live: "live", connecting: "connecting…", waiting: "connection lost, trying again…", over: "",
};

const kAgainMs = 2000;
const kMostTries = 15; // to see the end of a run that has ended: a disk may have been full
const kSummed = /^(done|failed|diverged|interrupted)$/; // such a run has a summary

export function RunPage({ run, tab }: { run: string; tab: string }): JSX.Element {
  const live = useRun(run);
  const { details, model } = live;
  const tries = useRef(0);
  useServerEvents(["run"], (_, row) => {
    const changed = row as { run?: string; status?: string; job?: number | null } | null | undefined;
    if (changed && changed.run !== run) return;
    const other = changed === null || (changed !== undefined && changed.status !== model?.status); // resumed, or it was copied here meanwhile
    const adopted = changed && typeof changed.job === "number" && details && details.job === null; // the job's run was found before the job knew it
    if ((other && model && model.status !== "running") || adopted) live.reload();
  });
  useEvery(kAgainMs, () => {
    if (live.error) live.again(); // a job's run may not be there yet, or the service not for a moment
    else if (details && model && model.status !== "running") { // it ended a moment ago, and not all of that was there
      const late = details.status === "running" || (!details.summary && kSummed.test(model.status));
      if (late && tries.current < kMostTries) {
        tries.current += 1;
        live.again();
      }
    } else tries.current = 0;
  });
  if (!details || !model)
    return <Page title={run}><ErrorLine error={live.error} retry={live.reload} />{!live.error && <p class="loading" role="status">Loading…</p>}</Page>;
  const summary = details.summary;
  const accuracy = model.last("test.accuracy") ?? summary?.test?.accuracy ?? null;
  const loss = model.last("test.loss") ?? summary?.test?.loss ?? null;
  const now = kTabs.some((t) => t.id === tab) ? tab : "overview";
  const trained = Math.max(model.last("lr") === null ? 0 : model.curves.get("lr")!.seconds.slice(-1)[0]!, model.curves.get("step.loss")?.seconds.slice(-1)[0] ?? 0);
  return (
    <Page title={details.name || run} above={<p class="crumb"><Link to="#/runs">Runs</Link> / <span>{run}</span></p>}
      actions={<RunControls details={details} model={model} reload={live.reload} />}>
      <p class="run-line">
        <Badge state={model.status} />
        {kConnections[live.connection] && <span class={`connection connection-${live.connection}`} role="status">{kConnections[live.connection]}</span>}
        <span class="muted">started {when(details.started)} · {String(details.options["strategy.name"] ?? "?")} · {String(details.options["model.name"] ?? "?")}
          {" on "}{String(details.options["data.name"] ?? "?")} · {short(model.parameters)} parameters</span>
        {details.job !== null && <Link to={link(["jobs", String(details.job)])}>job {details.job}</Link>}
        {details.tags.map((t) => <Link key={t} class="tag" to={link("runs", { filter: `tag=${t}` })}>{t}</Link>)}
      </p>
      <ErrorLine error={live.error} retry={live.reload} />
      <ErrorLine error={model.error || null} />
      <dl class="figures">
        <Figure label="Epoch" value={<>{plain(model.done, 3)}<span class="muted"> of {plain(model.epochs)}</span></>}
          note={<Progress part={model.epochs > 0 ? model.done / model.epochs : 0} label="epochs done" />} />
        <Figure label="Test accuracy" value={percent(accuracy)} />
        <Figure label="Test loss" value={plain(loss, 4)} />
        <Figure label={model.status === "running" ? "Samples per second" : "Samples per second, training"} value={perSecond(model.samplesPerSecond)} />
        <Figure label="Training time" value={duration(trained || summary?.wall_s)} />
        <Figure label="Steps" value={count(model.steps)} note={`${count(model.samples)} samples`} />
      </dl>
      <Tabs label="About this run" tabs={kTabs} now={now} choose={(id) => setQuery({ tab: id === "overview" ? "" : id })} />
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${now}`}>
        {now === "overview" && <Overview details={details} model={model} version={live.version} />}
        {now === "workers" && <WorkersTab model={model} />}
        {now === "waits" && <WaitsTab model={model} version={live.version} />}
        {now === "staleness" && <StalenessTab model={model} version={live.version} />}
        {now === "members" && <MembersTab model={model} version={live.version} />}
        {now === "traffic" && <TrafficTab model={model} version={live.version} />}
        {now === "forecast" && <ForecastTab run={run} own={String(details.options["strategy.name"] ?? "")} running={model.status === "running"} />}
        {now === "journal" && <JournalTab run={run} directory={details.directory} workers={model.workers.length} servers={model.servers} />}
        {now === "log" && <LogTab run={run} model={model} />}
        {now === "config" && <ConfigTab run={run} />}
        {now === "checkpoints" && <CheckpointsTab run={run} directory={details.directory} />}
      </div>
      <p class="muted run-foot">
        <a href={address(at("runs", run, "export.zip"))} download>Download the directory</a> (zip, without checkpoints) · <code>{details.directory}</code>
      </p>
    </Page>
  );
}
