// A field for names or roles: one a line. Names may have commas and blanks in them.

import { field, h } from "./dom.js";

/** Makes one. `element` is what is shown. `value()` is the list; the same as before where nothing was typed. */
export function listField(label, items) {
  // A line break in a name would make two of it.
  const shown = (item) => String(item).replaceAll(/\r\n|\r|\n/g, "↵");
  const known = new Map((items ?? []).map((item) => [shown(item), item]));
  const text = (items ?? []).map(shown).join("\n");
  const area = h("textarea", {
    rows: Math.min(8, Math.max(2, known.size + 1)), value: text, spellcheck: "false", autocapitalize: "off", autocomplete: "off",
  });
  const value = () => {
    if (area.value === text) return items;
    const lines = area.value.split("\n").map((line) => (known.has(line) ? known.get(line) : line.trim()));
    return [...new Set(lines)].filter((item) => item !== "");
  };
  return { element: field(label, area, "One a line"), area, value };
}
