// Makes elements. Every string becomes a text node, so that no name and no value of a user is ever read as markup.

const svgNamespace = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** An element of HTML: `h("a", { href: "#/", onclick: go }, "text", other)`. */
export const h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);

/** An element of SVG. */
export const s = (tag, properties, ...children) =>
  fill(document.createElementNS(svgNamespace, tag), properties, children);

/** A name that somebody has chosen, kept apart from the direction of the text around it. */
export const name = (text) => h("bdi", { class: "name" }, text);

/** Adds to an element: elements, texts, and lists of them. */
export const add = (element, ...children) => fill(element, {}, children);

/** A button. */
export const button = (label, onclick, properties) => h("button", { type: "button", onclick, ...properties }, label);

let fields = 0;

/** A label with its control. */
export function field(label, control, hint) {
  control.id ||= `field-${++fields}`;
  const note = hint && h("small", { id: `${control.id}-hint` }, hint);
  if (note) control.setAttribute("aria-describedby", note.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, note);
}

/** A box with a label behind it. */
export const checkbox = (label, control) => h("label", { class: "check" }, control, " ", label);

/**
 * A table. `columns` are texts or elements; each row is a list of cells. It scrolls sideways where the window is narrow. A last column without
 * a name has the buttons: it stays in sight.
 */
export function table(caption, columns, rows) {
  const isFixed = columns.at(-1) === "";
  return h("div", { class: isFixed ? "scroll fixed" : "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col" }, column)))),
      h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((cell) => h("td", {}, cell)))))));
}

/** What is said where there is nothing. */
export const empty = (...text) => h("p", { class: "empty" }, ...text);

/** Says for a moment what was done, in the place of what was said before. */
export function notice(text) {
  const box = h("p", {}, text);
  document.getElementById("notices").replaceChildren(box);
  setTimeout(() => box.remove(), 6000);
}
