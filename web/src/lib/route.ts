// The page's address: everything behind #, so that the server needs no route of its own for a page.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  path: string[]; // decoded
  query: URLSearchParams;
}

export function parsedRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const decoded = (part: string): string => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };
  return { path: path.split("/").filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

type Query = Record<string, string | number | boolean | string[] | null | undefined>;

/** link("runs", "a/b") → "#/runs/a%2Fb". Entries that are empty are left out of the query. */
export function link(path: string | string[], query: Query = {}): string {
  const parts = (Array.isArray(path) ? path : [path]).map(encodeURIComponent).join("/");
  return `#/${parts}${asked(query)}`;
}

export function asked(query: Query): string {
  const list = new URLSearchParams();
  for (const [key, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((v) => list.append(key, v));
    else if (value !== null && value !== undefined && value !== "" && value !== false) list.set(key, String(value));
  }
  const text = list.toString();
  return text ? `?${text}` : "";
}

export function go(address: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", address);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = address;
  }
}

/** Changes some of the query of this page, without a new entry in the history. */
export function setQuery(changes: Query): void {
  const route = parsedRoute(location.hash);
  const query: Query = {};
  for (const key of new Set(route.query.keys())) query[key] = route.query.getAll(key);
  go(link(route.path, { ...query, ...changes }), true);
}

export function useRoute(): Route {
  const [route, set] = useState(() => parsedRoute(location.hash));
  useEffect(() => {
    const changed = (): void => set(parsedRoute(location.hash));
    window.addEventListener("hashchange", changed);
    return () => window.removeEventListener("hashchange", changed);
  }, []);
  return route;
}
