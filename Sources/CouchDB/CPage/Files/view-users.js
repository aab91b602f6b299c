// The users of the database _users.

import * as api from "./api.js";
import { confirm, form } from "./dialog.js";
import { add, button, empty, h, name, notice, table } from "./dom.js";
import { listField } from "./list-field.js";
import { link } from "./router.js";
import { session } from "./session.js";

const prefix = "org.couchdb.user:";
const pageLength = 50;

export async function showUsers(root, _, { signal, options, reload }) {
  add(root, h("div", { class: "head" }, h("h1", {}, "Users"), button("New user", create, { class: "main" })),
    h("p", { class: "summary" }, "Administrators of the server are in a file of its own: ",
      h("code", {}, "touchstone users DIR add NAME --admin"), "."));
  if (session.isOpen) add(root, h("p", { class: "warning" }, "This server has no administrator: everybody who reaches it may do everything."));
  let answer;
  try {
    answer = await api.get("_users/_all_docs", {
      startkey: JSON.stringify(options.from ?? prefix), endkey: JSON.stringify(prefix + "\u{10FFFF}"), include_docs: true, limit: pageLength + 1,
    }, signal);
  } catch (error) {
    if (error.status !== 404) throw error;
    add(root, empty("This server has no database _users. It has one if a directory is served with --create."));
    return;
  }
  const next = answer.rows[pageLength];
  const users = answer.rows.slice(0, pageLength).map((row) => row.doc);
  add(root, users.length === 0 ? empty("There is no user yet.") : table("Users", ["Name", "Roles", ""], users.map((user) => [
    h("a", { href: link(["db", "_users", "doc", user._id]) }, name(user.name)), (user.roles ?? []).map((role) => name(String(role))),
    h("div", { class: "actions left" },
      button("Change", () => change(user), { "aria-label": `Change ${user.name}` }),
      button("Delete", () => remove(user), { class: "quiet", "aria-label": `Delete ${user.name}` })),
  ])), next && h("a", { class: "button", href: link(["users"], { from: next.id }) }, "Next"));

  async function create() {
    const control = h("input", { required: true, autofocus: true, autocomplete: "off", spellcheck: "false" });
    const [password, roles] = [passwordField(true), listField("Roles", [])];
    const done = await form("New user", "Create", [
      { label: "Name", control }, { label: "Password", control: password }, roles.element,
    ], () => save({ _id: prefix + control.value, type: "user", name: control.value, roles: roles.value(), password: password.value }));
    if (done) reload();
  }

  async function change(user) {
    const [password, roles] = [passwordField(false), listField("Roles", user.roles)];
    const done = await form(`Change ${user.name}`, "Save", [
      { label: "New password", control: password, hint: "Empty: it stays" }, roles.element,
    ], () => save({ ...user, roles: roles.value(), ...(password.value ? { password: password.value } : {}) }));
    if (done) {
      notice("The user is changed.");
      reload();
    }
  }

  async function remove(user) {
    if (!(await confirm("Delete a user", ["Delete ", name(user.name), "? The user's sessions end."], "Delete"))) return;
    await api.ask("DELETE", api.path("_users", user._id), { query: { rev: user._rev } });
    reload();
  }
}

const save = (user) => api.ask("PUT", api.path("_users", user._id), { body: user });
const passwordField = (required) => h("input", { type: "password", autocomplete: "new-password", required });
