// The revisions of a document: read, and drawn as a tree.

import * as api from "./api.js";
import { h, s } from "./dom.js";

// The leaves of a document whose histories are read.
const shownLeaves = 40;

/** The leaves of a document, the current one first. `left` is how many there are beyond those. */
export async function readBranches(database, id, signal) {
  const address = api.path(database, id);
  let winner;
  let others = [];
  try {
    const about = await api.get(address, { conflicts: true, deleted_conflicts: true }, signal);
    winner = about._rev;
    others = [...(about._conflicts ?? []), ...(about._deleted_conflicts ?? [])];
  } catch (error) {
    if (error.status !== 404) throw error;
  }
  const wanted = winner && others.length >= shownLeaves ? JSON.stringify([winner, ...others.slice(0, shownLeaves - 1)]) : "all";
  const answer = await api.getExact(address, { open_revs: wanted, revs: true }, signal);
  const list = answer.filter((item) => item.ok).map(({ ok: { _revisions, ...body } }) => ({
    revision: body._rev,
    history: _revisions.ids.map((suffix, index) => `${_revisions.start - index}-${suffix}`),
    isDeleted: body._deleted === true,
    isWinner: body._rev === winner,
    body,
  }));
  list.sort((a, b) => b.isWinner - a.isWinner || a.isDeleted - b.isDeleted);
  return { list, left: Math.max(0, others.length + 1 - list.length) };
}

/** The nodes of the tree: leaves, places where branches part, the first revisions, and the parents of leaves. Others are counted. */
function treeOf(branches) {
  const children = new Map();
  for (const { history } of branches) {
    history.forEach((revision, index) => {
      if (!children.has(revision)) children.set(revision, new Set());
      if (index > 0) children.get(revision).add(history[index - 1]);
    });
  }
  const leaves = new Map(branches.map((branch) => [branch.revision, branch]));
  const parents = new Set(branches.map((branch) => branch.history[1]));
  const isShown = (revision, isFirst) => isFirst || leaves.has(revision) || parents.has(revision) || children.get(revision).size > 1;
  const nodes = new Map();
  branches.forEach(({ history }, row) => {
    let previous;
    let skipped = 0;
    [...history].reverse().forEach((revision, index) => {
      if (!isShown(revision, index === 0)) {
        skipped += 1;
        return;
      }
      if (!nodes.has(revision)) {
        const column = previous ? nodes.get(previous).column + (skipped > 0 ? 2 : 1) : 0;
        nodes.set(revision, { revision, row, column, parent: previous, skipped, leaf: leaves.get(revision) });
      }
      previous = revision;
      skipped = 0;
    });
  });
  return [...nodes.values()];
}

const step = { x: 130, y: 56 };

/** Draws branches. `address(revision)` is where a click leads. */
export function drawTree(branches, address) {
  const nodes = treeOf(branches);
  const places = new Map(nodes.map((node) => [node.revision, { x: 60 + node.column * step.x, y: 24 + node.row * step.y }]));
  const width = 60 + Math.max(...nodes.map((node) => node.column)) * step.x + 70;
  const height = branches.length * step.y + 8;
  const lines = nodes.filter((node) => node.parent).map((node) => {
    const from = places.get(node.parent);
    const to = places.get(node.revision);
    const middle = (from.x + to.x) / 2;
    return [
      s("path", { class: node.skipped > 0 ? "edge gap" : "edge", d: `M${from.x} ${from.y} C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}` }),
      node.skipped > 0 && s("text", { x: middle, y: to.y - 8, class: "note" }, `${node.skipped} more`),
    ];
  });
  const dots = nodes.map((node) => {
    const { x, y } = places.get(node.revision);
    const state = stateOf(node.leaf);
    return s("a", { href: address(node.revision), "aria-label": `${node.revision}${state ? `, ${state}` : ""}` },
      s("title", {}, `${node.revision}${state ? ` (${state})` : ""}`),
      s("circle", { cx: x, cy: y, r: 9, class: `revision ${state.split(" ")[0] || "inner"}` }),
      node.leaf?.isDeleted && s("path", { class: "cross", d: `M${x - 4} ${y - 4} l8 8 m0 -8 l-8 8` }),
      s("text", { x, y: y + 25, class: "label" }, node.revision.length > 12 ? `${node.revision.slice(0, 11)}…` : node.revision));
  });
  const kinds = [...new Set(branches.map((branch) => stateOf(branch)))];
  return h("div", {},
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Tree of revisions" },
      s("svg", {
        class: "tree", width, height, viewBox: `0 0 ${width} ${height}`, role: "group",
        "aria-label": `${nodes.length} revisions in ${branches.length} branches`,
      }, lines, dots)),
    h("p", { class: "legend" }, kinds.map((kind) => [h("span", { class: `dot ${kind.split(" ")[0]}`, "aria-hidden": "true" }), ` ${kind} `])));
}

/** What a leaf is, in words; empty for a revision that is none. */
function stateOf(leaf) {
  if (!leaf) return "";
  if (leaf.isDeleted) return "deleted leaf";
  return leaf.isWinner ? "current leaf" : "conflict leaf";
}
