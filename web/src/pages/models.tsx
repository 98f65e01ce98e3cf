import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { at } from "../api/client";
import { useList, useLoaded } from "../api/hooks";
import type { Layer, Model, ModelDetails } from "../api/types";
import { bytes, count, extents, percent, short } from "../lib/format";
import { asked, link, setQuery } from "../lib/route";
import { Figure, Link, Page, Panel, Shown } from "../parts/misc";
import { Table, ordered, type Column } from "../parts/table";

export function ModelsPage(): JSX.Element {
  const models = useList<Model>("/models");
  const [sort, setSort] = useState({ key: "name", descending: false });
  const columns: Column<Model>[] = [
    { key: "name", title: "model", sortable: true, show: (m) => <Link to={link(["models", m.name])} class="run-link">{m.name}</Link> },
    { key: "parameters", title: "parameters", numeric: true, sortable: true, show: (m) => count(m.parameters) },
    { key: "input", title: "input", show: (m) => <span class="nowrap">{extents(m.input)}</span> },
    { key: "summary", title: "what it is", wide: true, show: (m) => m.summary },
  ];
  return (
    <Page title="Models">
      <Shown from={models}>{(list) => <Table label="Models" columns={columns} id={(m) => m.name} sort={sort} onSort={(key, descending) => setSort({ key, descending })}
        rows={ordered(list, (m) => m[sort.key as keyof Model], sort.descending)} />}</Shown>
      <p class="muted">A network of your own is a list of layers in the configuration: <code>model.layers</code>.</p>
    </Page>
  );
}

export function ModelPage({ name, input }: { name: string; input: string }): JSX.Element {
  const [typed, setTyped] = useState(input);
  const model = useLoaded<ModelDetails>(`${at("models", name)}${asked({ input })}`);
  const columns = (m: ModelDetails): Column<Layer>[] => {
    const part = (key: "parameters" | "flops") => (l: Layer): JSX.Element => {
      const most = Math.max(1, ...m.layers.map((x) => x[key]));
      return <span class="bar-cell" title={percent(l[key] / Math.max(1, m[key]), 1)}><span class="bar-back" style={{ width: `${(l[key] / most) * 100}%` }} /><span>{key === "flops" ? short(l[key]) : count(l[key])}</span></span>;
    };
    return [
      { key: "name", title: "layer", show: (l) => l.name },
      { key: "kind", title: "type", show: (l) => l.kind },
      { key: "shape", title: "output", numeric: true, show: (l) => <span class="nowrap">{extents(l.shape)}</span> },
      { key: "parameters", title: "parameters", numeric: true, show: part("parameters") },
      { key: "flops", title: "flops per sample", numeric: true, help: "forward and backward", show: part("flops") },
    ];
  };
  return (
    <Page title={name} above={<p class="crumb"><Link to="#/models">Models</Link> / <span>{name}</span></p>}>
      <form class="inline-form" onSubmit={(e) => { e.preventDefault(); setQuery({ input: typed.trim() }); }}>
        <label for="input">Input</label>
        <input id="input" class="narrow" placeholder={model.data ? extents(model.data.input).replaceAll("×", "x") : "3x224x224"} value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
        <button type="submit" class="button">Show</button>
      </form>
      <Shown from={model}>{(m) => (
        <>
          <p class="lead">{m.summary}</p>
          <dl class="figures">
            <Figure label="Parameters" value={short(m.parameters)} note={`${count(m.parameters)}; ${bytes(m.parameters * 4)} in fp32`} />
            <Figure label="Flops per sample, training" value={short(m.flops)} />
            <Figure label="Input" value={extents(m.input)} />
            <Figure label="Layers" value={count(m.layers.length)} />
          </dl>
          <Panel title="Layers" wide><Table label={`Layers of ${name}`} columns={columns(m)} rows={m.layers} id={(l) => l.name} /></Panel>
        </>
      )}</Shown>
    </Page>
  );
}
