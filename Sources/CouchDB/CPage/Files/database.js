// What all views of a database have in common: its name and its tabs.

import { h, name } from "./dom.js";
import { link } from "./router.js";

const tabs = [
  ["Documents", []], ["Query", ["query"]], ["Full text", ["search"]], ["Indexes and views", ["indexes"]], ["Access", ["access"]],
];

/** The head of a view; `here` is the label of its tab. */
export function heading(database, here, ...actions) {
  return [
    h("div", { class: "head" }, h("h1", {}, h("a", { href: "#/", class: "up" }, "Databases"), " / ", name(database)), actions),
    h("nav", { class: "tabs", "aria-label": "Database" }, tabs.map(([label, names]) =>
      h("a", { href: link(["db", database, ...names]), "aria-current": label === here ? "page" : undefined }, label))),
  ];
}

/** A name as an identifier of a query. */
export const quoted = (text) => `\`${text.replaceAll("`", "``")}\``;
