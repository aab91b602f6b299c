// A document: its editor, its attachments, its revisions and conflicts.

import * as api from "./api.js";
import { heading } from "./database.js";
import { confirm } from "./dialog.js";
import { forgetEdits, mayLeave, watchEdits } from "./edits.js";
import { add, button, empty, field, h, name, notice, table } from "./dom.js";
import { bytes, count, many, shortened } from "./format.js";
import * as json from "./json.js";
import { documentText, jsonEditor } from "./json-editor.js";
import { onControl } from "./keyboard.js";
import { drawTree, readBranches } from "./revisions.js";
import { go, link } from "./router.js";

// How many conflicting revisions are shown beside each other.
const shownConflicts = 8;

export async function showNewDocument(root, { database }) {
  const id = h("input", { spellcheck: "false", autocomplete: "off", "data-first": true });
  const editor = jsonEditor("Document", "{\n  \n}");
  watchEdits(editor.area);
  add(root, heading(database, "Documents"), h("h2", {}, "New document"), field("ID", id, "Empty: the server makes one"), editor.element,
    saveButton(editor, async (body) => {
      if (id.value) body._id = id.value;
      const { id: made } = await api.ask("POST", api.path(database), { body });
      forgetEdits();
      notice("The document is saved.");
      go(["db", database, "doc", made]);
    }));
}

