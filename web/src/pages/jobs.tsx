import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { at, message, put } from "../api/client";
import { useEvery, useList, useMay, useServerEvents, useThrottled } from "../api/hooks";
import type { Job } from "../api/types";
import { ago, duration, when } from "../lib/format";
import { link } from "../lib/route";
import { Badge, Choice, Empty, ErrorLine, Link, Page, Shown } from "../parts/misc";
import { Table, ordered, type Column } from "../parts/table";

const kShow = [{ id: "all", label: "All" }, { id: "active", label: "Active" }, { id: "over", label: "Over" }] as const;

export const took = (job: Job): string => {
  if (!job.started) return "–";
  const end = job.ended ? Date.parse(job.ended) : Date.now();
  return duration(Math.max(0, Math.round((end - Date.parse(job.started)) / 1000)));
};

export function JobsPage(): JSX.Element {
  const jobs = useList<Job>("/jobs");
  const mayRun = useMay("run");
  const [show, setShow] = useState<(typeof kShow)[number]["id"]>("all");
  const [sort, setSort] = useState({ key: "submitted", descending: true });
  const [error, setError] = useState<string | null>(null);
  const again = useThrottled(jobs.reload, 400);
  useServerEvents(["job"], again);
  useEvery(10_000, again);
  const setPriority = (job: Job, text: string): void => {
    put("PATCH", at("jobs", job.id), { priority: Number(text) || 0 })
      .then(() => setError(null), (problem: unknown) => setError(message(problem))).finally(jobs.reload);
  };
  const columns: Column<Job>[] = [
    { key: "name", title: "job", sortable: true, wide: true, show: (j) => <Link to={link(["jobs", String(j.id)])} class="run-link">{j.name || `job ${j.id}`}</Link> },
    { key: "state", title: "state", sortable: true, show: (j) => <Badge state={j.state} /> },
    { key: "kind", title: "kind", sortable: true, show: (j) => j.kind },
    { key: "priority", title: "priority", numeric: true, sortable: true, show: (j) => mayRun && j.state === "queued"
      ? <input class="tiny" type="number" aria-label={`priority of ${j.name}`} value={j.priority} onChange={(e) => setPriority(j, e.currentTarget.value)} /> : j.priority },
    { key: "workers", title: "workers", numeric: true, sortable: true, show: (j) => j.workers ?? "–" },
    { key: "submitted", title: "submitted", sortable: true, show: (j) => <span class="nowrap" title={when(j.submitted)}>{ago(j.submitted)}</span> },
    { key: "took", title: "time", numeric: true, show: took },
    { key: "user", title: "user", sortable: true, show: (j) => j.user },
    { key: "run", title: "run", show: (j) => (j.run ? <Link to={link(["runs", j.run])}>{j.run}</Link> : j.error ? <span class="bad clip" title={j.error}>{j.error}</span> : "–") },
  ];
  return (
    <Page title="Jobs" actions={<><Choice label="Which jobs" options={kShow} now={show} choose={setShow} />{mayRun && <Link to="#/new" class="button primary">New job</Link>}</>}>
      <ErrorLine error={error} />
      <Shown from={jobs}>{(list) => {
        const rows = ordered(list.filter((j) => show === "all" || /queued|running|stopping/.test(j.state) === (show === "active")),
          (j) => (sort.key === "submitted" ? Date.parse(j.submitted) : j[sort.key as keyof Job]), sort.descending);
        return rows.length === 0
          ? <Empty title={show === "all" ? "There are no jobs yet." : "There are none of these."}>{mayRun ? <Link to="#/new">Submit one</Link> : "A user with the role run can submit one."}</Empty>
          : <Table label="Jobs" columns={columns} rows={rows} id={(j) => j.id} sort={sort} onSort={(key, descending) => setSort({ key, descending })} />;
      }}</Shown>
    </Page>
  );
}
