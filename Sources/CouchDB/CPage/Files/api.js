// Requests to the server. The cookie of the session goes with each of them.

import * as json from "./json.js";

const root = new URL("../", import.meta.url);

/** An answer that is an error. */
export class APIError extends Error {
  constructor(status, body) {
    super(body.reason ?? body.error ?? `the server answered ${status}`);
    this.status = status;
    this.error = body.error;
    this.line = body.line;
    this.column = body.column;
  }
}

/**
 * A path of names: each is escaped. The slash behind `_design` and `_local` stays.
 *
 * Throws for names that a browser takes out of every address: a request for the document ".." would be one for the database.
 */
export function path(...names) {
  return names.map((name) => {
    const special = /^(_design|_local)\/(.+)$/s.exec(name);
    const rest = special ? special[2] : name;
    if (["", ".", ".."].includes(rest)) throw new Error(`A browser can't ask for the name "${name}".`);
    return (special ? `${special[1]}/` : "") + encodeURIComponent(rest);
  }).join("/");
}

/** The address of a path, with options. Options that are undefined are left out. */
export function url(path, query = {}) {
  const address = new URL(path, root);
  for (const [name, value] of Object.entries(query)) if (value !== undefined) address.searchParams.set(name, value);
  return address;
}

/** Sends a request, and returns the answer once its head is there. `body` is sent as JSON, `text` is some, and a `file` is sent as it is. Throws `APIError`. */
export async function send(method, path, { query, body, text, file, signal } = {}) {
  const headers = {
    Accept: "application/json",
    // The browser shows no dialog of its own.
    "X-CouchDB-WWW-Authenticate": "Cookie",
  };
  if (body !== undefined) text = json.text(body, false);
  if (text !== undefined) headers["Content-Type"] = "application/json";
  if (file !== undefined) headers["Content-Type"] = file.type || "application/octet-stream";
  const answer = await fetch(url(path, query), { method, headers, body: file ?? text, signal, credentials: "same-origin" });
  if (answer.ok) return answer;
  let problem = {};
  try {
    problem = await answer.json();
  } catch {
    // A proxy may answer something else.
  }
  if (answer.status === 401) document.dispatchEvent(new Event("login-needed"));
  throw new APIError(answer.status, problem);
}

/** Sends a request, and returns the value of the answer. */
export const ask = async (method, path, options) => (await send(method, path, options)).json();

export const get = (path, query, signal) => ask("GET", path, { query, signal });

/** The value of an answer with every digit of its numbers. */
export const getExact = async (path, query, signal) =>
  json.parse(await (await send("GET", path, { query, signal })).text());

/**
 * Runs a query, and reads its rows as they come, at most `limit` of them. Then the query is stopped.
 *
 * Returns `columns`, `rows`, `isWhole`, or for a statement that changes something the server's answer as `change`.
 */
export async function query(database, request, { limit = Infinity, signal } = {}) {
  const stop = new AbortController();
  signal?.addEventListener("abort", () => stop.abort());
  const answer = await send("POST", path(database, "_query"), { body: request, signal: stop.signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let head;
  let rest = "";
  const rows = [];
  for (;;) {
    const { value, done } = await reader.read();
    rest += value ?? "";
    const lines = rest.split("\r\n");
    rest = lines.pop();
    for (const line of lines) {
      if (head === undefined) head = line;
      else if (line !== "") rows.push(json.parse(line.endsWith(",") ? line.slice(0, -1) : line));
      if (rows.length > limit) {
        stop.abort();
        rows.length = limit;
        return { columns: json.parse(`${head}]}`).columns, rows, isWhole: false };
      }
    }
    if (done) break;
  }
  // Only an answer of rows has lines.
  if (head === undefined) return { change: json.parse(rest) };
  if (!rest.startsWith("]}")) throw new APIError(500, { reason: "the server ended the answer early" });
  return { columns: json.parse(`${head}]}`).columns, rows, isWhole: true };
}
