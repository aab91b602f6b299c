// Queries: SQL++ and Mango, their rows, and their plans.

import * as api from "./api.js";
import { complete } from "./completion.js";
import { heading, quoted } from "./database.js";
import { add, button, checkbox, field, h, name, table } from "./dom.js";
import { count, many, seconds } from "./format.js";
import * as json from "./json.js";
import { jsonEditor } from "./json-editor.js";
import { onControl } from "./keyboard.js";
import { drawPlan } from "./plan.js";
import { showRows } from "./results.js";
import { go } from "./router.js";

// Rows that are read; then the query is stopped.
const rowLimit = 1000;
// Documents whose properties are completed.
const sampleLength = 200;

const operators = [
  "$and", "$or", "$nor", "$not", "$lt", "$lte", "$eq", "$ne", "$gte", "$gt", "$in", "$nin", "$all", "$exists", "$type", "$size", "$mod", "$regex",
  "$beginsWith", "$elemMatch", "$allMatch", "$keyMapMatch", "selector", "fields", "sort", "limit", "skip", "use_index",
];
// What was typed last, for each database, until the page is left.
const drafts = new Map();

export async function showQuery(root, { database }, { signal, options }) {
  const isMango = options.language === "mango";
  const language = (label, value) =>
    button(label, () => go(["db", database, "query"], { language: value }), { "aria-pressed": String((options.language ?? "sql") === value) });
  add(root, heading(database, "Query"),
    h("div", { class: "switch", role: "group", "aria-label": "Language" }, language("SQL++", "sql"), language("Mango", "mango")));
  const properties = [];
  const draft = `${isMango ? "mango" : "sql"} ${database}`;
  const box = isMango ? mangoBox(database) : sqlBox(database);
  const { area } = box;
  area.value = drafts.get(draft) ?? area.value;
  area.addEventListener("input", () => drafts.set(draft, area.value));
  const words = box.words(properties);
  const status = h("p", { class: "summary", role: "status" });
  const output = h("div");
  const stop = button("Stop", () => running?.abort(), { disabled: true });
  let running;

  /** Runs something that may be stopped, and shows what comes of it. */
  async function run(work) {
    running?.abort();
    const current = new AbortController();
    running = current;
    signal.addEventListener("abort", () => current.abort());
    stop.disabled = false;
    status.textContent = "Running…";
    output.replaceChildren();
    const began = performance.now();
    try {
      const { text, shown } = await work(current.signal);
      status.textContent = `${text} ${seconds((performance.now() - began) / 1000)}`;
      output.replaceChildren(...shown);
    } catch (error) {
      if (running !== current) return;
      status.textContent = current.signal.aborted ? "Stopped." : "";
      // The editor shows what is wrong in its own text.
      if (!current.signal.aborted && !(error instanceof json.JSONError)) output.replaceChildren(problem(error, area));
    }
    if (running === current) stop.disabled = true;
  }

  onControl(area, "Enter", () => run(box.run));
  add(root,
    h("div", { class: "query" }, box.element, complete(area, words)), box.extras,
    h("div", { class: "actions left" },
      button("Run", () => run(box.run), { class: "main", title: "Ctrl Enter" }),
      Object.entries(box.plans).map(([label, plan]) => button(label, () => run(plan))), stop),
    status, output);
  area.dataset.first = "";
  properties.push(...(await sampledProperties(database, signal)));
}

/** What is wrong with a query, and a button to the place. */
function problem(error, area) {
  const show = error.line !== undefined && button("Show", () => {
    const lines = area.value.split("\n");
    const start = lines.slice(0, error.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
    // The server counts characters of Unicode.
    const offset = start + [...lines[error.line - 1] ?? ""].slice(0, error.column - 1).join("").length;
    area.focus();
    area.setSelectionRange(offset, offset + 1);
  }, { class: "quiet" });
  const place = error.line !== undefined ? `Line ${error.line}, column ${error.column}: ` : "";
  return h("p", { class: "problem", role: "alert" }, place, error.message, " ", show);
}

/** The paths of the properties of some documents. */
async function sampledProperties(database, signal) {
  try {
    const { rows } = await api.query(database, { query: `SELECT RAW OBJECT_PATHS(_) FROM _ LIMIT ${sampleLength}` }, { signal });
    const names = new Set(rows.flat().flatMap((path) => path.replaceAll(/\[[^\]]*\]/g, "").split(".")));
    return [...names].filter((text) => text !== "" && !text.startsWith("_")).sort();
  } catch {
    // Words are a help, and no more.
    return [];
  }
}