export async function showDocument(root, { database, id }, { signal, options, reload }) {
  const address = api.path(database, id);
  add(root, heading(database, "Documents"), h("h2", {}, name(id)));
  let body;
  try {
    body = await api.getExact(address, { rev: options.rev }, signal);
  } catch (error) {
    if (error.status !== 404) throw error;
    add(root, empty(options.rev ? "The body of this revision isn't stored any more." : `There is no such document (${error.message}).`));
    // The branches of one that was deleted are still there.
    if (!options.rev && error.message === "missing") return;
  }
  if (body) add(root, editor(body));
  if (body?._attachments || body && !options.rev) add(root, attachments(body));
  await showRevisions();

  function editor(body) {
    const editor = jsonEditor("Document", documentText(body));
    if (options.rev) {
      editor.area.readOnly = true;
      return h("section", {}, h("p", { class: "summary" }, "Revision ", h("code", {}, options.rev), ". ",
        h("a", { href: link(["db", database, "doc", id]) }, "Show the current one")), editor.element);
    }
    watchEdits(editor.area);
    return h("section", {}, editor.element, saveButton(editor, async (changed) => {
      try {
        await api.ask("PUT", address, { body: changed });
      } catch (error) {
        if (error.status !== 409) throw error;
        throw new Error("The document was changed meanwhile. Copy what you have written, and load it again.", { cause: error });
      }
      forgetEdits();
      notice("The document is saved.");
      reload();
    }, button("Delete", () => remove(body._rev), { class: "quiet" })));
  }

  async function remove(revision) {
    if (!(await confirm("Delete a document", "The document is deleted. Its revision stays until the database is compacted.", "Delete"))) return;
    await api.ask("DELETE", address, { query: { rev: revision } });
    forgetEdits();
    notice("The document is deleted.");
    go(["db", database]);
  }

  function attachments({ _attachments: list = {}, _rev: revision }) {
    const problem = h("p", { class: "problem", role: "alert" });
    const file = h("input", { type: "file", onchange: () => attach(file, revision, problem) });
    return h("section", {}, h("h3", {}, "Attachments"),
      Object.keys(list).length > 0 && table("Attachments", ["Name", "Type", "Size", ""], Object.entries(list).map(([key, about]) => [
        name(key), name(about.content_type), bytes(about.length),
        h("a", {
          href: api.url(`${address}/${encodeURIComponent(key)}`, { rev: options.rev }).href,
          download: key.split("/").at(-1), "aria-label": `Download ${key}`,
        }, "Download"),
      ])),
      !options.rev && [field("Add an attachment", file), problem]);
  }

  /** Adds the file that was chosen. One with the same name takes its place. */
  async function attach(control, revision, problem) {
    const [file] = control.files;
    if (!file) return;
    problem.textContent = "";
    try {
      // The view is made anew, and what is typed would be of an older revision.
      if (!(await mayLeave())) return;
      await api.send("PUT", `${address}/${api.path(file.name)}`, { query: { rev: revision }, file, signal });
      notice("The attachment is saved.");
      reload();
    } catch (error) {
      problem.textContent = error.message;
    } finally {
      control.value = "";
    }
  }

  async function showRevisions() {
    let branches;
    try {
      branches = await readBranches(database, id, signal);
    } catch (error) {
      if (error.status === 404) return;
      throw error;
    }
    const live = branches.list.filter((branch) => !branch.isDeleted);
    if (live.length > 1) add(root, conflicts(live));
    add(root, h("section", {}, h("h3", {}, "Revisions"),
      branches.left > 0 && h("p", { class: "summary" }, `Not shown: ${count(branches.left)} more.`),
      drawTree(branches.list, (revision) => link(["db", database, "doc", id], { rev: revision }))));
  }

  /** The revisions beside each other, a row for each property, and a button to keep one of them. */
  function conflicts(live) {
    const shown = live.slice(0, shownConflicts);
    const keys = [...new Set(shown.flatMap((branch) => Object.keys(branch.body)))].filter((key) => key !== "_id" && key !== "_rev");
    const row = (key) => {
      const texts = shown.map((branch) => (key in branch.body ? json.text(branch.body[key]) : undefined));
      const differs = texts.some((text) => text !== texts[0]);
      return [name(key), ...texts.map((text) =>
        text === undefined ? h("em", { class: "differs" }, "missing") : h("pre", { class: differs ? "differs" : undefined }, text))];
    };
    const head = shown.map((branch) => [
      h("code", { title: branch.revision }, shortened(branch.revision, 12)), " ", branch.isWinner && h("span", { class: "tag" }, "current"),
    ]);
    // Above the table: it may be wider than the window.
    const choices = shown.map((branch) => h("li", {},
      button("Keep this", () => keep(branch, live), { class: "main", "aria-label": `Keep ${branch.revision}` }), " ",
      h("code", { title: branch.revision }, shortened(branch.revision, 12)), " ", branch.isWinner && h("span", { class: "tag" }, "current")));
    return h("section", { class: "conflict", "aria-label": "Conflict" },
      h("h3", {}, `Conflict of ${many(live.length, "revision")}`),
      live.length > shown.length && h("p", { class: "summary" }, `The first ${shown.length} are shown.`),
      h("ul", { class: "choices" }, choices),
      table("Conflicting revisions", ["Property", ...head], keys.map(row)));
  }

  /** Deletes all other branches, in one request. */
  async function keep(kept, live) {
    if (!(await mayLeave())) return;
    const others = live.filter((branch) => branch !== kept);
    const results = await api.ask("POST", api.path(database, "_bulk_docs"), {
      body: { docs: others.map((branch) => ({ _id: id, _rev: branch.revision, _deleted: true })) },
    });
    const refused = results.find((result) => result.error);
    notice(refused ? `The server refused that: ${refused.reason}` : "The conflict is resolved.");
    if (options.rev) go(["db", database, "doc", id]);
    else reload();
  }
}

/** A button that saves what the editor has, and Ctrl S. `save` gets the value. What it throws is shown. */
function saveButton(editor, save, ...others) {
  const problem = h("p", { class: "problem", role: "alert" });
  const act = async () => {
    problem.textContent = "";
    let value;
    try {
      value = editor.value();
    } catch {
      // The editor shows it.
      return;
    }
    try {
      await save(value);
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  onControl(editor.area, "s", act);
  return h("div", {}, problem, h("div", { class: "actions" }, others, button("Save", act, { class: "main" })));
}
