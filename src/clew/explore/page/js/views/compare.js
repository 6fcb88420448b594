/** Two rows of a stream: the source rows they share, and those that only one has. */

import { ask } from "../api.js";
import { h, select } from "../dom.js";
import { byName, crumbs, questions } from "../links.js";
import { address, go } from "../route.js";
import { Section, nothing } from "../section.js";
import { RowTable } from "../table.js";
import { pairs } from "../value.js";
import { count, rowLabel, shortId } from "../words.js";

const CHOICES = 100;

export async function compare(main, query, signal) {
  const [stream, row, other] = ["stream", "row", "other"].map((name) => query.get(name));
  const part = new Section("Comparison");
  const headline = h("h1", { tabindex: -1 }, "Compare two rows");
  main.append(h("div", { class: "head" }, stream && crumbs(stream, "compare"), headline), part.element);
  const { streams: all } = await ask("streams", {}, { signal });
  if (stream && row && other) {
    await part.load(() => ask("compare", { stream, row, other }, { signal }),
      (data) => comparison(data, byName(all)));
  } else {
    await choose(part, { stream, row, all, signal, offset: Number(query.get("offset") ?? 0) });
  }
}

/** Choose the first row, or the one to compare it with. */
function choose(part, { stream, row, all, signal, offset }) {
  const derived = all.filter((each) => each.kind !== "source").map((each) => each.name);
  const name = stream ?? derived.at(-1);
  if (!name) {
    part.element.replaceChildren(nothing("Nothing to compare", "The store has no results yet; this page updates by itself."));
    return null;
  }
  const told = row ? ["Choose the row to compare with ", h("code", {}, shortId(row)), "."]
    : ["Choose the first of the two rows."];
  const picker = h("label", {}, "Stream", select(derived, name, {
    disabled: Boolean(row), on: { change: (event) => go("compare", { stream: event.target.value }) },
  }));
  return part.load(() => ask("rows", { stream: name, limit: CHOICES, offset }, { signal }), (data) => {
    const table = new RowTable({
      caption: `Rows of ${name}`,
      actions: (each) => [h("a", {
        class: "button",
        href: address("compare", row ? { stream: name, row, other: each.id } : { stream: name, row: each.id }),
      }, row ? "Compare with this" : "Choose")],
    });
    table.update(data.rows.filter((each) => each.id !== row));
    const turn = (text, to, is) => is && h("a", {
      class: "button", href: address("compare", { stream: name, row, offset: to || null }),
    }, text);
    const pages = h("nav", { class: "pager", "aria-label": "Pages" },
      turn("Previous", Math.max(0, offset - CHOICES), offset > 0),
      turn("Next", offset + CHOICES, offset + data.rows.length < data.total));
    return h("div", { class: "stack" }, h("p", { class: "lead" }, told), picker, table.element, pages);
  });
}

function comparison(data, streams) {
  const { counts } = data;
  const parts = [
    ["common", "In common", data.common, counts.common],
    ["only_left", `Only ${rowLabel(data.left)}`, data.only_left, counts.only_left],
    ["only_right", `Only ${rowLabel(data.right)}`, data.only_right, counts.only_right],
  ];
  return h("div", { class: "stack" },
    h("p", { class: "lead" }, said(data)), overlap(counts),
    h("div", { class: "halves" }, side(data.left), side(data.right)),
    parts.map(([, title, rows, total]) => h("div", { class: "stack" },
      h("div", { class: "row" }, h("h2", {}, title), h("span", { class: "chip" }, count(total, "source row"))),
      tables(rows, streams))));
}

function said({ counts, exactness, complete }) {
  const shared = counts.common
    ? `The two rows share ${count(counts.common, "source row")}; ${counts.only_left} made only the first, `
      + `${counts.only_right} only the second.`
    : "The two rows share no source row.";
  const trust = exactness === "exact" && complete ? "" : ` The answer is ${exactness}${complete ? "" : " and may be incomplete"}.`;
  return `${shared}${trust}`;
}

function overlap({ only_left: left, common, only_right: right }) {
  const bar = h("div", {
    class: "overlap", role: "img", "aria-label": `${left} only first, ${common} in common, ${right} only second`,
  });
  for (const [name, size] of [["left", left], ["common", common], ["right", right]]) {
    if (!size) continue;
    const piece = h("span", { class: name, title: `${size}` });
    piece.style.flex = String(size);
    bar.append(piece);
  }
  return bar;
}

function side(row) {
  return h("div", { class: "card" },
    h("header", {}, h("h2", { class: "mono", title: row.id }, rowLabel(row)),
      h("a", { class: "button push", href: address("why", { stream: row.stream, row: row.id }) }, "Why?")),
    row.row && pairs(row.row));
}

function tables(rows, streams) {
  const names = [...new Set(rows.map((row) => row.stream))];
  if (!names.length) return h("p", { class: "soft" }, "none");
  return names.map((name) => {
    const table = new RowTable({ caption: `Rows of ${name}`, actions: (row) => questions(streams, row) });
    table.update(rows.filter((row) => row.stream === name));
    return table.element;
  });
}
