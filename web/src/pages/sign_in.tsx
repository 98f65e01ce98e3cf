import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorLine } from "../parts/misc";

export function SignIn({ error, enter }: { error: string | null; enter: (token: string) => Promise<void> }): JSX.Element {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (token.trim() === "") return;
    setBusy(true);
    void enter(token.trim()).finally(() => setBusy(false));
  };
  return (
    <main class="lone">
      <h1>Troupe</h1>
      <form class="panel sign-in" onSubmit={submit}>
        <label for="token">Token</label>
        <input id="token" type="password" autocomplete="current-password" value={token} autofocus
          aria-describedby="token-help" onInput={(e) => setToken(e.currentTarget.value)} />
        <p id="token-help" class="muted">troupe serve printed it when it started for the first time. An administrator makes another one with <code>troupe serve --add-user NAME --role read</code>.</p>
        <ErrorLine error={error} />
        <button type="submit" class="button primary" disabled={busy || token.trim() === ""}>{busy ? "Signing in…" : "Sign in"}</button>
      </form>
    </main>
  );
}
