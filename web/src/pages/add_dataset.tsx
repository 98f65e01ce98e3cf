// A name for a path on the server, or for files that are sent there.
import type { JSX } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { at, message, put } from "../api/client";
import { ServerContext, useList } from "../api/hooks";
import type { Option } from "../api/types";
import { upload, type Sending } from "../api/upload";
import { bytes } from "../lib/format";
import { Choice, ErrorLine, Panel, Progress } from "../parts/misc";

const kPictures = /^(folder|shards|csv)$/; // kinds whose pictures can have any size
const kNotSent = /^(glyphs|synthetic|hickle)$/; // drawn by the program, or not taken
const kFrom = [{ id: "path", label: "A path on the server" }, { id: "upload", label: "Upload" }] as const;

export function AddDataSet({ done }: { done: () => void }): JSX.Element {
  const [from, setFrom] = useState<"path" | "upload">("path");
  const [name, setName] = useState("");
  const [kind, setKind] = useState("");
  const [path, setPath] = useState("");
  const [resize, setResize] = useState("");
  const [file, setFile] = useState<File | null>(null);
  const [sent, setSent] = useState<number | null>(null); // bytes; null: nothing is being sent
  const [error, setError] = useState<string | null>(null);
  const sending = useRef<Sending | null>(null);
  const picker = useRef<HTMLInputElement>(null);
  useEffect(() => () => sending.current?.cancel(), []);
  const limit = useContext(ServerContext)?.upload_limit ?? 0;
  const options = useList<Option>("/options");
  const kinds = (options.data?.find((o) => o.key === "data.name")?.choices ?? []).filter((k) => from === "path" || !kNotSent.test(k));
  const pictures = kPictures.test(kind);
  const tooLarge = from === "upload" && file !== null && file.size > limit;
  const taken = (): void => {
    setError(null);
    setName("");
    setPath("");
    setResize("");
    setFile(null);
    if (picker.current) picker.current.value = "";
    done();
  };
  const send = (to: string, what: File): Promise<void> => {
    setSent(0);
    sending.current = upload(to, what, setSent);
    return sending.current.done.finally(() => {
      sending.current = null;
      setSent(null);
    });
  };
  const submit = (event: Event): void => {
    event.preventDefault();
    setError(null);
    const to = `${at("datasets", name.trim(), "upload")}?kind=${encodeURIComponent(kind)}${pictures ? `&resize=${resize}` : ""}`;
    (from === "upload" && file ? send(to, file)
      : put("POST", "/datasets", { name: name.trim(), kind, path: path.trim(), ...(pictures ? { resize: Number(resize) } : {}) }))
      .then(taken, (problem: unknown) => setError(message(problem)));
  };
  const choose = (to: "path" | "upload"): void => {
    setFrom(to);
    setError(null);
    if (to === "upload" && kNotSent.test(kind)) setKind("");
  };
  return (
    <Panel title="Register a data set">
      <form class="form-lines limited" onSubmit={submit}>
        {limit > 0 && <Choice label="Where its files are" options={kFrom} now={from} choose={choose} />}
        <label for="ds-name">Name</label><input id="ds-name" required value={name} onInput={(e) => setName(e.currentTarget.value)} />
        <label for="ds-kind">Kind</label>
        <select id="ds-kind" required value={kind} onChange={(e) => setKind(e.currentTarget.value)}><option value="">choose…</option>{kinds.map((k) => <option key={k}>{k}</option>)}</select>
        {from === "path"
          ? <><label for="ds-path">Path on the server</label><input id="ds-path" placeholder="/data/mnist" value={path} onInput={(e) => setPath(e.currentTarget.value)} /></>
          : <><label for="ds-file">Files: a .zip, .tar, .tar.gz or .tar.zst of at most {bytes(limit)}</label>
            <input id="ds-file" ref={picker} type="file" required accept=".zip,.tar,.gz,.tgz,.zst" onChange={(e) => setFile(e.currentTarget.files?.[0] ?? null)} /></>}
        {pictures && <><label for="ds-resize">Resize: pixels of the shorter side; the centre square is the image</label>
          <input id="ds-resize" type="number" required min="1" max="65535" placeholder="64" value={resize} onInput={(e) => setResize(e.currentTarget.value)} /></>}
        <ErrorLine error={tooLarge ? `${file.name} has ${bytes(file.size)}: the service takes at most ${bytes(limit)} (--upload-limit).` : error ?? options.error} />
        {sent === null
          ? <button type="submit" class="button primary" disabled={!name.trim() || !kind || tooLarge}>{from === "path" ? "Register" : "Upload"}</button>
          : <><p class="sending"><Progress label="Sent" part={file ? sent / Math.max(1, file.size) : 0} />{" "}
            {file && sent >= file.size ? "All of it is there. The service unpacks and opens it…" : `${bytes(sent)} of ${bytes(file?.size)}`}</p>
            <button type="button" class="button" onClick={() => sending.current?.cancel()}>Cancel</button></>}
      </form>
      <p class="muted">{from === "path" ? <><code>troupe data fetch</code> gets well-known sets, <code>troupe data convert</code> brings pictures into one file.</>
        : <>Pack the folder that <code>data.path</code> would name, with <code>train/</code> and <code>test/</code>, or the files of the kind, in it.</>}</p>
    </Panel>
  );
}
