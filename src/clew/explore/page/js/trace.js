/**
 * An answer about one row, backward or forward: a sentence, how far it can be trusted, the drawing, and
 * the rows by stream. Why and What did it do? are both made of it.
 */

import { ask } from "./api.js";
import { h } from "./dom.js";
import { exportMenu } from "./export.js";
import { Highlights } from "./highlights.js";
import { byName, crumbs, questions } from "./links.js";
import { Section, nothing } from "./section.js";
import { gapText } from "./streams.js";
import { RowTable } from "./table.js";
import { TraceControls } from "./controls.js";
import { TraceDrawing } from "./traced.js";
import { pairs } from "./value.js";
import { count, duration, listing, rowLabel } from "./words.js";

const LIMIT = 200;
const TITLE = { backward: "Why is this row here?", forward: "What did this row do?" };
const VERB = { backward: "was made from", forward: "took part in" };
const NONE = {
  backward: "no other row that the store knows",
  forward: "no result so far in the committed batches",
};

export class TraceView {
  #tables = new Map();
  /** Called with each answer. @type {((trace: any) => void)|undefined} */
  shown;
  /** Called with the number of rows that are new since the last answer. @type {((fresh: number) => void)|undefined} */
  arrived;

  /**
   * @param {{direction: "backward"|"forward", query: URLSearchParams, signal: AbortSignal,
   *          root: Element, extra?: import("./table.js").Column[]}} how `extra` columns of the tables
   */
  constructor({ direction, query, signal, root, extra }) {
    this.direction = direction;
    this.query = query;
    this.signal = signal;
    this.extra = extra;
    this.stream = this.query.get("stream") ?? "";
    this.row = this.query.get("row") ?? "";
    this.highlights = new Highlights(root, signal);
    this.headline = h("h1", { tabindex: -1 }, TITLE[this.direction]);
    this.trail = h("div", {}, crumbs(this.stream));
    this.chips = h("div", { class: "row" });
    this.answer = new Section("The answer");
    this.controls = new TraceControls(this);
    this.drawing = new TraceDrawing(this);
    this.head = h("div", { class: "head" }, this.trail, this.headline, this.chips);
    this.streams = new Map();
    this.parts = [this.drawing.element];
  }

  /** What the server is asked with. */
  get question() {
    return {
      stream: this.stream, row: this.row, scope: this.query.getAll("scope"),
      intermediate: this.query.get("intermediate"),
    };
  }

  /** The address's entries with some changed. */
  entries(changes) {
    const { question, query } = this;
    return { ...question, depth: query.get("depth"), expand: query.getAll("expand"), ...changes };
  }

  /** Go to another question about the same row, if it is one. */
  follow(query) {
    if (query.get("stream") !== this.stream || query.get("row") !== this.row) return false;
    this.query = query;
    this.load();
    return true;
  }

  /** @returns {Promise<void>} kept as `found`, for the parts that wait for it */
  load() {
    this.found = this.#load();
    return this.found;
  }

  /** Ask for a part of the answer; that it fails is said only once it is known whether the whole does. */
  async ask(path, question) {
    try {
      return await ask(path, question, { signal: this.signal });
    } catch (error) {
      await this.found;
      throw error;
    }
  }

  async #load() {
    const { signal } = this;
    const asked = async () => {
      const [streams, trace] = await Promise.all([
        ask("streams", {}, { signal }),
        ask(this.direction, { ...this.question, limit: LIMIT }, { signal }),
      ]);
      this.streams = byName(streams.streams);
      return trace;
    };
    this.drawing.load();
    const found = await this.answer.load(asked, (trace) => this.#show(trace));
    // Without an answer there is nothing to draw or rank either; one error says why.
    if (!found) this.#hide(true);
  }

  #hide(is) {
    for (const part of this.parts) part.hidden = is;
  }

  #show(trace) {
    this.trace = trace;
    this.#hide(false);
    const [subject] = trace.start;
    this.trail.replaceChildren(crumbs(this.stream, subject ? rowLabel(subject) : this.row));
    this.headline.textContent = sentence(trace);
    document.title = `${this.headline.textContent} · clew`;
    this.chips.replaceChildren(...chips(trace), this.controls.menus());
    this.shown?.(trace);
    const fresh = this.#update(trace);
    if (fresh !== null) this.arrived?.(fresh);
    return [missing(trace), ...this.#sheets(trace)].filter((each) => each !== false);
  }

  /** Fill the tables; returns how many rows are new since the last time, null the first time. */
  #update(trace) {
    const began = this.#tables.size > 0 || this.began;
    this.began = true;
    let fresh = 0;
    for (const name of Object.keys(trace.by_stream)) {
      if (!this.#tables.has(name)) this.#tables.set(name, this.#table(name));
      fresh += this.#tables.get(name).update(trace.rows.filter((row) => row.stream === name));
    }
    return began ? fresh : null;
  }

  #table(name) {
    return new RowTable({
      caption: `Rows of ${name}`, extra: this.extra,
      actions: (row) => questions(this.streams, row),
    });
  }

  #sheets(trace) {
    const names = Object.keys(trace.by_stream);
    if (!names.length) return [nothing("No rows", `This row ${VERB[trace.direction]} ${NONE[trace.direction]}.`)];
    return names.map((name) => {
      const shown = trace.rows.filter((row) => row.stream === name).length;
      const left = trace.by_stream[name] - shown;
      return h("div", { class: "stack" },
        h("div", { class: "row" }, h("h2", {}, name),
          h("span", { class: "chip" }, count(trace.by_stream[name], "row")),
          left > 0 && h("span", { class: "soft small" },
            `${count(shown, "row")} shown, ${count(left, "row")} more: export them to see all`)),
        shown > 0 && this.#tables.get(name).element);
    });
  }

  /** The row asked about, with its content. */
  subject() {
    const [row] = this.trace.start;
    return h("div", { class: "card" },
      h("header", {}, h("h2", {}, this.direction === "backward" ? "The result" : "The row"),
        h("span", { class: "mono soft small", title: row.id }, rowLabel(row))),
      row.row ? pairs(row.row)
        : h("p", { class: "soft" }, "The store does not hold its content."));
  }

  exports() {
    return exportMenu(() => ({ direction: this.direction, ...this.question }));
  }
}

function sentence(trace) {
  const [row] = trace.start;
  const found = Object.entries(trace.by_stream).map(([name, n]) => `${count(n, "row")} of ${name}`);
  const said = found.length ? listing(found) : NONE[trace.direction];
  return `Row ${rowLabel(row)} of ${trace.stream} ${VERB[trace.direction]} ${said}.`;
}

function chips(trace) {
  return [
    h("span", { class: trace.exactness === "exact" ? "chip" : "chip warn" }, trace.exactness),
    !trace.complete && h("span", { class: "chip warn" }, "incomplete"),
    h("span", { class: "chip" }, `answered in ${duration(trace.seconds)}`),
  ].filter((each) => each !== false);
}

function missing(trace) {
  return trace.gaps.length > 0 && h("div", { class: "notice warn" },
    h("h2", {}, "The answer may be incomplete"),
    trace.gaps.map((gap) => h("p", {}, `Missing: ${gapText(gap)}`)));
}
