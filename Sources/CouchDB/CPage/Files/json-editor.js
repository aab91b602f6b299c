// A field for JSON that says, while somebody types, what is wrong and where. A large text is looked at when its value is asked for.

import { button, h } from "./dom.js";
import * as json from "./json.js";

// Lines that it shows; it can be made larger.
const [least, most] = [6, 28];
// Characters of a large text. A browser takes seconds to wrap such lines, and reading it anew with each key would halt the keys.
const large = 100_000;
// Lines are what takes a browser longest: 3 s for 200,000 of them.
const mostLines = 10_000;
let editors = 0;

/** A document as text. If that had very many lines, each member of the document has one. */
export function documentText(body) {
  const text = json.text(body);
  if (text.length <= large || text.split("\n").length <= mostLines) return text;
  return `{\n${Object.entries(body).map(([key, value]) => `  ${JSON.stringify(key)}: ${json.text(value, false)}`).join(",\n")}\n}`;
}

/** Makes one. `editor.element` is what is shown, `editor.value()` the value; it throws `JSONError`. */
export function jsonEditor(label, text) {
  const number = ++editors;
  const isLarge = text.length > large;
  const rows = isLarge ? most : Math.min(most, Math.max(least, text.split("\n").length + 1));
  const area = h("textarea", {
    id: `editor-${number}`, class: "code", rows, wrap: isLarge && "off", value: text, spellcheck: "false", autocapitalize: "off", autocomplete: "off",
    "aria-describedby": `editor-${number}-problem`,
  });
  const problem = h("p", { class: "problem", id: `editor-${number}-problem`, role: "status" });

  function check() {
    try {
      const value = json.parse(area.value);
      problem.replaceChildren();
      area.removeAttribute("aria-invalid");
      return value;
    } catch (error) {
      area.setAttribute("aria-invalid", "true");
      problem.replaceChildren(`Line ${error.line}, column ${error.column}: ${error.message}. `, button("Show", () => {
        area.focus();
        area.setSelectionRange(error.offset, Math.min(error.offset + 1, area.value.length));
      }, { class: "quiet" }));
      throw error;
    }
  }

  area.addEventListener("input", () => {
    if (area.value.length > large) return;
    try {
      check();
    } catch {
      // It is shown.
    }
  });
  // Tab leaves the field, as in every form.
  return { element: h("div", {}, h("label", { for: area.id, class: "hidden" }, label), area, problem), area, value: check };
}
