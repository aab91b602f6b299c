// Replications that the server runs: their progress, their beginnings and their ends.

import * as api from "./api.js";
import { add, button, checkbox, empty, field, h, name, notice, table } from "./dom.js";
import { count, shortened } from "./format.js";
import { link } from "./router.js";

const pause = 1000;

export async function showReplications(root, _, { signal }) {
  const list = h("div", { "aria-live": "off" });
  let shown;
  add(root, h("h1", {}, "Replications"), await starter(refresh, signal), h("h2", {}, "Running and ended"), list);
  await refresh();
  poll();

  /** Asks, and shows what has changed. */
  async function refresh() {
    const replications = await read(signal);
    const state = JSON.stringify(replications);
    if (state === shown) return;
    shown = state;
    const focused = document.activeElement?.dataset.stop;
    list.replaceChildren(replications.length === 0 ? empty("No replication runs.") : table("Replications",
      ["Source", "Target", "State", "Written", "Read", "Failures", "To go", ""], replications.map(row)));
    if (focused) [...list.querySelectorAll("[data-stop]")].find((item) => item.dataset.stop === focused)?.focus();
  }

  function row(item) {
    const isDocument = item.document !== undefined;
    return [end(item.source), end(item.target),
      [h("span", { class: `tag ${item.state}` }, item.state), item.isContinuous && " continuous",
        isDocument && [" ", h("a", { href: link(["db", "_replicator", "doc", item.document]) }, name(shortened(item.document, 16)))],
        item.reason && h("p", { class: "problem" }, item.reason)],
      numeral(item.written), numeral(item.read), numeral(item.failures), numeral(item.pending),
      button(item.isOver ? "Remove" : "Stop", () => stop(item), {
        class: "quiet", "data-stop": item.id, "aria-label": `${item.isOver ? "Remove" : "Stop"} ${item.source} to ${item.target}`,
      })];
  }

  async function stop(item) {
    try {
      if (item.document === undefined) {
        await api.ask("POST", "_replicate", { body: { cancel: true, replication_id: item.id } });
      } else {
        const address = api.path("_replicator", item.document);
        const { _rev: rev } = await api.get(address);
        await api.ask("DELETE", address, { query: { rev } });
      }
      notice(item.isOver ? "Removed." : "Stopped.");
    } catch (error) {
      notice(error.message);
    }
    await refresh();
  }

  function poll() {
    const timer = setTimeout(async () => {
      try {
        if (!document.hidden) await refresh();
      } catch (error) {
        if (signal.aborted || error.status === 401) return;
        list.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
        shown = undefined;
      }
      if (!signal.aborted) poll();
    }, pause);
    signal.addEventListener("abort", () => clearTimeout(timer));
  }
}

// A URL may be broken anywhere.
const end = (text) => h("bdi", { class: "name address" }, text);
const numeral = (number) => (typeof number === "number" ? count(number) : "");

/** All replications: documents, and those of requests, with what their tasks say. */
async function read(signal) {
  const [{ docs }, { jobs }, tasks] = await Promise.all([
    api.get("_scheduler/docs", { limit: 1000 }, signal), api.get("_scheduler/jobs", { limit: 1000 }, signal), api.get("_active_tasks", {}, signal),
  ]);
  const running = new Map(tasks.filter((task) => task.type === "replication").map((task) => [task.replication_id, task]));
  const all = [
    ...docs.map((doc) => ({ ...doc, document: doc.doc_id })),
    ...jobs.filter((job) => !job.doc_id).map((job) => ({ ...job, state: running.has(job.id) ? "running" : job.history[0]?.type ?? "pending" })),
  ];
  return all.map(({ id, document, source, target, state, info }) => {
    const task = running.get(id);
    return {
      id: id ?? document, document, source, target, state, isContinuous: task?.continuous === true,
      isOver: state === "completed" || state === "failed", reason: info?.error,
      written: task?.docs_written ?? info?.docs_written, read: task?.docs_read ?? info?.docs_read,
      failures: task?.doc_write_failures ?? info?.doc_write_failures, pending: task?.changes_pending ?? info?.changes_pending,
    };
  });
}

/** The form that begins one. */
async function starter(started, signal) {
  const databases = await api.get("_all_dbs", { limit: 500 }, signal);
  const choices = h("datalist", { id: "databases" }, databases.map((key) => h("option", { value: key })));
  const end = () => h("input", { list: "databases", required: true, spellcheck: "false", autocomplete: "off" });
  const [source, target] = [end(), end()];
  source.dataset.first = "";
  const [continuous, creates, kept] = [false, false, true].map((checked) => h("input", { type: "checkbox", checked }));
  const problem = h("p", { class: "problem", role: "alert" });
  return h("form", { class: "stack card", onsubmit: async (event) => {
    event.preventDefault();
    problem.textContent = "";
    const body = { source: source.value, target: target.value, continuous: continuous.checked, create_target: creates.checked };
    try {
      if (kept.checked) await api.ask("POST", "_replicator", { body });
      else await once(body);
      await started();
    } catch (error) {
      problem.textContent = error.message;
    }
  } },
  h("h2", {}, "Start a replication"), choices,
  h("div", { class: "row" },
    field("Source", source, "A database here, or a URL"), field("Target", target, "A database here, or a URL")),
  h("div", { class: "row" }, checkbox("Continuous", continuous), checkbox("Make the target", creates),
    checkbox("Keep it as a document, over restarts of the server", kept)),
  problem, h("div", { class: "actions left" }, h("button", { class: "main" }, "Start")));

  /** Begins one that ends with the server. The answer to one that isn't continuous comes at its end. */
  async function once(body) {
    if (body.continuous) return api.ask("POST", "_replicate", { body });
    api.ask("POST", "_replicate", { body }).then(
      ({ history, no_changes: isEqual }) =>
        notice(isEqual ? "There was nothing to replicate." : `Replicated: ${count(history[0].docs_written)} written.`),
      (error) => (problem.textContent = error.message));
    return undefined;
  }
}
