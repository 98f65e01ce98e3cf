// A new job: a form made from the table of options, or TOML as it is; checked while the user writes.
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { at, getText, message, put } from "../api/client";
import { useEvery, useList, useLoaded, useMay, useServerEvents } from "../api/hooks";
import { mayPass } from "../api/loader";
import type { Check, DataSet, Job, Model, NodeRow, Option } from "../api/types";
import { go, link } from "../lib/route";
import { changed, found, inForce, range, read, shown, words, type Values } from "../lib/options";
import { plural } from "../lib/format";
import { Choice, Code, Empty, ErrorLine, Page, Panel, Shown } from "../parts/misc";

const kPauseMs = 300, kAgainMs = 2000, kNodesMs = 10_000;
const kStart: Values = { "run.name": "glyphs-easgd", "model.name": "lenet", "data.name": "glyphs", "strategy.name": "easgd", "train.lr": "auto", "train.optimizer": "momentum", "run.epochs": 3, "cluster.workers": 2 };
const kBasics = ["run.name", "run.epochs", "model.name", "data.name", "data.path", "data.batch", "train.optimizer", "train.lr", "strategy.name", "cluster.workers", "cluster.device"];
const kKinds = [{ id: "train", label: "Train" }, { id: "grid", label: "Grid" }, { id: "launch", label: "Own program" }] as const;
type Kind = (typeof kKinds)[number]["id"];

interface Answers {
  options: Option[];
  values: Values;
  errors: Map<string, string>;
  change: (key: string, value: unknown) => void;
  reset: (key: string) => void;
}

function Field({ o, whole, values, errors, change, reset }: { o: Option; whole?: boolean } & Answers): JSX.Element {
  const set = o.key in values;
  const value = set ? values[o.key] : o.default;
  const error = errors.get(o.key);
  const name = whole ? o.key : o.key.slice(o.section.length + 1) || o.key;
  const id = `o-${o.key}`;
  const common = { id, "aria-invalid": !!error, "aria-describedby": `${id}-help` } as const;
  let field: JSX.Element;
  if (o.type === "boolean")
    field = <input type="checkbox" {...common} checked={value === true || value === "true"} onChange={(e) => change(o.key, e.currentTarget.checked)} />;
  else if (o.choices?.length)
    field = <select {...common} value={shown(value)} onChange={(e) => change(o.key, e.currentTarget.value)}>
      {(o.choices.includes(shown(value)) ? o.choices : [shown(value), ...o.choices]).map((c) => <option key={c} value={c}>{c || "(none)"}</option>)}</select>;
  else
    field = <input {...common} spellcheck={false} autocomplete="off" inputMode={/integer$|number$/.test(o.type) ? "decimal" : "text"}
      value={shown(value)} onInput={(e) => change(o.key, read(o, e.currentTarget.value))} />;
  return (
    <div class={set ? "option set" : "option"}>
      <label for={id}>{name}</label>
      <div class="option-field">{field}
        {set && <button type="button" class="link-button" aria-label={`default of ${o.key}`} title={`default: ${shown(o.default) || "none"}`} onClick={() => reset(o.key)}>reset</button>}</div>
      <p id={`${id}-help`} class={error ? "option-help bad" : "option-help"}>{error ?? `${o.help}${range(o) ? ` [${range(o)}]` : ""}`}</p>
    </div>
  );
}

function Form(answers: Answers): JSX.Element {
  const { options, values } = answers;
  const [text, setText] = useState("");
  const [onlySet, setOnlySet] = useState(false);
  const hits = found(options, text).filter((o) => !onlySet || o.key in values);
  const sections = [...new Set(options.map((o) => o.section))];
  const plainView = text === "" && !onlySet;
  const basics = plainView ? kBasics.flatMap((key) => options.filter((o) => o.key === key)) : [];
  return (
    <>
      <div class="filter">
        <label for="find">Find an option</label>
        <input id="find" data-filter type="search" placeholder="learning rate" value={text} onInput={(e) => setText(e.currentTarget.value)} />
        <label class="field"><input type="checkbox" checked={onlySet} onChange={() => setOnlySet(!onlySet)} /> only what I set</label>
      </div>
      {basics.length > 0 && <section class="section"><h2 class="section-head">Basics</h2><div class="options">{basics.map((o) => <Field key={o.key} o={o} whole {...answers} />)}</div></section>}
      {hits.length === 0 && <Empty title="No option fits." />}
      {sections.map((section) => {
        const rows = hits.filter((o) => o.section === section && !basics.includes(o));
        const wrong = rows.filter((o) => answers.errors.has(o.key)).length;
        const set = rows.filter((o) => o.key in values).length;
        return rows.length > 0 && (
          <details key={section} class="section" open={!plainView || section === "strategy" || set > 0 || wrong > 0}>
            <summary><span>{section}</span><span class="muted">{plural(rows.length, basics.length > 0 ? "more option" : "option")}{set > 0 && `, ${set} set`}</span>{wrong > 0 && <span class="bad">{wrong} wrong</span>}</summary>
            <div class="options">{rows.map((o) => <Field key={o.key} o={o} {...answers} />)}</div>
          </details>
        );
      })}
    </>
  );
}

