// The documents of a database, by the beginning of their IDs or by a condition, a page at a time.

import * as api from "./api.js";
import { heading } from "./database.js";
import { form } from "./dialog.js";
import { add, button, checkbox, empty, field, h, name, notice, table } from "./dom.js";
import { bytes, many, shortened } from "./format.js";
import * as json from "./json.js";
import { go, link } from "./router.js";

const pageLength = 50;
// Behind all IDs that begin with a prefix.
const last = "\u{10FFFF}";
// Of a document, where the contents are shown.
const shownLength = 160;
// Documents of one request of an import, and their text.
const batchDocuments = 500;
const batchLength = 4 << 20;

export async function showDocuments(root, { database }, { signal, options, reload }) {
  const prefix = h("input", { type: "search", value: options.prefix ?? "", spellcheck: "false", "data-first": true });
  const where = h("input", {
    type: "search", value: options.where ?? "", spellcheck: "false", placeholder: "city = 'Rome' AND stars > 3",
  });
  const contents = h("input", { type: "checkbox", checked: options.contents === "yes" });
  const look = () => go(["db", database], {
    prefix: where.value ? undefined : prefix.value, where: where.value, contents: contents.checked ? "yes" : undefined,
  });
  contents.addEventListener("change", look);
  const summary = h("p", { class: "summary" }, " ");
  add(root,
    heading(database, "Documents", button("Import", importFile),
      h("a", { class: "button main", href: link(["db", database, "new"]) }, "New document")),
    summary,
    h("form", { class: "row", role: "search", onsubmit: (event) => {
      event.preventDefault();
      look();
    } }, field("ID begins with", prefix), field("or condition (SQL++)", where), checkbox("Contents", contents),
    h("button", {}, "Find")));
  const results = h("div");
  add(root, results);
  const [info, page] = await Promise.all([
    api.get(api.path(database), {}, signal),
    options.where ? byCondition(database, options, signal).catch(wrong) : byID(database, options, signal),
  ]);
  summary.textContent = `${many(info.doc_count, "document")}, ${bytes(info.sizes.file)}, ${info.engine}`;
  if (page.problem) {
    results.append(h("p", { class: "problem", role: "alert" }, page.problem));
  } else if (page.rows.length === 0) {
    results.append(empty(options.prefix || options.where || options.from ? "No document fits." : "There is no document yet."));
  } else {
    results.append(table("Documents", ["ID", options.contents ? "Contents" : "Revision"], page.rows.map(({ id, revision, body }) => [
      h("a", { href: link(["db", database, "doc", id]) }, name(id)),
      body === undefined ? h("code", {}, shortened(revision, 14)) : h("code", { class: "text" }, shortened(body, shownLength)),
    ])));
  }
  const turn = (label, rel, change) => change && h("a", {
    class: "button", rel, href: link(["db", database], { ...options, from: undefined, before: undefined, skip: undefined, ...change }),
  }, label);
  add(results, h("div", { class: "pages" }, turn("Previous", "prev", page.previous), turn("Next", "next", page.next)));

  async function importFile() {
    const file = h("input", { type: "file", accept: ".json,.jsonl,.ndjson,.txt", required: true });
    const state = h("p", { role: "status" });
    const done = await form("Import documents", "Import",
      [{ label: "File", control: file, hint: "A JSON array, or one document a line. A document without _id gets one." }, state],
      () => importDocuments(database, file.files[0], (text) => (state.textContent = text)));
    if (done) notice(done);
    if (done) reload();
  }
}

/** A page in the order of the IDs. */
async function byID(database, { prefix = "", from, before, contents }, signal) {
  const isBackward = before !== undefined;
  const bounds = { first: from ?? prefix, end: before ?? (prefix && prefix + last), isBackward, limit: pageLength + 1 };
  // The server refuses queries of its own databases. They are small.
  const rows = await (database.startsWith("_") ? listed : queried)(database, bounds, contents, signal);
  const more = rows.length > pageLength ? rows.pop() : undefined;
  if (isBackward) return { rows: rows.reverse(), previous: more && { before: rows[0].id }, next: { from: before } };
  return { rows, previous: from !== undefined && { before: from }, next: more && { from: more.id } };
}

