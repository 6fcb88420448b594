/** Which source rows carry most of an aggregate's value. */

import { h, prose, select } from "./dom.js";
import { Section } from "./section.js";
import { line } from "./value.js";
import { count, number, rowKey, rowLabel } from "./words.js";

export class InfluencePart {
  /** @param {import("./trace.js").TraceView} view */
  constructor(view) {
    this.view = view;
    this.section = new Section("Influence");
  }

  get element() {
    return this.section.element;
  }

  load(column = null) {
    const { stream, row } = this.view;
    this.section.load(() => this.view.ask("influence", { stream, row, column }),
      (data) => this.#show(data));
  }

  #show(data) {
    const title = h("h2", {}, "Which rows weigh most");
    const { columns = [] } = data;
    const picker = h("label", { class: "inline push" }, "Column",
      select(columns, data.column ?? "", { on: { change: (event) => this.load(event.target.value) } }));
    const header = h("header", {}, title, columns.length > 0 && picker);
    if (data.why) return h("div", { class: "card" }, header, h("p", { class: "soft" }, prose(data.why)));
    const most = Math.max(...data.rows.map(size), 0);
    return h("div", { class: "card" }, header,
      h("p", { class: "soft small" }, said(data, most)),
      h("ol", { class: "bars" }, data.rows.map((row) => bar(row, most))),
      data.left_out > 0 && h("p", { class: "soft small" }, `and ${count(data.left_out, "more row")}`));
  }
}

function size(row) {
  return Math.abs(Number(row.influence ?? 0)) || 0;
}

/** A sum is made of shares; of other functions a bar says how rows compare with each other. */
function bar(row, most) {
  const part = row.share === null ? size(row) / (most || 1) : Number(row.share);
  return h("li", { data: { key: rowKey(row) } },
    h("span", { class: "name mono", title: row.id }, rowLabel(row)),
    h("meter", {
      min: 0, max: 1, value: Math.min(1, Math.max(0, part)), "aria-label": `Weight of ${rowLabel(row)}`,
    }),
    h("span", { class: "amount" }, line(row.influence), row.share !== null && ` · ${percent(row.share)}`));
}

function said(data, most) {
  const of = data.value ? `${data.function}(${data.value})` : data.function;
  const what = `${data.column} = ${of} is ${line(data.result)}.`;
  return most === 0 ? `${what} It would be the same without any one of these rows.`
    : `${what} Numbers say by how much it would change without the row.`;
}

function percent(share) {
  return `${number(Math.round(share * 1000) / 10)} %`;
}
