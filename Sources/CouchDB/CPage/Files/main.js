// Starts the page: its views, the login, and the keyboard.

import * as api from "./api.js";
import { add, button, empty, h, name } from "./dom.js";
import { isEdited, mayLeave } from "./edits.js";
import { current, go, route } from "./router.js";
import { logIn, logOut, session } from "./session.js";
import { showShortcuts, watchKeys } from "./keyboard.js";
import { showBench } from "./view-bench.js";
import { showAccess } from "./view-access.js";
import { showDatabases } from "./view-databases.js";
import { showDocument, showNewDocument } from "./view-document.js";
import { showDocuments } from "./view-documents.js";
import { showIndexes } from "./view-indexes.js";
import { showQuery } from "./view-query.js";
import { showReplications } from "./view-replications.js";
import { showSearch } from "./view-search.js";
import { showUsers } from "./view-users.js";
import { showView } from "./view-view.js";

route("/", "Databases", showDatabases);
route("/replications", "Replications", showReplications);
route("/users", "Users", showUsers);
route("/bench", "Bench", showBench);
route("/db/{database}", "Documents", showDocuments);
route("/db/{database}/doc/{id}", "Document", showDocument);
route("/db/{database}/new", "New document", showNewDocument);
route("/db/{database}/query", "Query", showQuery);
route("/db/{database}/search", "Full text", showSearch);
route("/db/{database}/indexes", "Indexes and views", showIndexes);
route("/db/{database}/view/{design}/{view}", "View", showView);
route("/db/{database}/access", "Access", showAccess);

const view = document.getElementById("view");
const who = document.getElementById("who");
let leave = new AbortController();

/** Shows the view that the address names. What the one before has begun is ended. */
async function show() {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const found = current();
  const title = found ? [found.values.id ?? found.title, found.values.database].filter(Boolean).join(" – ") : "Not found";
  document.title = `${title} – Touchstone`;
  for (const link of document.querySelectorAll("#nav a")) {
    const isHere = link.hash === `#/${found?.names[0] === "db" ? "" : found?.names[0] ?? ""}`;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const root = h("div", { class: "view" });
  view.replaceChildren(root);
  view.setAttribute("aria-busy", "true");
  try {
    if (!found) add(root, empty("There is no such page. ", h("a", { href: "#/" }, "All databases")));
    else await found.show(root, found.values, { signal, options: found.options, reload: show });
  } catch (error) {
    if (signal.aborted) return;
    root.append(failure(error));
  }
  if (signal.aborted) return;
  view.removeAttribute("aria-busy");
}

/** What is shown in the place of a view that can't be. */
function failure(error) {
  if (error.status === 401 || error.status === 403) {
    return empty(session.name ? "You may not see this. " : "You have to log in to see this. ",
      button(session.name ? "Log in as somebody else" : "Log in", logIn));
  }
  if (error.status === 404) return empty("This isn't there: ", error.message, ".");
  return h("div", { class: "problem", role: "alert" }, h("p", {}, error.message), button("Try again", show));
}

/** Shows who is logged in. */
function showWho() {
  if (session.name) who.replaceChildren(name(session.name), button("Log out", async () => (await mayLeave()) && logOut(), { class: "quiet" }));
  else if (session.isOpen) who.replaceChildren(h("span", { title: "The server has no administrators: everybody is one" }, "no logins"));
  else who.replaceChildren(button("Log in", logIn));
}

document.addEventListener("session-changed", () => {
  showWho();
  // A session that has ended doesn't take a text along. After a new login, it can be saved.
  if (!isEdited()) show();
});
document.addEventListener("login-needed", () => session.expire());
let asked = false;
window.addEventListener("hashchange", async (event) => {
  if (isEdited() && event.newURL !== event.oldURL) {
    // The address has changed already. The old one stays while somebody decides.
    history.replaceState(null, "", event.oldURL);
    if (asked) return;
    asked = true;
    if (await mayLeave()) location.href = event.newURL;
    asked = false;
    return;
  }
  await show();
  window.scrollTo(0, 0);
  // Somebody may have begun to type.
  if (!view.contains(document.activeElement)) view.focus({ preventScroll: true });
});
document.getElementById("help").addEventListener("click", showShortcuts);
watchKeys(go);

try {
  await session.read();
  showWho();
  show();
} catch (error) {
  view.replaceChildren(empty("The server doesn't answer: ", error.message));
}
