// The report of a bench: what each workload takes on each engine.

import * as api from "./api.js";
import { add, empty, h, table } from "./dom.js";
import { bytes, count, many, seconds } from "./format.js";

export async function showBench(root, _, { signal }) {
  add(root, h("h1", {}, "Bench"));
  let report;
  try {
    report = await api.get("_bench_report", {}, signal);
  } catch (error) {
    if (error.status !== 404) throw error;
    add(root, empty(`There is no report (${error.message}). Make one, and name it when you start the server:`), h("pre", { class: "json" },
      "touchstone bench travel --engines sqlite,lmdb --output report.json\ntouchstone serve DIR --bench-report report.json"));
    return;
  }
  const { machine, dataset, results } = report;
  if (!Array.isArray(results) || !machine) throw new Error("The file isn't a results file of touchstone bench.");
  add(root, h("dl", { class: "facts" },
    [["Version", report.touchstone], ["Begun", new Date(report.started).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })],
      ["Machine", `${machine.cpu}, ${many(machine.cores, "core")}, ${bytes(machine.memory_bytes)}, ${machine.os}`],
      // Suites that make their documents themselves have none.
      dataset && ["Documents", `${dataset.name}: ${many(dataset.documents, "document")}, ${bytes(dataset.json_bytes)}`]]
      .filter(Boolean).map(([label, text]) => [h("dt", {}, label), h("dd", {}, text)])));

  const engines = [...new Set(results.map((result) => result.engine))];
  for (const suite of new Set(results.map((result) => result.suite))) {
    const own = results.filter((result) => result.suite === suite);
    const rows = new Map();
    for (const result of own) {
      const parameters = Object.entries(result.parameters ?? {}).map(([key, value]) => `${key} ${value}`).join(", ");
      const key = result.workload + (parameters && ` (${parameters})`);
      if (!rows.has(key)) rows.set(key, { operations: result.operations, times: new Map() });
      rows.get(key).times.set(result.engine, result.metrics.seconds?.median);
    }
    const used = engines.filter((engine) => own.some((result) => result.engine === engine));
    add(root, h("h2", {}, `Suite ${suite}`),
      h("p", { class: "summary" }, "Median of the time of a run. The bar shows it beside the slowest engine; the fastest is bold."),
      table(`Suite ${suite}`, ["Workload", "Operations", ...used], [...rows].map(([key, { operations, times }]) => {
        const known = [...times.values()].filter((time) => time !== undefined);
        return [key, operations === undefined ? "" : count(operations), ...used.map((engine) => cell(times.get(engine), known))];
      })));
  }
}

/** A time with its bar. */
function cell(time, all) {
  if (time === undefined) return "";
  const text = seconds(time);
  const fill = h("span", { class: "fill", "aria-hidden": "true" });
  fill.style.width = `${Math.max(2, (100 * time) / Math.max(...all))}%`;
  return h("div", { class: "time" }, fill, time === Math.min(...all) && all.length > 1 ? h("strong", {}, text) : text);
}
