/** The smallest set of source rows that still gives the result, found by running the query again. */

import { ask } from "../api.js";
import { h } from "../dom.js";
import { byName, crumbs, questions } from "../links.js";
import { failure } from "../section.js";
import { RowTable } from "../table.js";
import { pairs } from "../value.js";
import { count, duration, shortId } from "../words.js";

const LOOK_MS = 500;

export async function minimize(main, query, signal) {
  const [stream, row] = ["stream", "row"].map((name) => query.get(name) ?? "");
  const { streams: all } = await ask("streams", {}, { signal });
  const condition = h("input", {
    name: "condition", size: 36, class: "mono", placeholder: "n >= 4", spellcheck: "false",
    value: query.get("condition") ?? "",
  });
  const start = h("button", { type: "submit", class: "main" }, "Find it");
  const outcome = h("div", { class: "stack", "aria-live": "polite" });
  const form = h("form", {
    class: "card", on: {
      submit: (event) => {
        event.preventDefault();
        run({ stream, row, condition: condition.value.trim() || null }, { start, outcome, streams: byName(all), signal });
      },
    },
  },
  h("div", { class: "controls" },
    h("label", {}, "Condition on the result; empty: it comes out just as it is", condition), start));
  main.append(h("div", { class: "head" }, crumbs(stream, shortId(row)),
    h("h1", { tabindex: -1 }, "Minimal cause"),
    h("p", { class: "lead" }, "The query is run again over fewer and fewer of the row's source rows, "
      + "until none can be left out. It needs the pipeline and Spark, and may take minutes.")),
  form, outcome);
}

async function run(question, { start, outcome, streams, signal }) {
  const bar = h("progress", { "aria-label": "How far the search is" });
  const told = h("p", { class: "soft" }, "Starting Spark…");
  const stop = h("button", { type: "button" }, "Stop");
  outcome.replaceChildren(h("div", { class: "card" }, bar, h("div", { class: "row" }, told, h("span", { class: "push" }, stop))));
  start.disabled = true;
  try {
    const { job } = await ask("minimize", {}, { signal, method: "POST", body: question });
    const end = () => ask("minimize", { job }, { method: "DELETE" }).catch(() => null);
    stop.addEventListener("click", () => { stop.disabled = true; told.textContent = "Stopping…"; end(); });
    signal.addEventListener("abort", end);
    const found = await watch(job, bar, told, stop, signal);
    signal.removeEventListener("abort", end);
    outcome.replaceChildren(...ending(found, streams));
  } catch (error) {
    if (error.name !== "AbortError") outcome.replaceChildren(failure(error));
  }
  start.disabled = false;
}

async function watch(job, bar, told, stop, signal) {
  for (;;) {
    const now = await ask("minimize", { job }, { signal });
    if (now.state !== "running") return now;
    if (!stop.disabled && now.of) {
      told.textContent = `${count(now.done, "test")} done; ${now.size} of ${count(now.of, "source row")} left.`;
    }
    if (now.tests) Object.assign(bar, { max: now.tests, value: now.done });
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
}

function ending(found, streams) {
  if (found.state === "failed") return [failure(Object.assign(new Error(found.error?.message ?? String(found.error)), { hint: found.error?.hint }))];
  if (!found.answer) return [h("p", { class: "notice" }, "Stopped before a smaller set was found.")];
  const { answer } = found;
  const enough = answer.rows.length === 1 ? "is enough" : "are enough";
  const table = new RowTable({ caption: "The rows that are enough", actions: (row) => questions(streams, row) });
  table.update(answer.rows);
  return [h("div", { class: "stack" },
    h("h2", {}, `${answer.rows.length} of ${count(answer.of, "source row")} ${enough}`),
    h("p", { class: "soft" }, `${count(answer.tests, "test")} in ${duration(answer.seconds)}. ${answer.complete
      ? "Without any one of them the result does not come out." : "The search was stopped, so fewer may be enough."}`),
    table.element,
    answer.result && h("div", { class: "card" }, h("h2", {}, "What they give"), given(answer.result)))];
}

function given(result) {
  return Array.isArray(result) ? result.map((row) => pairs(row)) : pairs(result);
}
