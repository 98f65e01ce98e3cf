import type { JSX } from "preact";
import { address } from "../api/client";
import { useList } from "../api/hooks";
import { Page, Panel, Shown } from "../parts/misc";

const kKeys: [string, string][] = [
  ["/", "to the filter, or to the table of runs"], ["Tab, Shift Tab", "from one control to the next"], ["← → ↑ ↓", "over the cells of a matrix; between tabs"],
  ["drag in a chart", "enlarges a stretch; a double click shows all again"], ["Escape", "closes a question or the menu"],
];
const kFilters: [string, string][] = [
  ["strategy=easgd accuracy>0.99", "numbers as numbers; conditions that all hold"], ["lr<0.01 tau=4", "the last part of a key is enough where only one key ends so"],
  ["status=running", "running, done, diverged, interrupted, failed, killed"], ["started>=2026-01-02", "local time of the host where the run began"],
  ["tag=paper tag!=old", "tags that the run has, or has not"], ['note~"section 4"', "the text contains the value; one with blanks stands in quotes"],
  ["time.wait_s>10", "any number of summary.json"],
];
const kWords: [string, string][] = [
  ["compute", "forward, backward, and the optimizer with the strategy's arithmetic"], ["exchange", "a worker is blocked while its exchange is worked on"],
  ["wait", "a worker is blocked while it waits for other members"], ["load", "a worker is blocked while it waits for its next batch"],
  ["staleness", "of an update: versions of the centre that its worker had not seen when it came"],
  ["training time", "the time axis of curves: without start-up, evaluation and checkpoints"],
  ["passed over", "steps whose leases were given up; other workers train those samples"],
];
const kCommands: [string, string][] = [
  ["troupe runs list strategy=easgd 'accuracy>0.99'", "the same filters in a terminal"], ["troupe replay RUN", "executes a run again, in the recorded order, and compares every hash"],
  ["troupe train --resume RUN", "goes on from the newest checkpoint"], ["troupe plot RUN", "the same pictures as files"],
  ["troupe help train", "all options, with their defaults"],
];

const Pairs = ({ rows, code }: { rows: [string, string][]; code?: boolean }): JSX.Element => (
  <table class="facts"><tbody>{rows.map(([what, text]) => <tr key={what}><th scope="row">{code ? <code>{what}</code> : what}</th><td>{text}</td></tr>)}</tbody></table>
);

export function HelpPage(): JSX.Element {
  const strategies = useList<{ name: string; summary: string }>("/strategies");
  return (
    <Page title="Help">
      <div class="columns">
        <Panel title="Filters of runs"><Pairs rows={kFilters} code /></Panel>
        <Panel title="Words"><Pairs rows={kWords} /></Panel>
        <Panel title="Keys"><table class="facts"><tbody>{kKeys.map(([keys, text]) => <tr key={keys}><th scope="row"><kbd>{keys}</kbd></th><td>{text}</td></tr>)}</tbody></table></Panel>
        <Panel title="In a terminal"><Pairs rows={kCommands} code /></Panel>
        <Panel title="Strategies"><Shown from={strategies}>{(list) => <Pairs rows={list.map((s) => [s.name, s.summary])} />}</Shown></Panel>
        <Panel title="For programs">
          <p>Everything here is an HTTP interface: <a href={address("/openapi.json")}>openapi.json</a>. A program sends the header <code>Authorization: Bearer TOKEN</code>.</p>
          <p>The dashboard contains Preact and uPlot: <a href="/licences.txt">their licences</a>.</p>
          <p>The program's documentation is in <code>docs/</code> of its sources: <code>runs.md</code> on finding runs, <code>service.md</code> on this service, <code>strategies/</code>, <code>formats/</code>.</p>
        </Panel>
      </div>
    </Page>
  );
}
