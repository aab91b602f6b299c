// Rows of a query, as a table and as JSON.

import { button, empty, h, name, table } from "./dom.js";
import * as json from "./json.js";

/** Shows rows. `columns` are the names of the columns; without them they are those of the rows. */
export function showRows(rows, columns) {
  if (rows.length === 0) return empty("No rows.");
  const isObject = (row) => row !== null && typeof row === "object" && !Array.isArray(row) && !(row instanceof json.NumberText);
  const hasColumns = rows.every(isObject);
  const names = hasColumns ? columns ?? [...new Set(rows.flatMap((row) => Object.keys(row)))] : ["value"];
  const cell = (value) =>
    value === undefined ? "" : typeof value === "string" ? h("bdi", { class: "text" }, value) : h("code", { class: "text" }, json.text(value, false));
  const shown = h("div");
  const views = {
    Table: () => table("Rows", names.map(name), rows.map((row) => names.map((key) => cell(hasColumns ? row[key] : row)))),
    JSON: () => h("pre", { class: "json", tabindex: "0" }, json.text(rows)),
  };
  const tabs = Object.keys(views).map((label) => button(label, () => select(label), { "aria-pressed": "false" }));
  function select(label) {
    shown.replaceChildren(views[label]());
    tabs.forEach((tab) => tab.setAttribute("aria-pressed", String(tab.textContent === label)));
  }
  select("Table");
  return h("div", {}, h("div", { class: "switch", role: "group", "aria-label": "Form of the rows" }, tabs), shown);
}
