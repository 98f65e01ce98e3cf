// A file that is sent with progress, which fetch() does not tell.
import { address, ApiError } from "./client";

export interface Sending {
  done: Promise<void>;
  cancel: () => void;
}

/** Sends `file` as the body. `told`: how many bytes of it the service has; all of them are there before it has looked at them. */
export function upload(path: string, file: Blob, told: (bytes: number) => void): Sending {
  const request = new XMLHttpRequest();
  const done = new Promise<void>((resolve, reject) => {
    const fail = (code: string, text: string): void => reject(new ApiError(request.status, code, text));
    request.upload.onprogress = (event) => told(event.loaded);
    request.onerror = () => fail("unreachable", "The connection broke before the service had all of it. Try again.");
    request.onabort = () => fail("aborted", "The upload was cancelled.");
    request.onload = () => {
      if (request.status >= 200 && request.status < 300) return resolve();
      let error: { code?: string; message?: string } | undefined;
      try {
        error = (JSON.parse(request.responseText) as { error?: typeof error }).error;
      } catch {
        error = undefined; // no answer of the service
      }
      return fail(error?.code ?? String(request.status), error?.message ?? `PUT ${path}: ${request.status}`);
    };
    request.open("PUT", address(path));
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.send(file);
  });
  return { done, cancel: () => request.abort() };
}
