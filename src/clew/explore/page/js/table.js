/**
 * A table of rows of one stream. Rows are kept by their key, so an update moves nothing that was
 * there, marks what is new, and leaves the focus where it is. Arrow keys go from row to row.
 */

import { h } from "./dom.js";
import { typeWords } from "./types.js";
import { isNumeric, shown } from "./value.js";
import { rowKey, rowLabel } from "./words.js";

/**
 * @typedef {{name: string, type?: string, own?: boolean, value: (row: any) => any,
 *            show?: (row: any) => Node|string}} Column `own`: a column of the stream itself
 */

export class RowTable {
  #lines = new Map();
  #began = false;

  /**
   * @param {{caption: string, actions?: (row: any) => Node[], header?: (column: Column) => Node|string,
   *          sorted?: (column: Column) => "ascending"|"descending"|null,
   *          extra?: Column[], types?: Object<string, string>}} how
   */
  constructor(how) {
    this.how = how;
    this.head = h("tr");
    this.body = h("tbody", { on: { keydown: (event) => this.#move(event) } });
    this.element = h("div", { class: "sheet", tabindex: -1 },
      h("table", {}, h("caption", {}, how.caption), h("thead", {}, this.head), this.body));
  }

  /** Show rows; returns how many were not there before. */
  update(rows) {
    const columns = [...columnsOf(rows, this.how.types), ...(this.how.extra ?? [])];
    const numeric = new Set(columns.filter((each) => isNumeric(rows.map(each.value))));
    this.#heading(columns, numeric);
    const before = this.#lines;
    this.#lines = new Map(rows.map((row) => [rowKey(row), this.#line(row, columns, numeric)]));
    const fresh = [...this.#lines.keys()].filter((key) => !before.has(key));
    this.#put(before, new Set(this.#began ? fresh : []));
    this.#began = true;
    return fresh.length;
  }

  #put(before, fresh) {
    const active = document.activeElement;
    const focused = this.body.contains(active) ? active?.closest("tr")?.dataset.key : null;
    const lines = [...this.#lines].map(([key, line]) => {
      const old = before.get(key);
      const kept = old && old.textContent === line.textContent ? old : line;
      kept.classList.toggle("fresh", fresh.has(key));
      this.#lines.set(key, kept);
      return kept;
    });
    this.body.replaceChildren(...lines);
    const current = this.#lines.get(focused) ?? lines[0];
    for (const line of lines) this.#reach(line, line === current);
    if (focused && current) current.focus();
  }

  #heading(columns, numeric) {
    const cells = columns.map((column) => h("th", {
      scope: "col", class: numeric.has(column) && "number",
      "aria-sort": this.how.sorted?.(column) ?? null,
    }, this.how.header?.(column) ?? column.name, column.type && h("small", { title: column.type }, typeWords(column.type))));
    const act = this.how.actions && h("th", { scope: "col" },
      h("span", { class: "hidden-text" }, "Questions"));
    this.head.replaceChildren(...[act, ...cells].filter(Boolean));
  }

  #line(row, columns, numeric) {
    const cells = columns.map((column) => h("td", {
      class: numeric.has(column) && "number", data: { label: column.name },
    }, column.show ? column.show(row) : shown(column.value(row))));
    const act = this.how.actions && h("td", { class: "act" }, this.how.actions(row));
    return h("tr", { data: { key: rowKey(row) } }, act, cells);
  }

  /** Only one row's controls are stops of the Tab key; arrows lead to the others. */
  #reach(line, is) {
    line.tabIndex = is ? 0 : -1;
    for (const each of line.querySelectorAll("a, button, summary")) each.tabIndex = is ? 0 : -1;
  }

  #move(event) {
    const line = event.target.closest("tr");
    const lines = [...this.body.rows];
    const at = lines.indexOf(line);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: lines.length - 1 }[event.key];
    if (event.key === "Enter" && event.target === line) line.querySelector("td.act a")?.click();
    if (to === undefined || !lines[to]) return;
    event.preventDefault();
    this.#reach(line, false);
    this.#reach(lines[to], true);
    lines[to].focus();
  }
}

/**
 * The columns to show: what a row is called, its time where no column of its own says it, its values.
 * @returns {Column[]}
 */
export function columnsOf(rows, types = {}) {
  const names = new Set(Object.keys(types));
  for (const row of rows) for (const name of Object.keys(row.row ?? {})) names.add(name);
  const own = [...names].map((name) => ({
    name, type: types[name], own: true, value: (row) => row.row?.[name],
  }));
  const label = {
    name: "row", value: rowLabel,
    show: (row) => h("span", { class: "mono", title: row.id }, rowLabel(row)),
  };
  const saysTime = rows.every((row) => !row.time || Object.values(row.row ?? {}).includes(row.time));
  const time = { name: "event time", value: (row) => row.time };
  return [label, ...(saysTime ? [] : [time]), ...own];
}