/** Documents from `first` on and before `end`, by a query: the list of all documents would count those before, which takes long in the middle. */
async function queried(database, { first, end, isBackward, limit }, contents, signal) {
  const { rows } = await api.query(database, {
    query: `SELECT ${columns(contents)} FROM _ WHERE META().id >= $first ${end ? "AND META().id < $end" : ""}
      ORDER BY META().id ${isBackward ? "DESC" : ""} LIMIT ${limit}`,
    parameters: { first, end },
  }, { signal });
  return rows.map(row);
}

async function listed(database, { first, end, isBackward, limit }, contents, signal) {
  const [low, high] = [JSON.stringify(first), end ? JSON.stringify(end) : undefined];
  const { rows } = await api.getExact(api.path(database, "_all_docs"), {
    startkey: isBackward ? high : low, endkey: isBackward ? low : high, descending: isBackward, limit: limit + 1, include_docs: Boolean(contents),
  }, signal);
  return rows.filter(({ id }) => id !== end).slice(0, limit).map(({ id, value, doc }) => row({ id, revision: value.rev, body: doc }));
}

const columns = (contents) => `META().id AS id, META().revisionID AS revision${contents ? ", _ AS body" : ""}`;
const row = ({ id, revision, body }) => ({ id, revision, body: body && json.text(body, false) });

/** A condition that the server doesn't understand, or any other error again. */
function wrong(error) {
  if (error.status !== 400) throw error;
  return { rows: [], problem: error.message };
}

/** A page of the documents that fulfil a condition. */
async function byCondition(database, { where, skip = "0", contents }, signal) {
  const first = Number(skip) || 0;
  // The condition has lines of its own, so that the place of an error is one in it.
  const query = `SELECT ${columns(contents)} FROM _ WHERE (\n${where}\n) LIMIT ${pageLength + 1} OFFSET ${first}`;
  const { rows } = await api.query(database, { query }, { signal }).catch((error) => {
    if (error.line === 2) error.message = `Column ${error.column} of the condition: ${error.message}`;
    else if (error.line > 2) error.message = "The condition isn't whole: something is missing at its end.";
    throw error;
  });
  return {
    rows: rows.slice(0, pageLength).map(row),
    previous: first > 0 && { skip: String(Math.max(0, first - pageLength)) },
    next: rows.length > pageLength && { skip: String(first + pageLength) },
  };
}

/** Sends the documents of a file, in batches. Returns what came of it. */
async function importDocuments(database, file, tell) {
  const text = await file.text();
  let documents;
  if (text.trimStart().startsWith("[")) {
    documents = json.parse(text);
  } else {
    documents = [];
    text.split("\n").forEach((line, index) => {
      if (line.trim() === "") return;
      try {
        documents.push(json.parse(line));
      } catch (error) {
        throw new Error(`Line ${index + 1}: ${error.message}`);
      }
    });
  }
  let saved = 0;
  const refused = [];
  for (let first = 0; first < documents.length;) {
    const batch = [];
    const isFull = (length) => batch.length === batchDocuments || length >= batchLength;
    for (let length = 0; first < documents.length && !isFull(length); first += 1) {
      batch.push(json.text(documents[first], false));
      length += batch.at(-1).length;
    }
    const results = await api.ask("POST", api.path(database, "_bulk_docs"), { text: `{"docs":[${batch.join(",")}]}` });
    for (const result of results) {
      if (result.error) refused.push(`${result.id}: ${result.reason}`);
      else saved += 1;
    }
    tell(`${many(saved, "document")} of ${documents.length}`);
  }
  if (refused.length > 0) {
    throw new Error(`${many(saved, "document")} imported; ${refused.length} refused, the first one: ${refused[0]}`);
  }
  return `${many(saved, "document")} imported.`;
}
