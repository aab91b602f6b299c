// Dialogs. The browser keeps the focus in them, and Esc closes them.

import { button, field, h, name } from "./dom.js";

/** Shows a dialog. `fill(close)` returns its content. Resolves with what `close` gets; undefined if it is cancelled. */
export function show(title, fill) {
  return new Promise((resolve) => {
    let result;
    const heading = h("h2", { id: "dialog-title" }, title);
    const dialog = h("dialog", { "aria-labelledby": "dialog-title" }, heading);
    const close = (value) => {
      result = value;
      dialog.close();
    };
    dialog.append(fill(close));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(result);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/**
 * Shows a form in a dialog. `act` is called when it is sent; what it throws is shown, and the dialog stays. Resolves with its result, or with
 * true if it has none.
 *
 * `fields` are `{ label, control, hint }`, or elements.
 */
export function form(title, verb, fields, act) {
  return show(title, (close) => {
    const problem = h("p", { class: "problem", role: "alert" });
    const send = h("button", { class: "main" }, verb);
    const content = h("form", { class: "stack" },
      fields.map((row) => (row instanceof Node ? row : field(row.label, row.control, row.hint))),
      problem,
      h("div", { class: "actions" }, button("Cancel", () => close()), send));
    content.addEventListener("submit", async (event) => {
      event.preventDefault();
      problem.textContent = "";
      send.disabled = true;
      try {
        close((await act()) ?? true);
      } catch (error) {
        problem.textContent = error.message;
      }
      send.disabled = false;
    });
    return content;
  });
}

/** Asks before something is deleted for good. If `typed` is given, it has to be typed. Resolves with true if so. */
export function confirm(title, text, verb, typed) {
  if (typed === undefined) {
    return show(title, (close) =>
      h("div", { class: "stack" }, h("p", {}, text),
        h("div", { class: "actions" }, button("Cancel", () => close()),
          button(verb, () => close(true), { class: "danger" }))));
  }
  const control = h("input", { autocomplete: "off", spellcheck: "false", autofocus: true });
  return form(title, verb, [h("p", {}, text, " Type ", name(typed), " to go on."), { label: "Name", control }], () => {
    if (control.value !== typed) throw new Error("That is another name.");
  });
}
