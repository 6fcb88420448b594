/** One value of a row: numbers, times, text, nulls, and what is nested. */

import { h } from "./dom.js";
import { clock, isTime, time } from "./words.js";

const LONG = 160;

/** @returns {Node} */
export function shown(value) {
  if (value === null || value === undefined) return h("span", { class: "null" }, "null");
  if (typeof value === "object") return isSpan(value) ? span(value) : nested(value);
  if (isTime(value)) return h("time", { datetime: value, title: `${value}` }, time(value));
  const text = String(value);
  if (typeof value !== "string") return document.createTextNode(text);
  if (text.length <= LONG) return h("span", { class: "text" }, text);
  return h("details", { class: "nested" },
    h("summary", {}, `${text.slice(0, 60)}…`), h("span", { class: "text" }, text));
}

/** Whether a column's values are numbers, so that they stand at the right. */
export function isNumeric(values) {
  const known = values.filter((each) => each !== null && each !== undefined);
  return known.length > 0 && known.every((each) => ["number", "bigint"].includes(typeof each));
}

/** A value on one line, where there is no room to open it. */
export function line(value) {
  if (value === null || value === undefined) return "null";
  if (isTime(value)) return time(value);
  if (typeof value !== "object") return String(value);
  return isSpan(value) ? spanText(value) : JSON.stringify(value, exact);
}

/** The columns of a row under each other. */
export function pairs(row) {
  return h("dl", { class: "pairs" }, Object.entries(row).map(([name, value]) => [
    h("dt", {}, name), h("dd", {}, shown(value)),
  ]));
}

function isSpan(value) {
  const keys = Object.keys(value);
  return keys.length === 2 && isTime(value.start) && isTime(value.end);
}

function span(value) {
  return h("span", { title: `${value.start} to ${value.end}` }, spanText(value));
}

function spanText({ start, end }) {
  const sameDay = start.slice(0, 10) === end.slice(0, 10);
  return `${time(start)} – ${sameDay ? clock(end) : time(end)}`;
}

function nested(value) {
  const list = Array.isArray(value);
  const size = Object.keys(value).length;
  if (size === 0) return h("span", { class: "null" }, list ? "[]" : "{}");
  return h("details", { class: "nested" },
    h("summary", {}, JSON.stringify(value, exact).slice(0, 80)),
    pairs(list ? Object.fromEntries(value.entries()) : value));
}

function exact(_, value) {
  return typeof value === "bigint" ? value.toString() : value;
}
