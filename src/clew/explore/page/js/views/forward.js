/** What did this row do? The results it went into so far, and whether more may follow; live. */

import { h, prose } from "../dom.js";
import { live } from "../live.js";
import { tell } from "../news.js";
import { address } from "../route.js";
import { Section } from "../section.js";
import { TraceView } from "../trace.js";
import { count, time } from "../words.js";

const WORDS = {
  alive: "Alive: more results may follow",
  expired: "Expired: nothing more will follow",
};

export async function forward(main, query, signal) {
  const view = new TraceView({
    direction: "forward", query, signal, root: main, extra: [{
      name: "status", value: (row) => row.status,
      show: (row) => (row.status ? badge(row.status, row.status, until(row)) : ""),
    }],
  });
  const side = h("div", { class: "stack" });
  const life = new Section("Alive or expired");
  const { stream, row } = view;
  view.shown = () => side.replaceChildren(...[view.subject(), more(view)].filter((each) => each !== false));
  view.arrived = (fresh) => fresh && tell(`${count(fresh, "new result")} of this row`);
  const status = () => life.load(() => view.ask("status", { stream, row }), shownLife);
  view.parts.push(life.element);
  main.append(view.head, life.element, h("div", { class: "beside" }, view.answer.element, side),
    view.drawing.element);
  live.follow(() => { view.load(); status(); }, signal);
  const loaded = view.load();
  status();
  await loaded;
  return (next) => view.follow(next);
}

/**
 * @param {string} state
 * @param {string} text
 * @param {string|null} [title]
 */
function badge(state, text, title) {
  return h("span", { class: "badge", data: { state }, title }, text);
}

function shownLife(data) {
  return h("div", { class: "life" }, badge(data.status, WORDS[data.status] ?? data.status),
    h("span", { class: "soft" }, until(data)), data.why && h("span", { class: "soft small" }, prose(data.why)));
}

/** When the row expires, in event time: not a clock's but the watermark's. */
function until({ status, expires, watermark }) {
  const now = watermark ? `the watermark is at ${time(watermark)}` : "";
  if (!expires) return now;
  const when = status === "alive" ? "It expires when the watermark passes" : "It expired when the watermark passed";
  return `${when} ${time(expires)}${now && `; ${now}`}.`;
}

function more(view) {
  const { stream, row } = view;
  const derived = view.streams.get(stream)?.kind !== "source";
  return derived && h("div", { class: "card" }, h("h2", {}, "Ask more"),
    h("a", { class: "button", href: address("why", { stream, row }) }, "Why is it here?"));
}
