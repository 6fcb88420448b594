/** Where questions about a row lead. */

import { h } from "./dom.js";
import { address } from "./route.js";
import { rowLabel } from "./words.js";

/**
 * The questions that a row can be asked: a source row what it did, a result why it is there, and a row
 * in between both.
 * @param {Map<string, any>} streams by name, as the server describes them
 */
export function questions(streams, row) {
  const stream = streams.get(row.stream);
  const asked = { stream: row.stream, row: row.id };
  const about = rowLabel(row);
  const why = h("a", {
    class: "button", href: address("why", asked), "aria-label": `Why? Row ${about}`,
  }, "Why?");
  const did = h("a", {
    class: "button", href: address("forward", asked), "aria-label": `What did it do? Row ${about}`,
  }, "What did it do?");
  if (!stream || stream.kind === "source") return [did];
  return stream.kind === "named" || stream.feeds.length ? [why, did] : [why];
}

/** Streams by name. */
export function byName(list) {
  return new Map(list.map((stream) => [stream.name, stream]));
}

export function crumbs(stream, row) {
  return h("nav", { class: "crumbs", "aria-label": "Where this is" },
    h("a", { href: address("results") }, "Results"), " / ",
    h("a", { href: address("results", { stream }) }, stream),
    row && ` / ${row}`);
}
