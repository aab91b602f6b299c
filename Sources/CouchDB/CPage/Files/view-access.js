// Who may read and change a database: its security object.

import * as api from "./api.js";
import { heading } from "./database.js";
import { add, h, notice } from "./dom.js";
import { listField } from "./list-field.js";

const groups = [
  ["members", "Members", "They read and write documents. Without names and roles, everybody does, also without a login."],
  ["admins", "Administrators", "They also write design documents and indexes, and change this page."],
];

export async function showAccess(root, { database }, { signal }) {
  add(root, heading(database, "Access"));
  const address = api.path(database, "_security");
  const security = await api.get(address, {}, signal);
  const controls = Object.fromEntries(groups.map(([group]) =>
    [group, { names: listField("Names", security[group]?.names), roles: listField("Roles", security[group]?.roles) }]));
  const problem = h("p", { class: "problem", role: "alert" });
  add(root, h("form", { class: "stack card", onsubmit: async (event) => {
    event.preventDefault();
    problem.textContent = "";
    const changed = { ...security };
    for (const [group] of groups) {
      const { names, roles } = controls[group];
      changed[group] = { ...security[group], names: names.value(), roles: roles.value() };
    }
    try {
      await api.ask("PUT", address, { body: changed });
      notice("Saved. It counts from the next request on.");
    } catch (error) {
      problem.textContent = error.message;
    }
  } },
  groups.map(([group, title, about]) => h("fieldset", {}, h("legend", {}, title), h("p", { class: "summary" }, about),
    h("div", { class: "row" }, controls[group].names.element, controls[group].roles.element))),
  problem, h("div", { class: "actions" }, h("button", { class: "main" }, "Save"))));
}
