/** Windows and rows on a time axis, drawn as SVG as wide as its place. */

import { svg } from "./dom.js";
import { clock, count, time } from "./words.js";

const ROW = 30;
const TOP = 8;
const LEFT = 28;
const LABEL = 18;
const TICK_EVERY = 110;
const STEPS = [1e-3, 1e-2, 0.1, 1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400];

/**
 * @param {any} data what `Timeline.to_dict()` gives
 * @param {number} width in pixels
 */
export function timeline(data, width) {
  const from = Date.parse(data.from);
  const to = Math.max(Date.parse(data.to), from + 1);
  const scale = (iso) => LEFT + ((Date.parse(iso) - from) / (to - from)) * (width - 2 * LEFT);
  let y = TOP;
  const parts = [];
  const windows = stackWindows(data.windows);
  for (const line of windows) {
    for (const each of line) parts.push(window_(each, scale, y));
    y += ROW;
  }
  for (const lane of data.lanes) {
    parts.push(...lanes(lane, scale, y));
    y += LABEL + ROW;
  }
  const axis = ticks(from, to, width).map((at) => tick(at, scale, y));
  const bottom = svg("line", { class: "axis", x1: LEFT, x2: width - LEFT, y1: y, y2: y });
  return svg("svg", {
    class: "timeline", viewBox: `0 0 ${width} ${y + 24}`, height: y + 24, role: "img",
    "aria-label": described(data),
  }, axis, bottom, parts);
}

function described({ from, to, lanes, windows }) {
  const rows = lanes.map((lane) => `${count(total(lane), "row")} of ${lane.stream}`).join(", ");
  return `From ${time(from)} to ${time(to)}: ${count(windows.length, "window")}, ${rows}.`;
}

function total(lane) {
  return lane.rows.length + lane.left_out;
}

/** Windows that overlap stand on lines of their own. */
function stackWindows(windows) {
  const lines = [];
  for (const each of [...windows].sort((a, b) => Date.parse(a.from) - Date.parse(b.from))) {
    const line = lines.find((line) => Date.parse(line.at(-1).to) <= Date.parse(each.from));
    if (line) line.push(each);
    else lines.push([each]);
  }
  return lines;
}

function window_(each, scale, y) {
  const x = scale(each.from);
  const width = Math.max(2, scale(each.to) - x);
  const said = `${each.label || each.stream}: ${clock(each.from)} – ${clock(each.to)}`;
  return svg("g", {},
    svg("rect", { class: "window", x, y, width, height: 20, rx: 5 }, svg("title", {}, said)),
    width > said.length * 6.5 && svg("text", { x: x + 7, y: y + 14 }, said));
}

function lanes(lane, scale, y) {
  const name = svg("text", { class: "lane", x: LEFT, y: y + 11 },
    `${lane.stream} · ${count(total(lane), "row")}`);
  const middle = y + LABEL + 8;
  const most = Math.max(1, ...lane.bins.map((bin) => bin.count));
  const bins = lane.left_out ? lane.bins.map((bin) => {
    const height = (bin.count / most) * 18;
    const x = scale(bin.from);
    return svg("rect", {
      class: "bin", x, width: Math.max(1, scale(bin.to) - x - 1), y: middle + 9 - height, height,
    }, svg("title", {}, `${count(bin.count, "row")} from ${clock(bin.from)} to ${clock(bin.to)}`));
  }) : [];
  const dots = lane.rows.filter((row) => row.time).map((row) => dot(row, scale, middle));
  return [name, bins, dots];
}

function dot(row, scale, y) {
  return svg("circle", {
    class: "dot", cx: scale(row.time), cy: y, r: 5.5, data: { key: row.key },
  }, svg("title", {}, `${row.label}, ${time(row.time)}`));
}

function ticks(from, to, width) {
  const wanted = ((to - from) / 1000) * (TICK_EVERY / width);
  const step = 1000 * (STEPS.find((each) => each >= wanted) ?? Math.ceil(wanted / 86400) * 86400);
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) found.push(at);
  return found;
}

function tick(at, scale, y) {
  const iso = new Date(at).toISOString();
  const x = scale(iso);
  const midnight = iso.includes("T00:00:00.000");
  return svg("g", {},
    svg("line", { class: "tick", x1: x, x2: x, y1: TOP, y2: y + 4 }),
    svg("text", { x, y: y + 18, "text-anchor": "middle" }, midnight ? iso.slice(0, 10) : clock(iso)));
}
