/** The streams of a store as a table. */

import { h } from "./dom.js";
import { address } from "./route.js";
import { duration, number, time } from "./words.js";

const DASH = "–";

/**
 * A heading, what stands below it for a stream and its node of the flow, and whether that is a number.
 * @type {[string, (each: any, node: any) => string, boolean?][]}
 */
const COLUMNS = [
  ["kind", (each) => each.kind],
  ["from", (each) => each.sources.join(", ") || DASH],
  ["batches", (each) => known(each.batches), true],
  ["rows", (each) => known(each.sink_rows), true],
  ["edges", (each) => known(each.edges), true],
  ["last batch", (each, node) => (node?.committed ? time(node.committed).replace(/\.\d+/, "") : DASH)],
  ["watermark", (each) => (each.watermark ? time(each.watermark) : DASH)],
  ["lag", (_, node) => (known(node?.lag_seconds) === DASH ? DASH : duration(node.lag_seconds))],
  ["U", (each) => bound(each.bounds)],
  ["capture", (each) => each.capture ?? DASH],
  ["exactness", (each) => (each.kind === "source" ? DASH : each.exactness ?? DASH)],
];

/**
 * @param {any[]} streams
 * @param {Map<string, any>} nodes of the flow, by stream
 */
export function streamTable(streams, nodes) {
  return h("div", { class: "stack" },
    h("div", { class: "sheet" }, h("table", {},
      h("caption", {}, "Streams"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "stream"),
        COLUMNS.map(([name, , right]) => h("th", { scope: "col", class: right && "number" }, name)))),
      h("tbody", {}, streams.map((each) => line(each, nodes.get(each.name)))))),
    gaps(streams));
}

function line(stream, node) {
  return h("tr", {},
    h("td", { data: { label: "stream" } },
      h("a", { href: address("results", { stream: stream.name }) }, stream.name)),
    COLUMNS.map(([name, write, right]) => {
      const text = write(stream, node);
      const classes = [right && "number", text === DASH && "unknown"].filter(Boolean).join(" ");
      return h("td", { class: classes || null, data: { label: name } }, text);
    }));
}

function known(value) {
  return value === null || value === undefined ? DASH : number(value);
}

/** The largest bound, or that there is none. */
function bound(bounds) {
  const micros = Object.values(bounds).map((each) => each.micros);
  if (!micros.length) return DASH;
  return micros.includes(null) ? "none" : duration(Math.max(...micros.map(Number)) / 1e6);
}

function gaps(streams) {
  const found = streams.flatMap((each) => each.gaps);
  return found.length > 0 && h("div", { class: "notice warn" },
    h("h2", {}, "Provenance is missing"),
    found.map((gap) => h("p", {}, gapText(gap))));
}

export function gapText(gap) {
  const which = gap.first === gap.last ? `batch ${gap.first}` : `batches ${gap.first} to ${gap.last}`;
  return `${which} of ${gap.writer}: ${gap.reason}`;
}
