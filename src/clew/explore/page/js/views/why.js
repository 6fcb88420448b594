/** Why is this row here? The rows it was made from, how, when, and which of them matter most. */

import { h } from "../dom.js";
import { InfluencePart } from "../influence.js";
import { live } from "../live.js";
import { address } from "../route.js";
import { Section, nothing } from "../section.js";
import { timeline } from "../timeline.js";
import { TraceView } from "../trace.js";
import { count } from "../words.js";

export async function why(main, query, signal) {
  const view = new TraceView({ direction: "backward", query, signal, root: main });
  const side = h("div", { class: "stack" });
  const times = new Section("Timeline");
  const influence = new InfluencePart(view);
  view.shown = () => side.replaceChildren(view.subject(), more(view), path(view.trace));
  view.parts.push(times.element, influence.element);
  main.append(view.head, view.drawing.element,
    h("div", { class: "beside" },
      h("div", { class: "stack" }, view.answer.element, times.element, influence.element), side));
  live.follow(() => !view.trace?.complete && view.load(), signal);
  const asked = { stream: view.stream, row: view.row };
  const loaded = view.load();
  times.load(() => view.ask("timeline", asked), (data) => onAxis(data, signal));
  influence.load();
  await loaded;
  return (next) => view.follow(next);
}

/** What else can be asked about a result. */
function more({ stream, row, streams }) {
  const feeds = streams.get(stream)?.feeds.length || streams.get(stream)?.kind === "named";
  return h("div", { class: "card" }, h("h2", {}, "Ask more"),
    h("div", { class: "stack" },
      h("a", { class: "button", href: address("compare", { stream, row }) }, "Compare with another row"),
      h("a", { class: "button", href: address("minimize", { stream, row }) }, "Find a minimal cause"),
      feeds && h("a", { class: "button", href: address("forward", { stream, row }) }, "What did it do?")));
}

function path(trace) {
  return h("div", { class: "card" }, h("h2", {}, "Path"),
    h("ol", { class: "path" }, trace.path.map((line) => h("li", {}, line))));
}

/** The timeline, drawn anew whenever its place changes its width. */
function onAxis(data, signal) {
  const title = h("h2", {}, "On the time axis");
  if (!data.from) return h("div", { class: "card" }, title, nothing("No times", "These rows have no event time."));
  const place = h("div");
  let width = 0;
  const observer = new ResizeObserver(() => {
    if (!place.clientWidth || place.clientWidth === width) return;
    width = place.clientWidth;
    place.replaceChildren(timeline(data, width));
  });
  observer.observe(place);
  signal.addEventListener("abort", () => observer.disconnect());
  return h("div", { class: "card" }, title, place,
    data.untimed > 0 && h("p", { class: "soft small" }, `${count(data.untimed, "row")} without an event time`));
}
