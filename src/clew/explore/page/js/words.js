/** How counts, times and ids are written. */

const NUMBER = new Intl.NumberFormat("en-US");

export function number(value) {
  return NUMBER.format(value);
}

/** `1 row`, `1,200 rows`, `2 batches`, `2 queries`. */
export function count(value, noun) {
  if (Number(value) === 1) return `1 ${noun}`;
  const several = /(ch|s)$/.test(noun) ? `${noun}es` : `${noun}s`.replace(/ys$/, "ies");
  return `${number(value)} ${several}`;
}

/** `a`, `a and b`, `a, b and c`. */
export function listing(parts) {
  if (parts.length < 2) return parts.join("");
  return `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

/** An id in few characters: its beginning and its end. */
export function shortId(id) {
  return id.length > 12 ? `${id.slice(0, 4)}…${id.slice(-4)}` : id;
}

/** The end of a file's name or address. */
export function lastPart(segment) {
  return segment.replace(/\/+$/, "").split("/").at(-1) || segment;
}

/** What a row is called: its place in a file or topic, or its id. */
export function rowLabel(row) {
  if (row.position === null || row.position === undefined || !row.segment) return shortId(row.id);
  return `${lastPart(row.segment)}:${row.position}`;
}

/** The key that drawings, timelines and tables share for a row. */
export function rowKey(row) {
  return `row:${row.stream}/${row.id}`;
}

const ISO = /^(\d{4,}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)?$/;

export function isTime(value) {
  return typeof value === "string" && ISO.test(value);
}

/** `2026-01-01 08:00:01.5`: a point in time without what is zero. */
export function time(iso) {
  const found = ISO.exec(iso);
  if (!found) return iso;
  const fraction = (found[3] ?? "").replace(/0+$/, "");
  return `${found[1]} ${found[2]}${fraction && `.${fraction}`}`;
}

/** `08:00:01`: the same, without the day. */
export function clock(iso) {
  return time(iso).split(" ").at(-1);
}

/** @type {[string, number][]} */
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

/** A number of seconds with at most two units: `2 min 30 s`. */
export function duration(seconds) {
  if (seconds < 1) return seconds > 0 ? `${Math.round(seconds * 1000)} ms` : "0 s";
  const parts = [];
  let left = Math.round(seconds);
  for (const [name, size] of UNITS) {
    if (left >= size && parts.length < 2) parts.push(`${Math.floor(left / size)} ${name}`);
    left %= size;
  }
  return parts.join(" ");
}
