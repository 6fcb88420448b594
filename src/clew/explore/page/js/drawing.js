/**
 * A layered drawing on a canvas: drag to move, buttons or Ctrl and the wheel to zoom, arrow keys to go
 * from node to node. The line below says in words what a node is, also for those who do not see it.
 */

import { h } from "./dom.js";
import { captions, positions, size } from "./layout.js";
import { look } from "./look.js";
import { related } from "./reach.js";
import { neighbour } from "./steer.js";
import { theme } from "./theme.js";

const NARROW_BELOW = 560;
const HEIGHT = { least: 150, most: 560 };
const ZOOM = { least: 0.25, most: 1.6, readable: 0.62 };
const MARGIN = 22;

/**
 * @typedef {{key: string, kind: string, layer: number, place: number, label: string,
 *            detail?: string, count?: number, asked?: boolean, stream?: string}} DrawnNode
 * @typedef {{nodes: DrawnNode[], links: {source: string, target: string}[],
 *            edges?: [string, string][]}} Drawn `edges` lead from a result's key to a source's
 */

export class Drawing {
  /** @type {Drawn} */
  #data = { nodes: [], links: [] };
  #narrow = false;
  /** @type {string|null} */
  #chosen = null;
  #pathOnly = false;

  /**
   * @param {{label: string, text: (node: DrawnNode, narrow: boolean) => string,
   *          tell: (node: DrawnNode) => (Node|string)[],
   *          actions?: (node: DrawnNode) => Node[], open?: (node: DrawnNode) => void,
   *          choose?: (node: DrawnNode|null) => void, signal: AbortSignal,
   *          highlights?: import("./highlights.js").Highlights}} how
   */
  constructor(how) {
    this.how = how;
    this.canvas = h("div", {
      class: "canvas", tabindex: 0, role: "application", "aria-label": how.label,
      "aria-roledescription": "drawing", on: { keydown: (event) => this.#key(event) },
    });
    this.told = h("div", { class: "told", "aria-live": "polite" });
    this.acts = h("span", { class: "row" });
    this.path = h("button", {
      type: "button", "aria-pressed": "false", disabled: true,
      on: { click: () => this.#showPathOnly(!this.#pathOnly) },
    }, "Path only");
    this.element = h("div", { class: "drawing" }, this.canvas, this.#tools());
    this.#whenSized();
  }

  /** Show other nodes and links; the view stays where it is unless this is the first time. */
  update(data) {
    const first = this.#data.nodes.length === 0;
    this.#data = data;
    this.how.highlights?.of(data);
    if (!this.cy) return;
    this.#place();
    if (first) this.#fit();
    this.choose(data.nodes.some(({ key }) => key === this.#chosen) ? this.#chosen : null);
  }

  /** Select a node by its key, or none. */
  choose(key) {
    const node = this.#node(key);
    this.#chosen = node ? key : null;
    this.cy?.nodes().forEach((each) => each.toggleClass("chosen", each.id() === this.#chosen));
    this.path.disabled = !node;
    if (!node && this.#pathOnly) this.#showPathOnly(false);
    else if (this.#pathOnly) this.#showPathOnly(true);
    this.#say(node);
    this.acts.replaceChildren(...(node && this.how.actions?.(node) || []));
    this.how.choose?.(node ?? null);
  }

  #tools() {
    const button = (text, label, click) => h("button", {
      type: "button", class: "square", "aria-label": label, title: label, on: { click },
    }, text);
    return h("div", { class: "tools" }, this.told, this.acts, this.path,
      button("−", "Zoom out", () => this.#zoom(0.8)),
      button("+", "Zoom in", () => this.#zoom(1.25)),
      button("⤢", "Show all", () => this.#fit(true)));
  }

  /** Cytoscape measures its container, so it begins once that is on the page. */
  #whenSized() {
    const observer = new ResizeObserver(() => {
      if (!this.canvas.clientWidth) return;
      if (!this.cy) this.#begin();
      const narrow = this.canvas.clientWidth < NARROW_BELOW;
      const turned = narrow !== this.#narrow;
      this.#narrow = narrow;
      if (turned) this.cy.style(look(narrow));
      if (turned) this.#place();
      this.cy.resize();
      this.#fit();
    });
    observer.observe(this.element);
    this.how.signal.addEventListener("abort", () => {
      observer.disconnect();
      this.cy?.destroy();
    });
  }

  #begin() {
    this.#narrow = this.canvas.clientWidth < NARROW_BELOW;
    this.cy = globalThis.cytoscape({
      container: this.canvas, elements: [], style: look(this.#narrow), layout: { name: "preset" },
      minZoom: ZOOM.least, maxZoom: ZOOM.most, userZoomingEnabled: false, autoungrabify: true,
      boxSelectionEnabled: false, selectionType: "single", autounselectify: true,
    });
    this.cy.on("tap", (event) => this.choose(event.target === this.cy ? null : event.target.id()));
    this.cy.on("dbltap", "node", (event) => this.#open(event.target.id()));
    this.cy.on("mouseover", "node[kind != 'caption']", (event) => this.#hover(event.target.id()));
    this.cy.on("mouseout", "node", () => this.#hover(null));
    this.canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    this.how.highlights?.follow((keys) => this.#light(keys));
    const { signal } = this.how;
    theme.addEventListener("change", () => this.cy.style(look(this.#narrow)), { signal });
    this.#place();
    this.#say(null);
  }

  #place() {
    const where = positions(this.#data.nodes, this.#narrow);
    const nodes = this.#data.nodes.map((node) => {
      const { width, height } = size(node, this.#narrow);
      const text = this.how.text(node, this.#narrow);
      const data = { id: node.key, kind: node.kind, asked: node.asked ?? false, text };
      return {
        data: { ...data, width, height, inner: width - 12 }, position: where.get(node.key),
      };
    });
    const names = captions(this.#data.nodes, where, this.#narrow).map(({ key, text, x, y }) => ({
      data: { id: key, kind: "caption", text, width: 146, height: 16, inner: 180 },
      position: { x, y }, selectable: false,
    }));
    const links = this.#data.links.map(({ source, target }) => ({
      data: { id: `link:${source}\n${target}`, source, target },
    }));
    this.cy.batch(() => this.cy.json({ elements: { nodes: [...nodes, ...names], edges: links } }));
    for (const { data, position } of [...nodes, ...names]) {
      this.cy.getElementById(data.id).position(position);
    }
    this.#grow();
  }

  /** Make the canvas as high as the drawing needs, within bounds. */
  #grow() {
    if (!this.#data.nodes.length) return;
    const box = this.cy.elements().boundingBox();
    const zoom = this.#zoomToFit(box);
    const wanted = box.h * zoom + 2 * MARGIN;
    this.canvas.style.height = `${Math.min(HEIGHT.most, Math.max(HEIGHT.least, wanted))}px`;
    this.cy.resize();
  }

  #zoomToFit(box) {
    const across = (this.canvas.clientWidth - 2 * MARGIN) / box.w;
    const down = (HEIGHT.most - 2 * MARGIN) / box.h;
    return Math.min(1, Math.max(ZOOM.readable, Math.min(across, down)));
  }

  /** Show all if it stays readable, else the part around the row asked about; or really all. */
  #fit(all = false) {
    if (!this.cy || !this.#data.nodes.length) return;
    const box = this.cy.elements().boundingBox();
    if (all) {
      this.cy.fit(undefined, MARGIN);
      return;
    }
    this.cy.zoom(this.#zoomToFit(box));
    this.cy.center();
    const asked = this.cy.nodes("[?asked]");
    const seen = this.cy.extent();
    if (asked.nonempty() && (box.h > seen.h || box.w > seen.w)) this.#lookAt(asked, box, seen);
  }

  /** Move so that the row asked about is seen, with as much of the drawing as there is room for. */
  #lookAt(asked, box, seen) {
    const at = asked[0].position();
    const within = (value, low, high, room) =>
      (high - low <= room ? (low + high) / 2
        : Math.min(high - room / 2, Math.max(low + room / 2, value)));
    const pad = MARGIN / this.cy.zoom();
    const x = within(at.x, box.x1 - pad, box.x2 + pad, seen.w);
    const y = within(at.y, box.y1 - pad, box.y2 + pad, seen.h);
    const zoom = this.cy.zoom();
    this.cy.pan({ x: this.cy.width() / 2 - x * zoom, y: this.cy.height() / 2 - y * zoom });
  }

  #zoom(factor) {
    this.cy.zoom({
      level: this.cy.zoom() * factor,
      renderedPosition: { x: this.cy.width() / 2, y: this.cy.height() / 2 },
    });
  }

  #wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const { left, top } = this.canvas.getBoundingClientRect();
    this.cy.zoom({
      level: this.cy.zoom() * Math.exp(-event.deltaY / 300),
      renderedPosition: { x: event.clientX - left, y: event.clientY - top },
    });
  }

  #hover(key) {
    this.canvas.style.cursor = key ? "pointer" : "";
    this.#say(this.#node(key ?? this.#chosen));
    if (!this.how.highlights) this.#light(key ? related(this.#data, key) : new Set());
    else this.how.highlights.show(key);
  }

  #light(keys) {
    const some = this.cy.nodes().some((each) => keys.has(each.id()));
    const isLit = (each) => (each.isNode() ? keys.has(each.id())
      : keys.has(each.data("source")) && keys.has(each.data("target")));
    this.cy.batch(() => this.cy.elements().forEach((each) => {
      each.toggleClass("lit", some && isLit(each)).toggleClass("faint", some && !isLit(each));
    }));
  }

  #showPathOnly(is) {
    this.#pathOnly = is;
    this.path.setAttribute("aria-pressed", String(is));
    const keys = is && this.#chosen ? related(this.#data, this.#chosen) : null;
    this.cy?.nodes().forEach((each) => each.toggleClass("away", keys !== null && !keys.has(each.id())));
  }

  /** Open a node, if there is one with the key. */
  #open(key) {
    const node = this.#node(key);
    if (node) this.how.open?.(node);
  }

  #node(key) {
    return this.#data.nodes.find((each) => each.key === key);
  }

  #say(node) {
    const hint = "Choose a node to read about it; arrow keys go from node to node.";
    this.told.replaceChildren(...(node ? this.how.tell(node)
      : [h("span", { class: "soft" }, hint)]));
  }

  #key(event) {
    if (event.key === "Escape") this.choose(null);
    else if (event.key === "+") this.#zoom(1.25);
    else if (event.key === "-") this.#zoom(0.8);
    else if (event.key === "Enter") this.#open(this.#chosen);
    else if (event.key.startsWith("Arrow")) this.#steer(event);
  }

  #steer(event) {
    const next = neighbour(this.#data, this.#chosen, event.key.slice(5).toLowerCase(), this.#narrow);
    if (!next) return;
    event.preventDefault();
    this.choose(next);
    this.how.highlights?.show(next);
    const node = this.cy.getElementById(next);
    const box = node.renderedBoundingBox();
    const seen = box.x1 >= 0 && box.y1 >= 0 && box.x2 <= this.cy.width() && box.y2 <= this.cy.height();
    if (!seen) this.cy.center(node);
  }
}
