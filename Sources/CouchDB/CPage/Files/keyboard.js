// Shortcuts. None works while somebody types, but for those with Ctrl, which the views take themselves.

import { button, h } from "./dom.js";
import { show } from "./dialog.js";

const places = { d: ["Databases", []], r: ["Replications", ["replications"]], u: ["Users", ["users"]], b: ["Bench", ["bench"]] };

/** Goes where the keys lead: `g` and a letter, `/`, `?`. */
export function watchKeys(go) {
  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select, dialog");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const place = isGoing && places[event.key];
    isGoing = event.key === "g";
    if (place) go(place[1]);
    else if (event.key === "?") showShortcuts();
    else if (event.key === "/") document.querySelector("#view [data-first]")?.focus();
    else return;
    event.preventDefault();
  });
}

/** Runs `act` on Ctrl (or ⌘) and a key in an element. */
export function onControl(element, key, act) {
  element.addEventListener("keydown", (event) => {
    if (event.key !== key || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    act();
  });
}

export function showShortcuts() {
  const rows = [
    ...Object.entries(places).map(([key, [label]]) => [`g ${key}`, label]),
    ["/", "To the first field of the view"], ["?", "These shortcuts"], ["Esc", "Closes a dialog or a list"],
    ["Ctrl Enter", "Runs the query"], ["Ctrl S", "Saves the document"],
    ["Ctrl Space", "Completes a word in the query"],
  ];
  return show("Keyboard shortcuts", (close) =>
    h("div", { class: "stack" },
      h("dl", { class: "keys" }, rows.map(([keys, label]) => [
        h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, label)])),
      h("div", { class: "actions" }, button("Close", () => close(), { autofocus: true }))));
}
