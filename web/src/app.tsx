// The frame of every page: session, navigation, keys, and the page that the address names.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, message, onSignedOut, put } from "./api/client";
import { ServerContext, useEvery } from "./api/hooks";
import type { Server } from "./api/types";
import { go, useRoute, type Route } from "./lib/route";
import { setTheme, useTheme, type Theme } from "./lib/theme";
import { Choice, Empty, ErrorLine, Link, Page } from "./parts/misc";
import { ComparePage } from "./pages/compare";
import { DataSetPage, DataSetsPage } from "./pages/datasets";
import { HelpPage } from "./pages/help";
import { HomePage } from "./pages/home";
import { JobPage } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { ModelPage, ModelsPage } from "./pages/models";
import { NewJobPage } from "./pages/new_job";
import { NodesPage } from "./pages/nodes";
import { RunPage } from "./pages/run/run";
import { RunsPage } from "./pages/runs";
import { SignIn } from "./pages/sign_in";
import { SweepPage, SweepsPage } from "./pages/sweeps";

const kPages = [
  { id: "", label: "Home" }, { id: "runs", label: "Runs" }, { id: "sweeps", label: "Sweeps" }, { id: "jobs", label: "Jobs" }, { id: "new", label: "New job" },
  { id: "models", label: "Models" }, { id: "datasets", label: "Data sets" }, { id: "nodes", label: "Nodes" }, { id: "help", label: "Help" },
];
const kThemes: { id: Theme; label: string }[] = [{ id: "system", label: "Auto" }, { id: "light", label: "Light" }, { id: "dark", label: "Dark" }];

function body(route: Route): JSX.Element {
  const [first = "", second] = route.path;
  if (first === "") return <HomePage />;
  if (first === "runs" && second) return <RunPage key={second} run={second} tab={route.query.get("tab") ?? "overview"} />;
  if (first === "runs") return <RunsPage query={route.query} />;
  if (first === "sweeps" && second) return <SweepPage key={second} name={second} />;
  if (first === "sweeps") return <SweepsPage />;
  if (first === "compare") return <ComparePage runs={route.query.getAll("run")} query={route.query} />;
  if (first === "jobs" && second) return <JobPage key={second} id={second} />;
  if (first === "jobs") return <JobsPage />;
  if (first === "new") return <NewJobPage key={route.query.get("from") ?? ""} from={route.query.get("from")} />;
  if (first === "models" && second) return <ModelPage key={second} name={second} input={route.query.get("input") ?? ""} />;
  if (first === "models") return <ModelsPage />;
  if (first === "datasets" && second) return <DataSetPage key={second} name={second} />;
  if (first === "datasets") return <DataSetsPage />;
  if (first === "nodes") return <NodesPage />;
  if (first === "help") return <HelpPage />;
  return <Page title="No such page"><Empty title={`There is no page “${route.path.join("/")}”.`}><Link to="#/">Go to the home page</Link></Empty></Page>;
}

const shownName = (route: Route): string =>
  route.path[1] ?? (route.path[0] === "compare" ? "Compare" : kPages.find((page) => page.id === (route.path[0] ?? ""))?.label ?? "Troupe");

