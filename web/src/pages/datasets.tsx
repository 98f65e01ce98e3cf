import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { address, at, message, put } from "../api/client";
import { useList, useLoaded, useMay } from "../api/hooks";
import type { DataSet, DataSetDetails } from "../api/types";
import { count, extents } from "../lib/format";
import { go, link } from "../lib/route";
import { Ask, Empty, ErrorLine, Figure, Link, Page, Panel, Shown } from "../parts/misc";
import { AddDataSet } from "./add_dataset";
import { Table, type Column } from "../parts/table";

const kSamples = 24;
const kTries = 2, kAgainMs = 500;

export function DataSetsPage(): JSX.Element {
  const sets = useList<DataSet>("/datasets");
  const admin = useMay("admin");
  const columns: Column<DataSet>[] = [
    { key: "name", title: "data set", show: (d) => <Link to={link(["datasets", d.name])} class="run-link">{d.name}</Link> },
    { key: "kind", title: "kind", show: (d) => d.kind },
    { key: "path", title: "path", wide: true, show: (d) => (d.uploaded ? "uploaded" : d.path ? <code>{d.path}</code> : "–") },
    { key: "resize", title: "resize", numeric: true, show: (d) => (d.resize > 0 ? count(d.resize) : "–") },
    { key: "used_by", title: "used by", numeric: true, show: (d) => (d.used_by.length ? `${count(d.used_by.length)} running` : "–") },
  ];
  return (
    <Page title="Data sets">
      <Shown from={sets}>{(list) => list.length === 0
        ? <Empty title="No data set is registered.">{admin ? "Add one below: a path on the server, or files that you send." : "An administrator can register one."} The set <code>glyphs</code> needs no data: the program draws it.</Empty>
        : <Table label="Data sets" columns={columns} rows={list} id={(d) => d.name} />}</Shown>
      {admin && <AddDataSet done={sets.reload} />}
    </Page>
  );
}

function Sample({ set, n }: { set: string; n: number }): JSX.Element {
  const [tries, setTries] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  useEffect(() => () => void (timer.current && clearTimeout(timer.current)), []);
  const again = (): void => void (timer.current = setTimeout(() => setTries((t) => t + 1), kAgainMs << tries)); // the service may be busy
  return (
    <li>{tries > kTries ? <span class="no-picture">no picture</span>
      : <img key={tries} src={address(at("datasets", set, "samples", `${n}.png`))} alt={`sample ${n}`} loading="lazy" width="64" height="64" onError={again} />}
      <span>{count(n)}</span></li>
  );
}

export function DataSetPage({ name }: { name: string }): JSX.Element {
  const set = useLoaded<DataSetDetails>(at("datasets", name));
  const admin = useMay("admin");
  const [asking, ask] = useState(false);
  const [first, setFirst] = useState(0);
  const [error, setError] = useState<string | null>(null);
  return (
    <Page title={name} above={<p class="crumb"><Link to="#/datasets">Data sets</Link> / <span>{name}</span></p>}
      actions={admin && <button type="button" class="button danger" onClick={() => ask(true)}>Remove</button>}>
      <ErrorLine error={error} />
      <Shown from={set}>{(d) => {
        const all = d.samples.train;
        return (
          <>
            <dl class="figures">
              <Figure label="Kind" value={d.kind} /><Figure label="Classes" value={count(d.classes.length)} />
              <Figure label="Samples, train" value={count(d.samples.train)} /><Figure label="Samples, test" value={count(d.samples.test)} />
              <Figure label="Shape" value={extents(d.shape)} />{d.resize > 0 && <Figure label="Resize" value={`${count(d.resize)} pixels`} />}
            </dl>
            {d.path && <p class="muted">{d.uploaded ? "uploaded to" : "at"} <code>{d.path}</code></p>}
            <Panel title="Training samples" aside={all > kSamples && <span class="actions">
              <button type="button" class="button small" disabled={first === 0} onClick={() => setFirst(Math.max(0, first - kSamples))}>Before</button>
              <button type="button" class="button small" disabled={first + kSamples >= all} onClick={() => setFirst(first + kSamples)}>Next</button></span>}>
              {all === 0 ? <Empty title="This set has no pictures to show." />
                : <ul class="samples">{Array.from({ length: Math.min(kSamples, all - first) }, (_, i) => first + i).map((n) => (
                    <Sample key={n} set={name} n={n} />))}</ul>}
            </Panel>
            {d.used_by.length > 0 && <p>Used by {d.used_by.map((r) => <Link key={r} to={link(["runs", r])}>{r}</Link>)}</p>}
          </>
        );
      }}</Shown>
      {asking && <Ask title={`Remove ${name} from the list?`} text={set.data?.uploaded ? "Its files are removed from the server." : "The files stay where they are."} yes="Remove" danger close={() => ask(false)}
        act={() => put("DELETE", at("datasets", name)).then(() => go("#/datasets"), (problem: unknown) => setError(message(problem)))} />}
    </Page>
  );
}
