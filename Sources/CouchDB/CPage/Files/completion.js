// Completes words in a query: keywords, functions, and the names of properties.

import { h, name } from "./dom.js";

const shown = 8;
const wordEnd = /[\p{L}\p{N}_$.]*$/u;
let lists = 0;

/**
 * Offers words below a text field while somebody types. `words()` is what there is: `{ text, kind }`.
 *
 * Arrow keys choose, Enter or Tab takes, Esc closes, Ctrl Space opens.
 */
export function complete(area, words) {
  const list = h("ul", { class: "completion", role: "listbox", id: `completion-${++lists}`, "aria-label": "Words", hidden: true });
  let found = [];
  let chosen = -1;

  area.setAttribute("role", "combobox");
  area.setAttribute("aria-autocomplete", "list");
  area.setAttribute("aria-controls", list.id);
  area.setAttribute("aria-expanded", "false");

  /** What stands before the cursor, from the last blank or dot on. */
  function begun() {
    const before = area.value.slice(0, area.selectionStart);
    return wordEnd.exec(before)[0].split(".").at(-1);
  }

  function close() {
    list.hidden = true;
    chosen = -1;
    area.setAttribute("aria-expanded", "false");
    area.removeAttribute("aria-activedescendant");
  }

  function open(least) {
    const start = begun();
    const lower = start.toLowerCase();
    found = start.length < least ? [] : words().filter(({ text }) => text.toLowerCase().startsWith(lower));
    // A word that is whole needs no completion, and Enter begins a line.
    if (found.length === 0 || found.some(({ text }) => text.toLowerCase() === lower)) return close();
    found = found.slice(0, shown);
    list.replaceChildren(...found.map(({ text, kind }, index) =>
      h("li", { role: "option", id: `${list.id}-${index}`, "aria-selected": "false", onmousedown: (event) => {
        event.preventDefault();
        take(index);
      } }, name(text), " ", h("small", {}, kind))));
    list.hidden = false;
    area.setAttribute("aria-expanded", "true");
    return choose(0);
  }

  function choose(index) {
    chosen = (index + found.length) % found.length;
    [...list.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === chosen)));
    area.setAttribute("aria-activedescendant", list.children[chosen].id);
  }

  function take(index) {
    const end = area.selectionStart;
    area.setRangeText(found[index].insert ?? found[index].text, end - begun().length, end, "end");
    close();
    area.focus();
  }

  area.addEventListener("input", () => open(2));
  area.addEventListener("blur", close);
  area.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      open(0);
    }
    if (list.hidden || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter" || event.key === "Tab") take(chosen);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  return list;
}
