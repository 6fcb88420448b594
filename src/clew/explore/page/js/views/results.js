/** The rows of a stream: pages of them, in an order, narrowed down, each with its question. */

import { ask } from "../api.js";
import { h, select } from "../dom.js";
import { filterForm, isAsked } from "../filters.js";
import { byName, questions } from "../links.js";
import { live } from "../live.js";
import { tell } from "../news.js";
import { go } from "../route.js";
import { Section, noData, nothing } from "../section.js";
import { RowTable } from "../table.js";
import { count, number } from "../words.js";

const PAGE = 25;
const LISTS = ["column", "op", "value"];

export async function results(main, query, signal) {
  const headline = h("h1", { tabindex: -1 }, "Results");
  const lead = h("p", { class: "lead" });
  const head = h("div", { class: "head" }, headline, lead);
  const body = new Section("Rows");
  main.append(head, body.element);
  let page = null;
  let asked = query;
  const open = (all) => {
    const stream = asked.get("stream") ?? first(all);
    headline.textContent = isResult(byName(all).get(stream)) ? "Results" : "Rows";
    page?.leave.abort();
    page = new Page(stream, asked, all, body, lead, signal);
    return page.load();
  };
  const begin = () => body.load(() => ask("streams", {}, { signal }), ({ streams: all }) => {
    if (!all.length) return noData();
    open(all);
    return null;
  });
  live.follow(() => (page ? page.load() : begin()), signal);
  await begin();
  return (next) => {
    asked = next;
    if (page) open(page.all);
    return true;
  };
}

function isResult(stream) {
  return !stream || stream.kind !== "source";
}

/** The stream that one wants to see first: the end of the flow. */
function first(all) {
  const sinks = all.filter((each) => each.kind === "sink");
  return (sinks.find((each) => !each.feeds.length) ?? sinks[0] ?? all[0]).name;
}

class Page {
  /**
   * @param {string} stream
   * @param {URLSearchParams} query
   * @param {any[]} all streams of the store
   * @param {Section} body
   * @param {Element} lead
   * @param {AbortSignal} signal
   */
  constructor(stream, query, all, body, lead, signal) {
    this.stream = stream;
    this.query = query;
    this.all = all;
    this.body = body;
    this.lead = lead;
    this.pager = h("nav", { class: "pager", "aria-label": "Pages" });
    this.rows = h("div", { class: "stack" });
    this.leave = new AbortController();
    this.signal = AbortSignal.any([signal, this.leave.signal]);
    this.streams = byName(all);
  }

  /** What the server is asked with. */
  get question() {
    const lists = Object.fromEntries(LISTS.map((name) => [name, this.query.getAll(name)]));
    const ones = ["from", "to", "id", "text", "order_by", "descending"]
      .map((name) => [name, this.query.get(name)]);
    return { stream: this.stream, ...lists, ...Object.fromEntries(ones), limit: PAGE, offset: this.offset };
  }

  get offset() {
    return Number(this.query.get("offset") ?? 0);
  }

  load() {
    return this.body.load(() => ask("rows", this.question, { signal: this.signal }),
      (answer) => this.#show(answer));
  }

  #show(answer) {
    this.#summary(answer);
    if (this.table) {
      const fresh = this.#fill(answer, this.table);
      if (fresh) tell(`${count(fresh, "new row")} of ${this.stream}`);
      return null;
    }
    const table = new RowTable({
      caption: `Rows of ${this.stream}`, actions: (row) => questions(this.streams, row),
      types: Object.fromEntries(answer.columns.map((each) => [each.name, each.type])),
      header: (column) => (column.own ? this.#sorter(column) : column.name),
      sorted: (column) => (column.name === this.query.get("order_by") && column.own
        ? (this.query.get("descending") ? "descending" : "ascending") : null),
    });
    this.table = table;
    this.#fill(answer, table);
    return h("div", { class: "stack" }, this.#controls(answer), this.rows, this.pager);
  }

  #sheet(answer, table) {
    if (answer.rows.length) return table.element;
    if (isAsked(this.query)) return nothing("No row is like that", "Change the conditions, or clear them.");
    return this.streams.get(this.stream)?.kind === "source"
      ? nothing("No row yet", "Source rows are kept once they took part in a result.") : noData();
  }

  /** Show an answer's rows; returns how many were not there before. */
  #fill(answer, table) {
    const fresh = table.update(answer.rows);
    this.rows.replaceChildren(this.#sheet(answer, table));
    this.#pages(answer);
    return fresh;
  }

  #summary({ total }) {
    const narrowed = isAsked(this.query) ? " that are like that" : "";
    this.lead.replaceChildren(`${count(total, "row")} of `, h("strong", {}, this.stream), `${narrowed}.`);
  }

  #controls({ columns }) {
    const names = this.all.map((each) => [each.name, `${each.name} (${each.kind})`]);
    const picker = select(names, this.stream, {
      on: { change: (event) => go("results", { stream: event.target.value }) },
    });
    const order = select([["", "time"], ...columns.map((each) => each.name)],
      this.query.get("order_by") ?? "",
      { on: { change: (event) => this.#go({ order_by: event.target.value, offset: 0 }) } });
    return h("div", { class: "card" },
      filterForm(columns, this.query, (asked) => this.#apply(asked),
        [h("label", {}, "Stream", picker), h("label", { class: "only-narrow" }, "Order", order)]));
  }

  #apply(asked) {
    const kept = { order_by: this.query.get("order_by"), descending: this.query.get("descending") };
    go("results", { stream: this.stream, ...kept, ...asked });
  }

  /** A heading that orders by its column: upwards, downwards, by time again. */
  #sorter(column) {
    const is = this.query.get("order_by") === column.name;
    const down = is && this.query.get("descending");
    const next = down ? { order_by: "", descending: "" }
      : { order_by: column.name, descending: is ? "true" : "" };
    return h("button", {
      type: "button", on: { click: () => this.#go({ ...next, offset: 0 }) },
      title: `Order by ${column.name}`,
    }, column.name, is && (down ? " ↓" : " ↑"));
  }

  #pages({ total, rows }) {
    const { offset } = this;
    const turn = (text, to, is) => h("button", {
      type: "button", disabled: !is, on: { click: () => this.#go({ offset: to }) },
    }, text);
    const shown = rows.length ? `${number(offset + 1)}–${number(offset + rows.length)} of ${number(total)}` : "";
    this.pager.replaceChildren(
      turn("Previous", Math.max(0, offset - PAGE), offset > 0),
      turn("Next", offset + PAGE, offset + rows.length < total),
      h("span", { class: "soft", "aria-live": "polite" }, shown));
  }

  #go(changes) {
    const { limit: _, ...question } = this.question;
    const entries = { ...question, ...changes };
    go("results", { ...entries, offset: entries.offset || "" });
  }
}
