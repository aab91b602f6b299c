// Who may read and change a database: its security object.

import * as api from "./api.js";
import { heading } from "./database.js";
import { add, field, h, notice } from "./dom.js";
import { listed } from "./view-users.js";

const groups = [
  ["members", "Members", "They read and write documents. Without names and roles, everybody does, also without a login."],
  ["admins", "Administrators", "They also write design documents and indexes, and change this page."],
];

export async function showAccess(root, { database }, { signal }) {
  add(root, heading(database, "Access"));
  const address = api.path(database, "_security");
  const security = await api.get(address, {}, signal);
  const control = (group, kind) =>
    h("input", { value: (security[group]?.[kind] ?? []).join(", "), spellcheck: "false", autocomplete: "off" });
  const controls = Object.fromEntries(groups.map(([group]) => [group, { names: control(group, "names"), roles: control(group, "roles") }]));
  const problem = h("p", { class: "problem", role: "alert" });
  add(root, h("form", { class: "stack card", onsubmit: async (event) => {
    event.preventDefault();
    problem.textContent = "";
    const changed = { ...security };
    for (const [group] of groups) {
      const { names, roles } = controls[group];
      changed[group] = { ...security[group], names: listed(names.value), roles: listed(roles.value) };
    }
    try {
      await api.ask("PUT", address, { body: changed });
      notice("Saved. It counts from the next request on.");
    } catch (error) {
      problem.textContent = error.message;
    }
  } },
  groups.map(([group, title, about]) => h("fieldset", {}, h("legend", {}, title), h("p", { class: "summary" }, about),
    field("Names", controls[group].names, "With commas between"), field("Roles", controls[group].roles, "With commas between"))),
  problem, h("div", { class: "actions" }, h("button", { class: "main" }, "Save"))));
}