function sqlBox(database) {
  const area = h("textarea", {
    id: "query", class: "code", rows: 6, spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": "Query (SQL++)",
    value: "SELECT META().id, *\nFROM _\nLIMIT 25",
  });
  const parameters = h("textarea", { class: "code", rows: 3, spellcheck: "false", placeholder: '{"city": "Rome"}' });
  const dryRun = h("input", { type: "checkbox" });
  let vocabulary = { keywords: [], functions: [] };
  api.get("_utils/vocabulary.json").then((found) => (vocabulary = found), () => {});

  const request = (text) => {
    try {
      return { query: text, dry_run: dryRun.checked, parameters: parameters.value.trim() === "" ? {} : json.parse(parameters.value) };
    } catch (error) {
      throw new Error(`Parameters, line ${error.line}, column ${error.column}: ${error.message}`, { cause: error });
    }
  };
  const send = (text, signal) => api.query(database, request(text), { limit: rowLimit, signal });
  const plan = (prefix) => async (signal) => {
    const { rows } = await send(`${prefix} ${area.value.replace(/^\s*EXPLAIN(\s+ANALYZE)?\s/i, "")}`, signal);
    return { text: prefix === "EXPLAIN" ? "Plan, not run." : "Plan of a run.", shown: [drawPlan(rows.map((row) => row.plan))] };
  };
  return {
    area,
    element: h("div", {}, area),
    extras: h("details", {}, h("summary", {}, "Parameters and dry run"),
      field("Parameters (JSON)", parameters, "$city in the query is the member city"),
      checkbox("Dry run: a statement that changes documents is undone", dryRun)),
    words: (properties) => () => [
      ...properties.map((text) => ({ text, kind: "property", insert: /^[\p{L}_][\p{L}\p{N}_]*$/u.test(text) ? text : quoted(text) })),
      ...vocabulary.keywords.map((text) => ({ text, kind: "keyword", insert: `${text} ` })),
      ...vocabulary.functions.map((text) => ({ text, kind: "function", insert: `${text}(` })),
    ],
    plans: { "Show the plan": plan("EXPLAIN"), "Run with times": plan("EXPLAIN ANALYZE") },
    async run(signal) {
      if (/^\s*EXPLAIN\s/i.test(area.value)) return plan(/^\s*EXPLAIN\s+ANALYZE\s/i.test(area.value) ? "EXPLAIN ANALYZE" : "EXPLAIN")(signal);
      const { columns, rows, isWhole, change } = await send(area.value, signal);
      if (change) return { text: dryRun.checked ? "Dry run, undone." : "Done.", shown: changes(change) };
      const text = isWhole ? `${many(rows.length, "row")}.` : `The first ${count(rows.length)} rows; then the query was stopped.`;
      return { text, shown: [showRows(rows, columns.length > 0 ? columns : undefined, database, idColumns(area.value))] };
    },
  };
}

/** The columns of a query that have the IDs of documents: those of `META().id`. */
function idColumns(text) {
  const calls = text.matchAll(/\bMETA\s*\([^()]*\)\s*\.\s*id\b(?:\s+AS\s+(`[^`]+`|[\p{L}_][\p{L}\p{N}_]*))?/giu);
  return [...calls].map(([, alias]) => alias?.replaceAll("`", "") ?? "id");
}

/** What a statement has changed. */
function changes({ documents, indexes, columns, rows }) {
  const list = documents ?? indexes;
  return [
    h("p", {}, many(list.length, documents ? "document" : "index").replace("indexs", "indexes"), " changed."),
    list.length > 0 && table("Changes", ["Name", "Change"], list.slice(0, rowLimit).map((item) => [name(item.id ?? item.name), item.change])),
    rows?.length > 0 && showRows(rows, columns),
  ].filter(Boolean);
}

function mangoBox(database) {
  const editor = jsonEditor("Query (Mango)", '{\n  "selector": {},\n  "limit": 25\n}');
  let bookmark;
  const find = async (signal) => {
    const body = { ...editor.value(), execution_stats: true };
    if (bookmark) body.bookmark = bookmark;
    const answer = await (await api.send("POST", api.path(database, "_find"), { body, signal })).text();
    return json.parse(answer);
  };
  const run = async (signal) => {
    bookmark = undefined;
    return shown(await find(signal), signal);
  };
  const shown = (answer, signal) => {
    const { docs, execution_stats: stats, warning } = answer;
    bookmark = answer.bookmark;
    const more = h("div", { class: "pages" });
    const output = [warning && h("p", { class: "warning" }, warning), showRows(docs, undefined, database), more];
    if (docs.length > 0 && bookmark !== "nil") {
      more.append(button("More", async () => {
        const next = shown(await find(signal), signal);
        more.replaceChildren(...next.shown);
      }));
    }
    const [keys, documents] = [count(stats.total_keys_examined), count(stats.total_docs_examined)];
    const text = `${many(docs.length, "document")}; looked at ${keys} keys and ${documents} documents.`;
    return { text, shown: output.filter(Boolean) };
  };
  return {
    area: editor.area,
    element: editor.element,
    extras: "",
    words: (properties) => () => [
      ...operators.map((text) => ({ text, kind: "operator" })), ...properties.map((text) => ({ text, kind: "property" })),
    ],
    plans: {
      "Show the plan": async (signal) => {
        const plan = await api.ask("POST", api.path(database, "_explain"), { body: editor.value(), signal });
        return { text: "Plan, not run.", shown: mangoPlan(plan) };
      },
    },
    run,
  };
}

/** The plan of a selector: the index, its bounds, and why others weren't chosen. */
function mangoPlan(plan) {
  const { index, mrargs, index_candidates: candidates } = plan;
  const fields = index.def.fields.map((item) => Object.keys(item)[0]).join(", ");
  const step = (label, facts, children) =>
    h("li", {}, h("div", { class: "step" }, h("strong", {}, label), facts && h("small", {}, facts)), children && h("ul", {}, children));
  const range = mrargs.start_key === null ? "all keys" : `${JSON.stringify(mrargs.start_key)} to ${JSON.stringify(mrargs.end_key)}`;
  const tree = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Plan" }, h("ul", { class: "plan" },
    step(`Limit ${plan.limit}`, plan.skip > 0 ? `skip ${plan.skip}` : "",
      step("Selector", JSON.stringify(plan.selector),
        step(index.type === "special" ? "All documents, in the order of their IDs" : `Index ${index.name} on ${fields}`,
          `${range}, ${plan.covering ? "documents aren't read" : "documents are read"}`)))));
  if (candidates.length === 0) return [tree];
  return [tree, h("h3", {}, "Other indexes"), table("Other indexes", ["Index", "Why not"], candidates.map((candidate) => [
    name(candidate.index.name), (candidate.analysis?.reasons ?? []).map((reason) => reason.name).join(", "),
  ]))];
}
