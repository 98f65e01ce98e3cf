import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useEvery, useLoaded, useServerEvents, useThrottled } from "../api/hooks";
import type { RunRow } from "../api/types";
import { holds, parsed, toggled, type Condition } from "../lib/filter";
import { cell, count, plural, when } from "../lib/format";
import { asked, go, link, setQuery } from "../lib/route";
import { Badge, Empty, Link, Page, Shown } from "../parts/misc";
import { Table, type Column } from "../parts/table";

const kPage = 100;
const kMostCompared = 20;
const kQuick: { label: string; condition: Condition }[] = ["running", "done", "failed", "diverged", "interrupted"].map((value) => (
  { label: value, condition: { key: "status", operator: "=", value } }));
const kNumbers: [string, string][] = [["workers", "workers"], ["epochs", "epochs"], ["accuracy", "accuracy"], ["loss", "loss"],
  ["train_loss", "train loss"], ["images_per_s", "images/s"], ["wall_s", "time"]];

interface Answer {
  runs: RunRow[];
  total: number;
}

export function RunsPage({ query }: { query: URLSearchParams }): JSX.Element {
  const filter = query.get("filter") ?? "";
  const sort = query.get("sort") ?? "";
  const descending = query.get("descending") === "1";
  const offset = Math.max(0, Number(query.get("offset")) || 0);
  const extra = (query.get("columns") ?? "").split(",").map((c) => c.trim()).filter(Boolean);
  const [typed, setTyped] = useState(filter);
  const [chosen, setChosen] = useState<string[]>([]);
  useEffect(() => setTyped(filter), [filter]);
  const wrong = parsed(typed);
  const answer = useLoaded<Answer>(`/runs${asked({ filter, sort, descending: sort ? (descending ? "1" : "0") : "", limit: kPage, offset, columns: extra.join() })}`);
  const again = useThrottled(answer.reload, 1000);
  useServerEvents(["run"], again);
  useEvery(15_000, again);
  const submit = (text: string): void => setQuery({ filter: text.trim(), offset: "" });
  const toggle = (run: string): void =>
    setChosen((now) => (now.includes(run) ? now.filter((r) => r !== run) : [...now, run].slice(-kMostCompared)));
  const tag = (value: string): void => submit(toggled(filter, { key: "tag", operator: "=", value }));

  const columns: Column<RunRow>[] = [
    { key: "choose", title: "", show: (r) => <input type="checkbox" aria-label={`compare ${r.run}`} checked={chosen.includes(r.run)} onChange={() => toggle(r.run)} /> },
    { key: "run", title: "run", sortable: true, wide: true, show: (r) => <Link to={link(["runs", r.run])} class="run-link">{r.run}</Link> },
    { key: "status", title: "status", sortable: true, show: (r) => <Badge state={r.status} /> },
    { key: "started", title: "started", sortable: true, show: (r) => <span class="nowrap">{when(r.started)}</span> },
    ...["strategy", "model", "dataset"].map((key): Column<RunRow> => ({
      key, title: key === "dataset" ? "data set" : key, sortable: true,
      show: (r) => typeof r[key] === "string" && r[key] !== ""
        ? <button type="button" class="link-button" title={`only ${key}=${r[key] as string}`}
            onClick={() => submit(toggled(filter, { key, operator: "=", value: r[key] as string }))}>{r[key] as string}</button>
        : "–",
    })),
    ...kNumbers.map(([key, title]): Column<RunRow> => ({ key, title, sortable: true, numeric: true, show: (r) => cell(key, r[key]) })),
    ...extra.map((key): Column<RunRow> => ({ key, title: key, sortable: true, numeric: true, show: (r) => cell(key, r[key]) })),
    { key: "tags", title: "tags", show: (r) => r.tags.map((t) => <button type="button" class="tag" key={t} onClick={() => tag(t)}>{t}</button>) },
  ];
  const total = answer.data?.total ?? 0;
  return (
    <Page title="Runs" actions={
      <>
        {chosen.length > 0 && <button type="button" class="button" onClick={() => setChosen([])}>Clear {chosen.length}</button>}
        <button type="button" class="button primary" disabled={chosen.length < 2} onClick={() => go(link("compare", { run: chosen }))}>
          {chosen.length < 2 ? "Choose runs to compare" : `Compare ${plural(chosen.length, "run")}`}</button>
      </>}>
      <form class="filter" role="search" onSubmit={(e) => { e.preventDefault(); submit(typed); }}>
        <label for="filter">Filter</label>
        <input id="filter" data-filter spellcheck={false} autocomplete="off" placeholder="strategy=easgd accuracy>0.99 tag=paper"
          value={typed} aria-invalid={"error" in wrong} aria-describedby="filter-help" onInput={(e) => setTyped(e.currentTarget.value)} />
        <label for="columns">Columns</label>
        <input id="columns" class="narrow" spellcheck={false} placeholder="lr,tau" value={extra.join(",")}
          onChange={(e) => setQuery({ columns: e.currentTarget.value.replace(/\s/g, "") })} />
        <button type="submit" class="button">Apply</button>
      </form>
      <p id="filter-help" class="filter-help">
        {"error" in wrong ? <span class="bad">{wrong.error}</span>
          : <span class="muted">KEY OPERATOR VALUE, with = != &lt; &lt;= &gt; &gt;= ~ · <Link to={link("help")}>all keys</Link> · <kbd>/</kbd> comes here</span>}
        <span class="quick" role="group" aria-label="by status">{kQuick.map((q) => (
          <button type="button" key={q.label} class="chip" aria-pressed={holds(filter, q.condition)} onClick={() => submit(toggled(filter, q.condition))}>{q.label}</button>))}</span>
      </p>
      <Shown from={answer}>{({ runs }) => runs.length === 0
        ? (filter
          ? <Empty title="No run fits this filter."><button type="button" class="button" onClick={() => submit("")}>Show all runs</button></Empty>
          : <Empty title="There are no runs yet.">Start one: <code>troupe train configs/glyphs-easgd.toml</code> needs no data. Or <Link to="#/new">submit a job</Link>.</Empty>)
        : <>
            <Table label="Runs" columns={columns} rows={runs} id={(r) => r.run} chosen={(r) => chosen.includes(r.run)}
              {...(sort ? { sort: { key: sort, descending } } : {})}
              onSort={(key, down) => setQuery({ sort: key, descending: down ? "1" : "", offset: "" })} />
            <nav class="pager" aria-label="Pages of runs">
              <span class="muted">{count(offset + 1)}–{count(offset + runs.length)} of {count(total)}</span>
              <button type="button" class="button small" disabled={offset === 0} onClick={() => setQuery({ offset: offset > kPage ? offset - kPage : "" })}>Newer</button>
              <button type="button" class="button small" disabled={offset + runs.length >= total} onClick={() => setQuery({ offset: offset + kPage })}>Older</button>
            </nav>
          </>}</Shown>
    </Page>
  );
}
