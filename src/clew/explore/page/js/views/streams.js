/** All queries of the store as one flow, with what each step does and how far it is. */

import { ask } from "../api.js";
import { h } from "../dom.js";
import { Drawing } from "../drawing.js";
import { live } from "../live.js";
import { address, go } from "../route.js";
import { Section, noData } from "../section.js";
import { streamTable } from "../streams.js";
import { count, duration, number, time } from "../words.js";

export function streams(main, query, signal) {
  const lead = h("p", { class: "lead" });
  const part = new Section("Flow and streams");
  const table = h("div");
  const drawing = new Drawing({
    label: "The flow of rows from sources to sinks", signal, text: nodeText, tell: nodeTold,
    choose: (node) => panel.replaceChildren(...(node ? facts(node) : [])),
    open: (node) => node.stream && go("results", { stream: node.stream }),
  });
  const panel = h("aside", { class: "stack", "aria-label": "The chosen step" });
  main.append(h("div", { class: "head" }, h("h1", { tabindex: -1 }, "Streams"), lead), part.element);
  const asked = () => Promise.all([ask("streams", {}, { signal }), ask("flow", {}, { signal })]);
  const load = () => part.load(asked, ([{ streams: all }, flow]) => {
    lead.textContent = summary(all);
    if (!all.length) return noData();
    drawing.update(flow);
    table.replaceChildren(streamTable(all, new Map(flow.nodes.map((node) => [node.stream, node]))));
    return part.element.contains(drawing.element) ? null : [drawing.element, panel, table];
  });
  live.follow(load, signal);
  load();
}

function summary(all) {
  const sinks = all.filter((each) => each.kind === "sink");
  const sum = (field) => sinks.reduce((total, each) => total + (each[field] ?? 0), 0);
  if (!all.length) return "";
  return `${count(all.length, "stream")}: ${count(sinks.length, "query")} `
    + `with ${count(sum("batches"), "batch")}, ${count(sum("sink_rows"), "result")} and `
    + `${count(sum("edges"), "edge")}. Choose a step to read what it does.`;
}

function nodeText(node) {
  if (node.kind === "step") return node.label;
  const rows = node.rows === null || node.rows === undefined ? "" : `\n${count(node.rows, "row")}`;
  return `${node.label}${rows}`;
}

function nodeTold(node) {
  const what = node.kind === "step" ? node.detail : node.kind;
  return [h("strong", {}, node.label), what ? ` · ${what}` : ""];
}

/** What is known of a node, in the order in which one would ask. */
function facts(node) {
  const known = [
    ["Rows", node.rows, number], ["Edges", node.edges, number], ["Batches", node.batches, number],
    ["Last batch", node.last_batch, String], ["Committed", node.committed, time],
    ["Watermark", node.watermark, time], ["Lag", node.lag_seconds, duration],
    ["Bound U", node.bound, bound], ["Capture", node.capture, String],
    ["Exactness", node.exactness, String],
  ].filter(([, value]) => value !== null && value !== undefined);
  return [h("div", { class: "card" },
    h("header", {}, h("h2", {}, node.label), h("span", { class: "chip" }, node.kind),
      node.stream && h("a", {
        class: "button push", href: address("results", { stream: node.stream }),
      }, "Show its rows")),
    node.detail && h("p", { class: "mono" }, node.detail),
    known.length > 0 && h("dl", { class: "facts" }, known.map(([name, value, write]) =>
      h("div", {}, h("dt", {}, name), h("dd", {}, write(value))))),
    node.why && h("p", { class: "soft small" }, node.why),
    node.writer && h("p", { class: "soft small" }, `query ${node.writer}`))];
}

function bound(value) {
  return typeof value === "number" ? duration(value) : String(value);
}
