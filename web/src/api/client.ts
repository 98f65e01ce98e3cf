// Requests to the service. Every failure is an ApiError with one line for the user.

export class ApiError extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly details: unknown = null) {
    super(message);
  }
}

const kBase = "/api/v1";
const kDeadlineMs = 30_000;
const signedOut = new Set<() => void>();

/** Called when the service no longer knows this session. */
export function onSignedOut(call: () => void): () => void {
  signedOut.add(call);
  return () => void signedOut.delete(call);
}

/** The path of a resource: each part is encoded, so that a run's name may hold a slash. */
export const at = (...parts: (string | number)[]): string =>
  "/" + parts.map((part) => encodeURIComponent(String(part))).join("/");

export const address = (path: string): string => kBase + path;

export interface Ask {
  method?: string;
  body?: unknown;
  signal?: AbortSignal;
}

export interface Answer {
  text: string;
  headers: Headers;
}

/** Sends, and reads the whole answer: the deadline is for both. */
export async function send(path: string, { method = "GET", body, signal }: Ask = {}): Promise<Answer> {
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), kDeadlineMs);
  const aborted = (): void => deadline.abort();
  signal?.addEventListener("abort", aborted);
  let response: Response;
  let text: string;
  try {
    response = await fetch(kBase + path, {
      method,
      credentials: "same-origin",
      cache: "no-store",
      signal: deadline.signal,
      headers: body === undefined ? {} : { "Content-Type": "application/json" },
      body: body === undefined ? null : JSON.stringify(body),
    });
    text = await response.text();
  } catch {
    if (signal?.aborted) throw new ApiError(0, "aborted", "the request was given up");
    throw new ApiError(0, "unreachable", deadline.signal.aborted
      ? `The service gave no whole answer within ${kDeadlineMs / 1000} s. Try again.`
      : "The service cannot be reached. Check that troupe serve runs, then try again.");
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", aborted);
  }
  if (response.ok) return { text, headers: response.headers };
  const answer = jsonOf(text);
  const error = (answer as { error?: { code?: string; message?: string } } | null)?.error;
  if (response.status === 401) signedOut.forEach((call) => call());
  throw new ApiError(response.status, error?.code ?? String(response.status),
    error?.message ?? `${method} ${path}: ${response.status} ${response.statusText}`, answer);
}

/** undefined: the text is not JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const { text } = await send(path, signal ? { signal } : {});
  const answer = jsonOf(text);
  if (answer === undefined) throw new ApiError(0, "answer", `GET ${path}: the answer is not JSON. Is this address that of troupe serve?`);
  return answer as T;
}

/** A list, which the service answers bare or as the one list of an object: {"things": […]}. */
export async function getList<T>(path: string, signal?: AbortSignal): Promise<T[]> {
  const answer = await get<T[] | Record<string, unknown>>(path, signal);
  if (Array.isArray(answer)) return answer;
  return (Object.values(answer).find(Array.isArray) as T[] | undefined) ?? [];
}

export async function getText(path: string, signal?: AbortSignal): Promise<string> {
  return (await send(path, signal ? { signal } : {})).text;
}

export async function put<T>(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const { text } = await send(path, { method, body, ...(signal ? { signal } : {}) });
  return (jsonOf(text) ?? null) as T;
}

/** One line for the user, whatever was thrown. */
export const message = (error: unknown): string => (error instanceof Error ? error.message : String(error));