function Frame({ server, leave }: { server: Server; leave: () => void }): JSX.Element {
  const route = useRoute();
  const { theme } = useTheme();
  const [open, setOpen] = useState(false);
  const first = route.path[0] ?? "";
  const here = first === "compare" ? "runs" : first;
  const name = shownName(route);
  useEffect(() => {
    document.title = `${name} · Troupe`;
    setOpen(false);
  }, [name, first]);
  useEffect(() => {
    const key = (event: KeyboardEvent): void => {
      const inField = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, [contenteditable]");
      if (event.key === "Escape") setOpen(false);
      if (inField || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") {
        const field = document.querySelector<HTMLInputElement>("[data-filter]");
        event.preventDefault();
        if (field) field.focus();
        else go("#/runs");
      }
    };
    window.addEventListener("keydown", key);
    return () => window.removeEventListener("keydown", key);
  }, []);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to the content</a>
      <div class="frame">
        <header class="side">
          <div class="side-top">
            <Link to="#/" class="brand"><svg width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
              <circle cx="11" cy="4" r="3" /><circle cx="4" cy="17" r="3" /><circle cx="18" cy="17" r="3" />
              <path d="M11 7v4M11 11L5.500 15M11 11l5.500 4" /></svg>Troupe</Link>
            <button type="button" class="button small menu-button" aria-expanded={open} aria-controls="menu" onClick={() => setOpen(!open)}>Menu</button>
          </div>
          <div id="menu" class={open ? "menu open" : "menu"}>
            <nav aria-label="Pages">
              {kPages.map((page) => (
                <Link key={page.id} to={`#/${page.id}`} aria-current={page.id === here ? "page" : undefined}>{page.label}</Link>
              ))}
            </nav>
            <div class="side-foot">
              <Choice label="Colours" options={kThemes} now={theme} choose={setTheme} />
              <p class="who"><span>{server.user} <span class="muted">({server.role})</span></span>
                <button type="button" class="link-button" onClick={leave}>Sign out</button></p>
              <p class="muted">Troupe {server.version}</p>
            </div>
          </div>
        </header>
        <main id="main" tabIndex={-1}>{body(route)}</main>
      </div>
    </>
  );
}

/** The token of a link that `troupe serve` printed; taken out of the address bar at once. */
function tokenOfAddress(): string | null {
  const found = /^#token=([^&]+)/.exec(location.hash)?.[1];
  if (!found) return null;
  history.replaceState(null, "", `${location.pathname}#/`);
  try {
    return decodeURIComponent(found);
  } catch {
    return found;
  }
}

const kToken = tokenOfAddress();
const kAgainMs = 3000;

export function App(): JSX.Element {
  const [server, setServer] = useState<Server | null>(null);
  const [state, setState] = useState<"starting" | "out" | "in" | "failed">("starting");
  const [error, setError] = useState<string | null>(null);
  const link = useRef<string | null>(null); // the token of a link, until the service has answered
  const asks = useRef(0); // how many answers are awaited
  const enter = async (token: string | null): Promise<void> => {
    asks.current += 1;
    try {
      if (token !== null) await put("POST", "/session", { token });
      setServer(await get<Server>("/server"));
      link.current = null;
      setError(null);
      setState("in");
    } catch (problem) {
      const refused = problem instanceof ApiError && problem.status === 401;
      if (refused) link.current = null;
      setError(refused && token === null ? null : message(problem));
      const next = refused || (token !== null && token !== link.current) ? "out" : "failed";
      setState((now) => (now === "in" && next === "failed" ? now : next)); // another request was answered meanwhile
    } finally {
      asks.current -= 1;
    }
  };
  const follow = (token: string | null): void => {
    link.current = token;
    void enter(token);
  };
  useEvery(kAgainMs, () => state === "failed" && asks.current === 0 && void enter(link.current));
  const leave = (): void => {
    put("DELETE", "/session").catch(() => undefined).finally(() => {
      setServer(null);
      setState("out");
    });
  };
  useEffect(() => {
    follow(kToken);
    const pasted = (): void => { // the link with a token, in a tab where the dashboard is open already
      const token = tokenOfAddress();
      if (token === null) return;
      window.dispatchEvent(new HashChangeEvent("hashchange"));
      follow(token);
    };
    window.addEventListener("hashchange", pasted);
    const forget = onSignedOut(() => setState((now) => (now === "in" ? "out" : now)));
    return () => {
      window.removeEventListener("hashchange", pasted);
      forget();
    };
  }, []);
  if (state === "in" && server) return <ServerContext.Provider value={server}><Frame server={server} leave={leave} /></ServerContext.Provider>;
  if (state === "out") return <SignIn error={error} enter={enter} />;
  if (state === "failed") return <main class="lone"><h1>Troupe</h1><ErrorLine error={error} retry={() => void enter(link.current)} /></main>;
  return <main class="lone" aria-busy="true"><h1 class="hidden">Troupe</h1><p class="loading" role="status">Loading…</p></main>;
}
