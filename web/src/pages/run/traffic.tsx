// Bytes by worker, by the member at the other end, and by purpose.
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { trafficMatrix } from "../../lib/accounts";
import { bytes, percent } from "../../lib/format";
import type { RunModel } from "../../lib/run_model";
import { Heatmap } from "../../parts/heatmap";
import { Choice, Empty, Panel } from "../../parts/misc";

const kNotes: Record<string, string> = {
  push: "to a server", pull: "from a server", exchange: "to a server and back", peer: "messages to other workers", collective: "reductions and broadcasts in a group",
};

export function TrafficTab({ model, version }: { model: RunModel; version: number }): JSX.Element {
  const [purpose, setPurpose] = useState("");
  const matrix = useMemo(() => trafficMatrix(model.workers.map((w) => w.traffic), purpose), [version, purpose, model]);
  const all = [...matrix.purposes.values()].reduce((n, v) => n + v, 0);
  const sent = model.workers.reduce((n, w) => n + w.bytes, 0);
  if (model.workers.length === 0) return <Empty title={model.partial ? "Loading…" : "No worker has reported yet."} />;
  if (all === 0)
    return <Empty title={sent > 0 ? "This run does not say where its bytes went." : "Nothing has been exchanged."}>{sent > 0 ? "Older programs counted all bytes of a worker together." : "The first exchange comes after some steps."}</Empty>;
  const value = (row: number, column: number): number => matrix.cells[row * matrix.columns.length + column] ?? 0;
  const options = [{ id: "", label: "all" }, ...[...matrix.purposes.keys()].sort().map((id) => ({ id, label: id }))];
  const columns = matrix.columns.map((name, c) => ({ name, sum: model.rows.reduce((n, _, r) => n + value(r, c), 0) })).sort((a, b) => b.sum - a.sum);
  return (
    <div class="columns uneven">
      <Panel title="Bytes per link" aside={options.length > 2 && <Choice label="Purpose" options={options} now={purpose} choose={setPurpose} />}>
        <Heatmap label="Bytes of each worker's exchanges with each member" rows={model.rows} columns={matrix.columns} value={value}
          say={(row, column) => `${model.rows[row] ?? ""} and ${matrix.columns[column] ?? ""}: ${bytes(value(row, column))}${purpose ? ` of ${purpose}` : ""}`}
          colour="exchange" show={bytes} version={`${version} ${purpose}`} caption={{ rows: "worker", columns: "with" }} />
      </Panel>
      <div>
        <Panel title="By purpose">
          <table class="facts"><thead><tr><th scope="col">purpose</th><th scope="col" class="number">bytes</th><th scope="col" class="number">of all</th><th scope="col" /></tr></thead>
            <tbody>{[...matrix.purposes].sort((a, b) => b[1] - a[1]).map(([what, n]) => (
              <tr key={what}><td>{what}</td><td class="number">{bytes(n)}</td><td class="number">{percent(n / all, 1)}</td><td class="muted">{kNotes[what] ?? ""}</td></tr>))}</tbody></table>
        </Panel>
        <Panel title="Busiest members">
          <table class="facts"><tbody>{columns.slice(0, 10).map((c) => (
            <tr key={c.name}><td>{c.name}</td><td class="number">{bytes(c.sum)}</td></tr>))}</tbody></table>
          <p class="muted">Payload, counted at the worker that asked, as <code>bytes</code> of a worker. Members that share memory send nothing; it is what would travel.</p>
        </Panel>
      </div>
    </div>
  );
}
