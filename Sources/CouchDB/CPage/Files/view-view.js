// The rows of a view, a page at a time.

import * as api from "./api.js";
import { heading } from "./database.js";
import { add, checkbox, empty, field, h, name, table } from "./dom.js";
import { seconds } from "./format.js";
import * as json from "./json.js";
import { jsonCell } from "./results.js";
import { go, link } from "./router.js";

const pageLength = 50;

export async function showView(root, { database, design, view }, { signal, options }) {
  const about = await api.get(api.path(database, `_design/${design}`), {}, signal);
  const canReduce = Boolean(about.views?.[view]?.reduce);
  const reduces = canReduce && options.reduce !== "no";
  const start = h("input", { value: options.start ?? "", spellcheck: "false", "data-first": true });
  const end = h("input", { value: options.end ?? "", spellcheck: "false" });
  const group = h("input", { type: "checkbox", checked: options.group === "yes" });
  const reduce = h("input", { type: "checkbox", checked: reduces });
  const problem = h("p", { class: "problem", role: "alert" });
  add(root, heading(database, "Indexes and views"), h("h2", {}, name(`${design}/${view}`)),
    h("form", { class: "row", onsubmit: (event) => {
      event.preventDefault();
      for (const { value } of [start, end]) {
        try {
          if (value !== "") json.parse(value);
        } catch (error) {
          problem.textContent = `${value}: ${error.message}`;
          return;
        }
      }
      go(["db", database, "view", design, view], {
        start: start.value, end: end.value, group: group.checked ? "yes" : undefined, reduce: reduce.checked ? undefined : "no",
      });
    } },
    field("Keys from (JSON)", start, '"a", 5 or ["x", 1]'), field("to (JSON)", end),
    canReduce && [checkbox("Reduce", reduce), checkbox("A row for each key", group)], h("button", { class: "main" }, "Run"), problem));

  const began = performance.now();
  const { rows } = await api.getExact(api.path(database, `_design/${design}`, "_view", view), {
    startkey: options.fromKey ?? (options.start || undefined), startkey_docid: options.fromID, endkey: options.end || undefined,
    limit: pageLength + 1, reduce: canReduce ? reduces : undefined, group: reduces && options.group === "yes" ? true : undefined,
  }, signal);
  const next = rows.length > pageLength ? rows.pop() : undefined;
  add(root,
    h("p", { class: "summary", role: "status" }, seconds((performance.now() - began) / 1000)),
    rows.length === 0 ? empty("The view has no rows there.") : reduces
      ? table("Rows", ["Key", "Value"], rows.map((row) => [jsonCell(row.key), jsonCell(row.value)]))
      : table("Rows", ["Key", "Document", "Value"], rows.map((row) =>
        [jsonCell(row.key), h("a", { href: link(["db", database, "doc", row.id]) }, name(row.id)), jsonCell(row.value)])),
    next && h("div", { class: "pages" }, h("a", {
      class: "button", rel: "next",
      href: link(["db", database, "view", design, view], { ...options, fromKey: json.text(next.key, false), fromID: next.id }),
    }, "Next")));
}
