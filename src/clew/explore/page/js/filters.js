/** What narrows a table of rows down: values of columns, a stretch of time, an id, words. */

import { h, select } from "./dom.js";

const OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "contains"];

/**
 * @param {{name: string}[]} columns
 * @param {URLSearchParams} query what is asked for now
 * @param {(asked: Object<string, any>) => void} apply
 * @param {Node[]} before what stands on the line in front
 */
export function filterForm(columns, query, apply, before = []) {
  const conditions = h("div", { class: "filters" });
  const names = columns.map((each) => each.name);
  const add = (column = names[0], op = "=", value = "") => conditions.append(
    condition(names, column, op, value));
  const values = query.getAll("value");
  query.getAll("column").forEach((column, i) => add(column, query.getAll("op")[i], values[i]));
  const field = (name, label, settings) => h("label", {}, label,
    h("input", { name, value: query.get(name) ?? "", ...settings }));
  const form = h("form", {
    class: "filters",
    on: { submit: (event) => { event.preventDefault(); apply(asked(form)); } },
  },
  h("div", { class: "controls" }, before,
    field("text", "Words anywhere", { type: "search", size: 16 }),
    field("from", "From, UTC", { placeholder: "2026-01-01 08:00", size: 17 }),
    field("to", "To, UTC", { placeholder: "2026-01-01 09:00", size: 17 }),
    field("id", "Row id", { size: 14, class: "mono", spellcheck: "false" }),
    h("button", {
      type: "button", disabled: !names.length,
      on: { click: () => { add(); conditions.lastElementChild?.querySelector("select")?.focus(); } },
    }, "Add a condition"),
    h("button", { type: "submit", class: "main" }, "Apply"),
    isAsked(query) && h("button", {
      type: "button", class: "plain", on: { click: () => apply({}) },
    }, "Clear")),
  conditions);
  return form;
}

/** Whether anything narrows the rows down. */
export function isAsked(query) {
  return ["text", "from", "to", "id", "column"].some((name) => query.get(name));
}

function condition(names, column, op, value) {
  const line = h("div", { class: "condition" },
    select(names, column, { name: "column", "aria-label": "Column" }),
    select(OPERATORS, op, { name: "op", "aria-label": "Comparison" }),
    h("input", { name: "value", value, "aria-label": "Value", size: 18 }),
    h("button", {
      type: "button", class: "plain", "aria-label": "Remove this condition",
      on: { click: () => line.remove() },
    }, "Remove"));
  return line;
}

function asked(form) {
  const data = new FormData(form);
  const one = (name) => String(data.get(name) ?? "").trim();
  const all = (name) => data.getAll(name).map(String);
  return {
    text: one("text"), from: one("from"), to: one("to"), id: one("id"),
    column: all("column"), op: all("op"), value: all("value"),
  };
}
