/** What an answer is kept to: scope, intermediate rows, depth of the drawing. */

import { h, select } from "./dom.js";
import { closing } from "./export.js";
import { go } from "./route.js";

const VIEW = { backward: "why", forward: "forward" };
const DEPTHS = [["", "all"], "1", "2", "3", "4"];

export class TraceControls {
  /** @param {import("./trace.js").TraceView} view */
  constructor(view) {
    this.view = view;
  }

  #go(changes) {
    go(VIEW[this.view.direction], this.view.entries(changes));
  }

  /** The controls beside the headline. */
  menus() {
    const { query } = this.view;
    const between = h("label", { class: "inline" },
      h("input", {
        type: "checkbox", checked: Boolean(query.get("intermediate")),
        on: { change: (event) => this.#go({ intermediate: event.target.checked }) },
      }), "Rows in between");
    return h("span", { class: "controls push" }, between, this.#scope(), this.view.exports());
  }

  /** How far the drawing goes from the row asked about. */
  depth() {
    return h("label", { class: "inline" }, "Depth",
      select(DEPTHS, this.view.query.get("depth") ?? "", {
        on: { change: (event) => this.#go({ depth: event.target.value }) },
      }));
  }

  /** The streams at which the answer stops. */
  #scope() {
    const chosen = this.view.query.getAll("scope");
    const others = [...this.view.streams.keys()].filter((name) => name !== this.view.stream);
    const items = h("div", { class: "items" }, others.map((name) => h("label", { class: "inline" },
      h("input", {
        type: "checkbox", value: name, checked: chosen.includes(name),
        on: { change: () => this.#go({ scope: ticked(items), expand: [] }) },
      }), name)));
    const text = chosen.length ? `Scope: ${chosen.join(", ")}` : "Scope: to the ends";
    return closing(h("details", { class: "menu" }, h("summary", { class: "button" }, text), items));
  }
}

function ticked(items) {
  return [...items.querySelectorAll("input:checked")].map((each) => each.value);
}
