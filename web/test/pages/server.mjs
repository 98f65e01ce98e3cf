// The service that the pages are tested against: `troupe serve` where the program has it, the mock of web/dev otherwise.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";

const kDeadlineMs = 20_000;

export const hasServe = (troupe) => process.env.TROUPE_WEB_MOCK === undefined && spawnSync(troupe, ["serve", "--help"]).status === 0;

/** Starts it on a free port; { origin, token, stop }. */
export function serve(root, troupe, runs, { role = "admin", nodes = null } = {}) {
  const real = hasServe(troupe);
  // The service prints the token of a user once, when it is added.
  const added = real ? execFileSync(troupe, ["serve", "--dir", runs, "--add-user", `${role}-${process.hrtime.bigint()}`, "--role", role], { encoding: "utf8" }) : "";
  const child = real
    ? spawn(troupe, ["serve", "--listen", "127.0.0.1:0", "--dir", runs], { stdio: ["ignore", "pipe", "inherit"] })
    : spawn(process.execPath, [join(root, "web/dev/mock.mjs"), "--runs", runs, "--troupe", troupe, "--port", "0", "--role", role, ...(nodes ? ["--nodes", nodes] : [])],
      { stdio: ["ignore", "pipe", "inherit"] });
  const stop = () => new Promise((done) => {
    if (child.exitCode !== null) return done();
    child.once("exit", done);
    child.kill("SIGINT");
    return undefined;
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the service printed no address")), kDeadlineMs);
    let text = "";
    child.stdout.on("data", (part) => {
      text += part;
      const found = /(http:\/\/[^/\s]+)\/(?:#token=(\S+))?/.exec(text);
      if (!found) return;
      clearTimeout(timer);
      resolve({ origin: found[1], token: real ? /: (\S+)\s*$/.exec(added)[1] : found[2], real, stop });
    });
    child.once("exit", (code) => reject(new Error(`the service ended with exit code ${code}: ${text}`)));
  });
}
