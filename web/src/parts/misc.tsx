// Small parts that every page uses.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Loaded } from "../api/hooks";

export const Link = ({ to, children, ...rest }: { to: string } & JSX.HTMLAttributes<HTMLAnchorElement>): JSX.Element => (
  <a href={to} {...rest}>{children}</a>
);

/** A state in a word, with a shape beside its colour. */
export function Badge({ state: given }: { state: string | null }): JSX.Element {
  const state = given ?? "unknown";
  const kind = /running|alive/.test(state) ? "good" : /failed|diverged|killed|lost|dead/.test(state) ? "bad"
    : /queued|stopping|interrupted|stopped/.test(state) ? "mild" : "calm";
  return <span class={`badge badge-${kind}`}><span class="badge-dot" aria-hidden="true" />{state}</span>;
}

export function ErrorLine({ error, retry }: { error: string | null | undefined; retry?: () => void }): JSX.Element | null {
  if (!error) return null;
  return (
    <p class="error-line" role="alert">
      <span aria-hidden="true" class="error-mark">!</span>
      <span>{error}</span>
      {retry && <button type="button" class="button small" onClick={retry}>Try again</button>}
    </p>
  );
}

export const Empty = ({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element => (
  <div class="empty"><p class="empty-title">{title}</p><div class="empty-text">{children}</div></div>
);

/** The data, or what is in its place: a wait, or an error. */
export function Shown<T>({ from, children }: { from: Loaded<T>; children: (data: T) => ComponentChildren }): JSX.Element {
  return (
    <>
      <ErrorLine error={from.error} retry={from.reload} />
      {from.data !== null ? children(from.data) : from.loading && !from.error && <p class="loading" role="status">Loading…</p>}
    </>
  );
}

export function Page({ title, actions, children, above }: {
  title: ComponentChildren; actions?: ComponentChildren; children: ComponentChildren; above?: ComponentChildren;
}): JSX.Element {
  return (
    <>
      <header class="page-head">
        <div class="page-title">{above}<h1>{title}</h1></div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

export function Panel({ title, aside, children, wide }: {
  title?: ComponentChildren; aside?: ComponentChildren; children: ComponentChildren; wide?: boolean;
}): JSX.Element {
  return (
    <section class={wide ? "panel wide" : "panel"}>
      {(title || aside) && <div class="panel-head">{title && <h2>{title}</h2>}{aside && <div class="panel-aside">{aside}</div>}</div>}
      {children}
    </section>
  );
}

export const Figure = ({ label, value, note }: { label: string; value: ComponentChildren; note?: ComponentChildren }): JSX.Element => (
  <div class="figure"><dt>{label}</dt><dd>{value}{note && <small>{note}</small>}</dd></div>
);

export interface Tab {
  id: string;
  label: string;
}

/** Tabs after the ARIA pattern: arrow keys move between them. */
export function Tabs({ tabs, now, choose, label }: { tabs: Tab[]; now: string; choose: (id: string) => void; label: string }): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => { // on a phone the tabs are wider than the screen
    const chosen = list.current?.querySelector<HTMLElement>('[aria-selected="true"]');
    if (list.current && chosen) list.current.scrollLeft = chosen.offsetLeft - list.current.offsetLeft - 24;
  }, [now]);
  const key = (event: KeyboardEvent): void => {
    const at = tabs.findIndex((tab) => tab.id === now);
    const to = event.key === "ArrowRight" ? at + 1 : event.key === "ArrowLeft" ? at - 1
      : event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1 : NaN;
    if (Number.isNaN(to)) return;
    event.preventDefault();
    const next = (to + tabs.length) % tabs.length;
    choose(tabs[next]!.id);
    (list.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={key}>
      {tabs.map((tab) => (
        <button type="button" role="tab" key={tab.id} id={`tab-${tab.id}`} aria-selected={tab.id === now} aria-controls="tab-panel"
          tabIndex={tab.id === now ? 0 : -1} onClick={() => choose(tab.id)}>{tab.label}</button>
      ))}
    </div>
  );
}

/** One of a few, as buttons in a row. */
export function Choice<T extends string>({ label, options, now, choose }: {
  label: string; options: readonly { id: T; label: string }[]; now: T; choose: (id: T) => void;
}): JSX.Element {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map((o) => (
        <button type="button" key={o.id} aria-pressed={o.id === now} onClick={() => choose(o.id)}>{o.label}</button>
      ))}
    </div>
  );
}

/** Text to copy: a command, a file. */
export function Code({ text, label }: { text: string; label: string }): JSX.Element {
  const [copied, set] = useState(false);
  const copy = (): void => {
    const done = (): void => {
      set(true);
      setTimeout(() => set(false), 1500);
    };
    navigator.clipboard?.writeText(text).then(done, () => undefined);
  };
  return (
    <div class={text.includes("\n") ? "code lines" : "code"}>
      <pre tabIndex={0} aria-label={label}>{text}</pre>
      {navigator.clipboard && <button type="button" class="button small" onClick={copy} aria-label={`copy ${label}`}>{copied ? "Copied" : "Copy"}</button>}
    </div>
  );
}

/** A question before what cannot be undone. The browser keeps the focus inside, and Escape closes it. */
export function Ask({ title, text, yes, danger, act, close }: {
  title: string; text: ComponentChildren; yes: string; danger?: boolean; act: () => void; close: () => void;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog ref={dialog} class="ask" aria-labelledby="ask-title" onClose={close}>
      <h2 id="ask-title">{title}</h2>
      <div class="ask-text">{text}</div>
      <div class="actions">
        <button type="button" class="button" onClick={() => dialog.current?.close()}>Cancel</button>
        <button type="button" class={danger ? "button danger" : "button primary"}
          onClick={() => { act(); dialog.current?.close(); }}>{yes}</button>
      </div>
    </dialog>
  );
}

/** Progress from 0 to 1. */
export const Progress = ({ part, label }: { part: number; label: string }): JSX.Element => (
  <span class="progress" role="progressbar" aria-label={label} aria-valuemin={0} aria-valuemax={100}
    aria-valuenow={Math.round(Math.min(1, Math.max(0, part)) * 100)}>
    <span style={{ width: `${Math.min(1, Math.max(0, part)) * 100}%` }} />
  </span>
);
