// A field for JSON that says, while somebody types, what is wrong and where.

import { button, h } from "./dom.js";
import * as json from "./json.js";

// Lines that it shows; it can be made larger.
const [least, most] = [6, 28];
let editors = 0;

/** Makes one. `editor.element` is what is shown, `editor.value()` the value; it throws `JSONError`. */
export function jsonEditor(label, text) {
  const number = ++editors;
  const rows = Math.min(most, Math.max(least, text.split("\n").length + 1));
  const area = h("textarea", {
    id: `editor-${number}`, class: "code", rows, value: text, spellcheck: "false", autocapitalize: "off", autocomplete: "off",
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
    try {
      check();
    } catch {
      // It is shown.
    }
  });
  // Tab leaves the field, as in every form.
  return { element: h("div", {}, h("label", { for: area.id, class: "hidden" }, label), area, problem), area, value: check };
}