export function NewJobPage({ from }: { from: string | null }): JSX.Element {
  const mayRun = useMay("run");
  const [mode, setMode] = useState<"form" | "toml">(from ? "toml" : "form");
  const [kind, setKind] = useState<Kind>("train");
  const [values, setValues] = useState<Values>(kStart);
  const [toml, setToml] = useState("");
  const [name, setName] = useState("");
  const [command, setCommand] = useState("");
  const [priority, setPriority] = useState("0");
  const [nodes, setNodes] = useState<string[]>([]);
  const [check, setCheck] = useState<Check | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const latest = useRef(0);
  const all = useList<Option>("/options");
  const base = useLoaded<string>(from ? at("runs", from, "config") : null, getText);
  const datasets = useList<DataSet>("/datasets");
  const machines = useList<NodeRow>("/nodes");
  useServerEvents(["node"], machines.reload);
  useEvery(kNodesMs, machines.reload);
  const strategy = String(values["strategy.name"] ?? "");
  const models = useList<Model>("/models");
  const options = useMemo(() => inForce(all.data ?? [], strategy).map((o) =>
    (o.key === "model.name" && !o.choices && models.data?.length ? { ...o, choices: ["", ...models.data.map((m) => m.name)] } : o)),
    [all.data, models.data, strategy]);
  useEffect(() => void (base.data !== null && setToml((now) => now || base.data!)), [base.data]); // it may come late, after the user has begun

  const config = mode === "form" ? changed(options, values, strategy) : null;
  const asked = JSON.stringify(mode === "form" ? { config } : { toml });
  const ready = mode === "form" ? options.length > 0 : toml.trim() !== "" && kind === "train";
  useEffect(() => {
    latest.current += 1;
    const turn = latest.current;
    if (!ready) {
      setCheck(null);
      return undefined;
    }
    let timer = setTimeout(function ask() {
      put<Check>("POST", "/check", JSON.parse(asked)).then(
        (answer) => { if (turn === latest.current) { setCheck(answer); setError(null); } },
        (problem: unknown) => {
          if (turn !== latest.current) return;
          setError(message(problem));
          if (mayPass(problem)) timer = setTimeout(ask, kAgainMs);
        });
    }, kPauseMs);
    return () => clearTimeout(timer);
  }, [asked, ready]);

  const errors = useMemo(() => new Map((check?.errors ?? []).flatMap((e): [string, string][] => (e.key ? [[e.key, e.message]] : []))), [check]);
  const others = (check?.errors ?? []).filter((e) => mode === "toml" || !e.key || !options.some((o) => o.key === e.key));
  const answers: Answers = {
    options, values, errors,
    change: (key, value) => setValues((now) => ({ ...now, [key]: value })),
    reset: (key) => setValues(({ [key]: _gone, ...rest }) => rest),
  };
  const choose = (name: string): void => {
    const set = datasets.data?.find((d) => d.name === name);
    if (set) setValues((now) => ({ ...now, "data.name": set.kind, "data.path": set.path, "data.resize": set.resize }));
  };
  const chosen = datasets.data?.find((d) => d.kind === values["data.name"] && d.path === (values["data.path"] ?? "") && d.resize === (values["data.resize"] ?? 0));
  const switchTo = (next: "form" | "toml"): void => {
    if (next === "toml" && check?.config) setToml(check.config);
    if (next === "form") setKind("train");
    setMode(next);
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    setBusy(true);
    const body = {
      kind, priority: Number(priority) || 0, ...(name.trim() ? { name: name.trim() } : {}), ...(nodes.length ? { nodes } : {}),
      ...(kind === "launch" ? { command: words(command), ...(toml.trim() ? { config: toml } : {}) } : { config: config ?? toml }),
    };
    put<Job>("POST", "/jobs", body).then((job) => go(link(["jobs", String(job.id)])), (problem: unknown) => setError(message(problem)))
      .finally(() => setBusy(false));
  };
  const offered = machines.data?.filter((n) => n.state === "alive" || nodes.includes(n.address)) ?? []; // one that was chosen may die meanwhile
  const good = kind === "launch" ? words(command).length > 0 : kind === "grid" ? toml.trim() !== "" : !!check?.ok;
  return (
    <Page title={from ? "New job like this run" : "New job"} above={from && <p class="crumb">{from}</p>}
      actions={<Choice label="How to write it" options={[{ id: "form", label: "Form" }, { id: "toml", label: "TOML" }] as const} now={mode} choose={switchTo} />}>
      {!mayRun && <ErrorLine error="Your role is read: an administrator can give you the role run, which may submit jobs." />}
      <form class="columns uneven new-job" onSubmit={submit}>
        <div>
          {mode === "form" ? <Shown from={all}>{() => (
            <>
              {(datasets.data?.length ?? 0) > 0 && (
                <p class="inline-form"><label for="dataset">Registered data set</label>
                  <select id="dataset" value={chosen?.name ?? ""} onChange={(e) => choose(e.currentTarget.value)}>
                    <option value="">as the options say</option>{datasets.data?.map((d) => <option key={d.name} value={d.name}>{d.name} ({d.kind})</option>)}</select></p>)}
              <Form {...answers} />
            </>)}</Shown>
            : <Panel title={kind === "grid" ? "Grid file" : kind === "launch" ? "Program and configuration" : "Configuration"} aside={<Choice label="Kind" options={kKinds} now={kind} choose={setKind} />}>
                <ErrorLine error={base.error} retry={base.reload} />
                {kind === "launch" && <div class="form-lines command">
                  <label for="command">Command, on the server; the program joins the run (docs/guests.md)</label>
                  <input id="command" spellcheck={false} placeholder="python train.py --size 64" value={command} onInput={(e) => setCommand(e.currentTarget.value)} /></div>}
                <textarea class="toml" aria-label="TOML" spellcheck={false} rows={28} value={toml} onInput={(e) => setToml(e.currentTarget.value)}
                  placeholder={'[run]\nname = "glyphs-easgd"\nepochs = 3\n\n[model]\nname = "lenet"\n\n[data]\nname = "glyphs"\n\n[strategy]\nname = "easgd"'} />
              </Panel>}
        </div>
        <div class="aside">
          <Panel title="Check">
            <p class={good ? "verdict good" : "verdict"} role="status">
              {kind !== "train" ? `A ${kind === "grid" ? "grid" : "program"} is checked when it is submitted.` : !ready ? "Nothing to check yet." : !check ? "Checking…" : check.ok ? "The configuration is good." : `${check.errors.length} ${check.errors.length === 1 ? "option is" : "options are"} wrong.`}</p>
            {others.map((e) => <ErrorLine key={e.message} error={e.message} />)}
            {check?.warnings.map((w) => <p key={w} class="warning-line">{w}</p>)}
            <div class="form-lines">
              <label for="job-name">Name of the job (empty: that of the run)</label>
              <input id="job-name" value={name} onInput={(e) => setName(e.currentTarget.value)} />
              <label for="priority">Priority (higher begins first)</label>
              <input id="priority" type="number" value={priority} onInput={(e) => setPriority(e.currentTarget.value)} />
              {offered.length > 0 && <fieldset><legend>Nodes (none: this host)</legend>{offered.map((n) => (
                <label key={n.address}><input type="checkbox" checked={nodes.includes(n.address)}
                  onChange={() => setNodes((now) => (now.includes(n.address) ? now.filter((a) => a !== n.address) : [...now, n.address]))} /> {n.address}{n.state !== "alive" && <span class="bad"> ({n.state})</span>}</label>))}</fieldset>}
            </div>
            <ErrorLine error={error} />
            <button type="submit" class="button primary" disabled={!mayRun || !good || busy}>{busy ? "Submitting…" : "Submit"}</button>
          </Panel>
          {check?.config && mode === "form" && <Panel title="Resolved configuration"><Code label="the resolved configuration" text={check.config} /></Panel>}
        </div>
      </form>
    </Page>
  );
}
