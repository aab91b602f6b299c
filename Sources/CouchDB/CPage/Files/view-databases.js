// All databases, with their sizes and engines.

import * as api from "./api.js";
import { confirm, form } from "./dialog.js";
import { add, button, empty, field, h, name, notice, table } from "./dom.js";
import { bytes, count } from "./format.js";
import { go, link } from "./router.js";
import { logIn, session } from "./session.js";

// What the server tells at a time.
const pageLength = 50;

export async function showDatabases(root, _, { signal, options, reload }) {
  if (!session.isAdmin) {
    add(root, h("h1", {}, "Databases"), openByName());
    return;
  }
  const search = h("input", { type: "search", value: options.prefix ?? "", spellcheck: "false", "data-first": true });
  add(root,
    h("div", { class: "head" }, h("h1", {}, "Databases"), button("New database", create, { class: "main" })),
    h("form", { class: "row", role: "search", onsubmit: (event) => {
      event.preventDefault();
      go([], { prefix: search.value });
    } }, field("Name begins with", search), h("button", {}, "Find")));
  const names = await api.get("_all_dbs", {
    startkey: JSON.stringify(options.from ?? options.prefix ?? ""),
    endkey: options.prefix ? JSON.stringify(options.prefix + "\u{10FFFF}") : undefined,
    limit: pageLength + 1,
  }, signal);
  const next = names[pageLength];
  const rows = names.length === 0 ? [] : await api.ask("POST", "_dbs_info", { body: { keys: names.slice(0, pageLength) }, signal });
  if (rows.length === 0) {
    add(root, empty(options.prefix ? "No database begins so." : "There is no database yet."));
    return;
  }
  add(root, table("Databases", ["Name", "Documents", "Deleted", "Size", "Engine", ""], rows.map(({ key, info, error }) => [
    h("a", { href: link(["db", key]) }, name(key)),
    ...(info
      ? [count(info.doc_count), count(info.doc_del_count), bytes(info.sizes.file), info.engine]
      : [h("span", { class: "problem" }, error), "", "", ""]),
    button("Delete", () => remove(key), { class: "quiet", "aria-label": `Delete ${key}` }),
  ])));
  if (next !== undefined) add(root, h("a", { class: "button", href: link([], { prefix: options.prefix, from: next }) }, "Next"));

  async function create() {
    const control = h("input", { required: true, autofocus: true, spellcheck: "false", autocomplete: "off" });
    const made = await form("New database", "Create",
      [{ label: "Name", control, hint: "Lower-case letters, digits and _$()+-/, beginning with a letter" }],
      async () => {
        await api.ask("PUT", api.path(control.value));
        return control.value;
      });
    if (made) go(["db", made]);
  }

  async function remove(key) {
    const text = "The database is deleted with all its documents, for good.";
    if (!(await confirm("Delete a database", text, "Delete", key))) return;
    try {
      await api.ask("DELETE", api.path(key));
      notice("The database is deleted.");
    } catch (error) {
      notice(error.message);
    }
    reload();
  }
}

/** For who may use a database and doesn't get to know which there are. */
function openByName() {
  const control = h("input", { required: true, spellcheck: "false" });
  return h("form", { class: "row", onsubmit: (event) => {
    event.preventDefault();
    go(["db", control.value]);
  } },
  h("p", { class: "empty" }, "Only administrators see all databases. ",
    !session.name && [button("Log in", logIn, { class: "main" }), " "], "Or open one by its name:"),
  field("Database", control), h("button", {}, "Open"));
}
