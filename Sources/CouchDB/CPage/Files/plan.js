// The plan of a query, drawn from the text of EXPLAIN: a tree, with the rows and the time of each step where the query was run.

import { h } from "./dom.js";
import { count, seconds } from "./format.js";

const units = { s: 1, ms: 1e-3, µs: 1e-6, ns: 1e-9 };

/** The steps of a plan: `{ label, facts, seconds, children }`. Each query of several has a tree of its own. */
export function parsePlan(lines) {
  const roots = [];
  const open = [];
  for (const line of lines) {
    const mark = line.search(/[└├]─ /);
    const depth = mark < 0 ? 0 : mark / 3 + 1;
    const whole = mark < 0 ? line : line.slice(mark + 3);
    // The last parentheses have the numbers.
    const facts = /^(.*?) \(((?:estimated rows|rows|looked at) [^()]*)\)$/.exec(whole);
    const step = { label: facts ? facts[1] : whole, facts: facts ? facts[2].split(", ") : [], children: [] };
    const time = step.facts.map((fact) => /^([\d.,]+) (s|ms|µs|ns)$/.exec(fact)).find(Boolean);
    if (time) {
      step.seconds = Number(time[1].replaceAll(",", "")) * units[time[2]];
      step.facts = step.facts.filter((fact) => fact !== time[0]);
    }
    open.length = depth;
    if (depth === 0) roots.push(step);
    else open[depth - 1].children.push(step);
    open.push(step);
  }
  return roots;
}

/** Draws a plan. Rows flow from the bottom to the top. */
export function drawPlan(lines) {
  const roots = parsePlan(lines);
  const all = (step) => [step, ...step.children.flatMap(all)];
  const longest = Math.max(0, ...roots.flatMap(all).map((step) => step.seconds ?? 0));

  function draw(step) {
    const fill = h("span", { class: "fill", "aria-hidden": "true" });
    if (longest > 0) fill.style.width = `${Math.max(2, (100 * (step.seconds ?? 0)) / longest)}%`;
    const facts = step.facts.join(", ").replaceAll(/\d{4,}/g, (digits) => count(Number(digits)));
    return h("li", {},
      h("div", { class: "step" }, h("strong", {}, step.label), facts && h("small", {}, facts),
        step.seconds !== undefined && h("span", { class: "time" }, fill, seconds(step.seconds))),
      step.children.length > 0 && h("ul", {}, step.children.map(draw)));
  }
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Plan" }, h("ul", { class: "plan" }, roots.map(draw)));
}
