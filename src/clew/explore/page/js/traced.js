/** The drawing of an answer: source rows, steps, results, and what is large as groups. */

import { h } from "./dom.js";
import { Drawing } from "./drawing.js";
import { address, go } from "./route.js";
import { Section } from "./section.js";
import { clock, count, lastPart, number } from "./words.js";

const VIEW = { backward: "why", forward: "forward" };

export class TraceDrawing {
  /** @param {import("./trace.js").TraceView} view */
  constructor(view) {
    this.view = view;
    this.section = new Section("Drawing");
    this.depth = h("span");
    this.note = h("span", { class: "soft small" });
    this.drawing = new Drawing({
      label: "How rows became results, step by step", signal: view.signal,
      highlights: view.highlights, text, tell, actions: (node) => this.#actions(node),
      open: (node) => this.#open(node),
    });
    this.frame = h("div", { class: "stack" },
      h("div", { class: "row" }, h("h2", {}, "From source rows to results"), this.note,
        h("span", { class: "push" }, this.depth)),
      this.drawing.element, legend());
  }

  get element() {
    return this.section.element;
  }

  load() {
    const { view } = this;
    const question = { direction: view.direction, ...view.entries({}) };
    this.section.load(() => view.ask("drawing", question), (data) => {
      this.depth.replaceChildren(view.controls.depth());
      this.note.textContent = data.left_out
        ? `${count(data.rows, "row")}: ${number(data.shown)} shown, ${number(data.left_out)} more in groups` : "";
      this.drawing.update(data);
      return this.section.element.contains(this.frame) ? null : this.frame;
    });
  }

  #expand(node) {
    const expand = [...new Set([...this.view.query.getAll("expand"), node.key])];
    go(VIEW[this.view.direction], this.view.entries({ expand }));
  }

  #open(node) {
    if (node.kind === "group") this.#expand(node);
    else if (node.kind === "row" && !node.asked) go(this.#view(node), asked(node));
  }

  /** A source row is asked what it did, any other row why it is there. */
  #view(node) {
    return this.view.streams.get(node.stream)?.kind === "source" ? "forward" : "why";
  }

  #actions(node) {
    if (node.kind === "group") {
      return [h("button", { type: "button", on: { click: () => this.#expand(node) } }, "Show more")];
    }
    if (node.kind !== "row" || node.asked) return [];
    const view = this.#view(node);
    return [h("a", { class: "button", href: address(view, asked(node)) },
      view === "why" ? "Why?" : "What did it do?")];
  }
}

function asked(node) {
  return { stream: node.stream, row: node.id };
}

/** What stands in a node: what a row is called, and its time or stream. */
function text(node, narrow) {
  const most = narrow ? 14 : 19;
  if (node.kind === "group") return `${number(node.count)} more`;
  if (node.kind === "step") return cut(node.label, 13);
  return `${cut(lastPart(node.label), most)}\n${node.time ? clock(node.time) : cut(node.stream, most)}`;
}

/** Leave out the middle of what is too long: ends tell rows apart. */
function cut(label, most) {
  if (label.length <= most) return label;
  return `${label.slice(0, Math.ceil(most / 2) - 1)}…${label.slice(-Math.floor(most / 2))}`;
}

function tell(node) {
  if (node.kind === "group") {
    return [h("strong", {}, `${number(node.count)} more rows`), ` of ${node.stream}`,
      node.detail ? ` · ${node.detail}` : ""];
  }
  const where = node.kind === "row" ? ` · ${node.stream}` : "";
  return [h("strong", {}, node.label), where, node.detail ? ` · ${node.detail}` : ""];
}

function legend() {
  return h("div", { class: "legend", "aria-hidden": "true" },
    h("span", { class: "asked" }, "the row asked about"), h("span", {}, "a row"),
    h("span", { class: "step" }, "a step"), h("span", { class: "group" }, "more rows"));
}
