// Indexes of queries, of full text and of Mango, and the views of design documents.

import * as api from "./api.js";
import { heading } from "./database.js";
import { confirm, form } from "./dialog.js";
import { add, button, checkbox, empty, h, name, notice, table } from "./dom.js";
import { link } from "./router.js";

const languages = [
  "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian", "norwegian", "portuguese", "romanian", "russian", "spanish",
  "swedish", "turkish",
];
const reducers = ["", "_count", "_sum", "_stats", "_approx_count_distinct", "_first", "_last", "_top_10", "_bottom_10"];

export async function showIndexes(root, { database }, { signal, reload }) {
  add(root, heading(database, "Indexes and views"));
  const [{ indexes }, mango, designs] = await Promise.all([
    api.get(api.path(database, "_indexes"), {}, signal),
    api.get(api.path(database, "_index"), {}, signal),
    api.getExact(api.path(database, "_design_docs"), { include_docs: true }, signal),
  ]);
  const own = mango.indexes.filter((index) => index.type !== "special");
  const views = designs.rows.filter(({ doc }) => doc.language !== "query").flatMap(({ doc }) =>
    Object.entries(doc.views ?? {}).map(([key, view]) => ({ doc, design: doc._id.slice("_design/".length), key, view })));

  add(root,
    section("Indexes of queries", "No query index yet. Without one, a query reads all documents.", ["Name", "Kind", "On", ""],
      indexes.map((index) => [name(index.name), index.kind === "fulltext" ? "full text" : "values", h("code", {}, definition(index)),
        remover(`index ${index.name}`, () => api.ask("DELETE", api.path(database, "_indexes", index.name)))]),
      button("New index", () => makeIndex("value")), button("New full-text index", () => makeIndex("fulltext"))),
    section("Indexes of Mango", "No Mango index yet.", ["Name", "Design document", "On", ""],
      own.map((index) => [name(index.name), name(index.ddoc), h("code", {}, index.def.fields.map((item) => Object.keys(item)[0]).join(", ")),
        remover(`index ${index.name}`, () => api.ask("DELETE", api.path(database, "_index", index.ddoc, "json", index.name)))]),
      button("New Mango index", makeMangoIndex)),
    section("Views", "No view yet.", ["View", "Reduce", ""],
      views.map(({ doc, design, key, view }) => [
        h("a", { href: link(["db", database, "doc", doc._id]) }, name(`${design}/${key}`)), h("code", {}, view.reduce ?? ""),
        h("div", { class: "actions left" },
          h("a", { class: "button", href: link(["db", database, "view", design, key]), "aria-label": `Run ${design}/${key}` }, "Run"),
          remover(`view ${design}/${key}`, () => removeView(doc, key))),
      ]),
      button("New view", makeView)));

  function section(title, nothing, columns, rows, ...actions) {
    return h("section", {}, h("div", { class: "head" }, h("h2", {}, title), actions),
      rows.length === 0 ? empty(nothing) : table(title, columns, rows));
  }

  /** A button that deletes something after a question. */
  function remover(what, remove) {
    return button("Delete", async () => {
      if (!(await confirm("Delete", `Delete the ${what}?`, "Delete"))) return;
      try {
        await remove();
        notice("Deleted.");
      } catch (error) {
        notice(error.message);
      }
      reload();
    }, { class: "quiet", "aria-label": `Delete ${what}` });
  }

  async function made(title, fields, act) {
    if (await form(title, "Create", fields, act)) {
      notice("Created.");
      reload();
    }
  }

  function makeIndex(kind) {
    const isText = kind === "fulltext";
    const key = input({ required: true, autofocus: true });
    const expressions = h("textarea", { class: "code", rows: 3, required: true, spellcheck: "false" });
    const where = input();
    const language = h("select", {}, h("option", { value: "" }, "none"), languages.map((text) => h("option", {}, text)));
    const accents = h("input", { type: "checkbox" });
    return made(isText ? "New full-text index" : "New index", [
      { label: "Name", control: key },
      {
        label: "Expressions, one a line", control: expressions,
        hint: isText ? "Such as name or contact.address" : "Such as type or LOWER(name)",
      },
      { label: "Only documents where", control: where, hint: "A condition of SQL++, or nothing" },
      ...(isText ? [{ label: "Language", control: language }, checkbox("Ignore accents", accents)] : []),
    ], () => api.ask("POST", api.path(database, "_indexes"), { body: {
      name: key.value, kind, expressions: lines(expressions.value), where: where.value || undefined,
      ...(isText ? { language: language.value || undefined, ignore_accents: accents.checked } : {}),
    } }));
  }

  function makeMangoIndex() {
    const key = input({ autofocus: true });
    const fields = h("textarea", { class: "code", rows: 3, required: true, spellcheck: "false" });
    return made("New Mango index", [
      { label: "Name", control: key, hint: "Empty: the server makes one" },
      { label: "Fields, one a line", control: fields, hint: "Such as type or address.city" },
    ], () => api.ask("POST", api.path(database, "_index"), { body: { index: { fields: lines(fields.value) }, name: key.value || undefined } }));
  }

  function makeView() {
    const design = input({ required: true, autofocus: true });
    const key = input({ required: true });
    const map = h("textarea", { class: "code", rows: 8, required: true, spellcheck: "false", value: "function (doc) {\n  emit(doc.type, null);\n}" });
    const reduce = h("select", {}, reducers.map((text) => h("option", { value: text }, text || "none")));
    return made("New view", [
      { label: "Design document", control: design, hint: "The part behind _design/" }, { label: "View", control: key },
      { label: "Map function", control: map }, { label: "Reduce", control: reduce },
    ], async () => {
      const id = `_design/${design.value}`;
      const doc = designs.rows.find((row) => row.id === id)?.doc ?? { _id: id, language: "javascript" };
      if (key.value in (doc.views ?? {})) throw new Error("The design document has a view of this name.");
      const view = { map: map.value, reduce: reduce.value || undefined };
      await api.ask("PUT", api.path(database, id), { body: { ...doc, views: { ...doc.views, [key.value]: view } } });
    });
  }

  /** Deletes a view; the last one with its design document, if that has nothing else. */
  async function removeView(doc, key) {
    const views = { ...doc.views };
    delete views[key];
    const others = Object.keys(doc).filter((member) => !["_id", "_rev", "language", "views"].includes(member));
    const address = api.path(database, doc._id);
    if (Object.keys(views).length === 0 && others.length === 0) return api.ask("DELETE", address, { query: { rev: doc._rev } });
    return api.ask("PUT", address, { body: { ...doc, views } });
  }
}

const input = (properties) => h("input", { spellcheck: "false", autocomplete: "off", ...properties });

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** What an index is on, in words. */
function definition({ expressions = [], where, unnest, language }) {
  return [expressions.join(", "), unnest && `UNNEST ${unnest}`, where && `WHERE ${where}`, language && `(${language})`].filter(Boolean).join(" ");
}
