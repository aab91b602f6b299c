// Rows of a query, as a table and as JSON.

import { button, empty, h, name, table } from "./dom.js";
import { shortened } from "./format.js";
import * as json from "./json.js";
import { link } from "./router.js";

// Characters of a value that are shown at first; of those that stay in one line; and of a revision.
const [shownLength, lineLength, revisionLength] = [200, 24, 14];
// The column of a whole document in a query of `_`, and how many properties are shown beside each other.
const [star, mostProperties] = ["_", 40];

/** A value in a cell. Of a long one it shows the beginning, and the rest on a click. */
function valueCell(value) {
  if (value === undefined) return "";
  return typeof value === "string" ? textCell("bdi", value) : jsonCell(value);
}

/** A value in a cell, as JSON. */
export const jsonCell = (value) => (value === undefined ? "" : textCell("code", json.text(value, false)));

function textCell(tag, text) {
  const size = text.length <= lineLength && !text.includes("\n") ? "text short" : "text";
  const box = h(tag, { class: text.length > 2 * lineLength ? "text long" : size }, shortened(text, shownLength));
  if (text.length <= shownLength) return box;
  const more = button("More", () => {
    const isShort = more.textContent === "More";
    box.textContent = isShort ? text : shortened(text, shownLength);
    more.textContent = isShort ? "Less" : "More";
  }, { class: "quiet" });
  return [box, more];
}

/**
 * Shows rows. `columns` are the names of the columns; without them they are those of the rows. If `database` is given, the columns `ids` have
 * the IDs of its documents.
 */
export function showRows(rows, columns, database, ids = ["_id"]) {
  if (rows.length === 0) return empty("No rows.");
  const isObject = (row) => row !== null && typeof row === "object" && !Array.isArray(row) && !(row instanceof json.NumberText);
  const hasColumns = rows.every(isObject);
  const keysOf = (objects) => [...new Set(objects.flatMap((object) => Object.keys(object)))];
  const names = hasColumns ? columns ?? keysOf(rows) : ["value"];
  // The document of `SELECT *` has a column for each of its properties, if there aren't too many.
  const whole = hasColumns && names.includes(star) && rows.every((row) => isObject(row[star])) ? keysOf(rows.map((row) => row[star])) : [];
  const unfolds = whole.length > 0 && whole.length <= mostProperties;
  const paths = names.flatMap((key) => (unfolds && key === star ? whole.map((inner) => [star, inner]) : [[key]]));
  const valueAt = (row, path) => path.reduce((value, key) => value[key], row);
  const cell = (path, value) => {
    const key = path.at(-1);
    if (path.length === 1 && ids.includes(key) && database !== undefined && typeof value === "string") {
      return h("a", { href: link(["db", database, "doc", value]) }, valueCell(value));
    }
    if (key === "_rev" && typeof value === "string") return h("code", { title: value }, shortened(value, revisionLength));
    return valueCell(value);
  };
  const shown = h("div");
  const views = {
    Table: () => table("Rows", paths.map((path) => name(path.at(-1))),
      rows.map((row) => paths.map((path) => cell(path, hasColumns ? valueAt(row, path) : row)))),
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
