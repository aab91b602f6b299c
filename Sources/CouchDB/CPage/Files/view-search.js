// Full text: the documents that have some words, the best first, with the words marked.

import * as api from "./api.js";
import { heading, quoted } from "./database.js";
import { add, empty, field, h, name } from "./dom.js";
import { many, seconds } from "./format.js";
import { go, link } from "./router.js";

const pageLength = 20;
// Characters that no text has: they are for private use.
const [begin, end] = ["\uE000", "\uE001"];

export async function showSearch(root, { database }, { signal, options }) {
  add(root, heading(database, "Full text"));
  const { indexes } = await api.get(api.path(database, "_indexes"), {}, signal);
  const fullText = indexes.filter((index) => index.kind === "fulltext");
  if (fullText.length === 0) {
    add(root, empty("This database has no full-text index. ", h("a", { href: link(["db", database, "indexes"]) }, "Make one"), "."));
    return;
  }
  const words = h("input", { type: "search", value: options.words ?? "", spellcheck: "false", required: true, "data-first": true });
  const index = h("select", {}, fullText.map((item) => h("option", { value: item.name }, `${item.name} (${item.expressions.join(", ")})`)));
  index.value = options.index ?? fullText[0].name;
  add(root, h("form", { class: "row", role: "search", onsubmit: (event) => {
    event.preventDefault();
    go(["db", database, "search"], { words: words.value, index: index.value });
  } },
  field("Words", words, 'castle OR "old town" OR chat*'), field("Index", index), h("button", { class: "main" }, "Search")));
  if (!options.words) return;

  const skip = Number(options.skip) || 0;
  const text = quoted(index.value);
  const began = performance.now();
  const { rows } = await api.query(database, {
    query: `SELECT META().id AS id, SNIPPET(${text}, '${begin}', '${end}', '…', 30) AS snippet, RANK(${text}) AS rank
      FROM _ WHERE MATCH(${text}, $words) ORDER BY RANK(${text}) DESC LIMIT ${pageLength + 1} OFFSET ${skip}`,
    parameters: { words: options.words },
  }, { signal });
  const shown = rows.slice(0, pageLength);
  const turn = (label, rel, place) =>
    h("a", { class: "button", rel, href: link(["db", database, "search"], { ...options, skip: place || undefined }) }, label);
  const place = skip > 0 ? ` from ${skip + 1} on` : "";
  const found = rows.length > pageLength && skip === 0 ? `The first ${many(shown.length, "document")}` : `${many(shown.length, "document")}${place}`;
  add(root,
    h("p", { class: "summary", role: "status" }, `${found}. ${seconds((performance.now() - began) / 1000)}`),
    shown.length === 0 ? empty("No document has these words.") : h("ol", { class: "found", start: skip + 1 }, shown.map(({ id, snippet, rank }) =>
      h("li", {}, h("a", { href: link(["db", database, "doc", id]) }, name(id)), " ", h("small", {}, `rank ${Number(rank).toFixed(2)}`),
        h("p", { dir: "auto" }, marked(snippet ?? ""))))),
    h("div", { class: "pages" },
      skip > 0 && turn("Previous", "prev", Math.max(0, skip - pageLength)),
      rows.length > pageLength && turn("Next", "next", skip + pageLength)));
}

/** A text with its marked parts as elements. */
function marked(text) {
  return text.split(begin).flatMap((part, index) => {
    if (index === 0) return part;
    const [hit, ...rest] = part.split(end);
    return [h("mark", {}, hit), rest.join(end)];
  });
}
