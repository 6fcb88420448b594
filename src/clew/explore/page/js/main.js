/** The page: a frame with views in it. The address says which view is shown, and with what. */

import { ask } from "./api.js";
import { byId } from "./dom.js";
import { live } from "./live.js";
import { read } from "./route.js";
import { failure } from "./section.js";
import { startTheme } from "./theme.js";
import { compare } from "./views/compare.js";
import { forward } from "./views/forward.js";
import { minimize } from "./views/minimize.js";
import { results } from "./views/results.js";
import { streams } from "./views/streams.js";
import { why } from "./views/why.js";

/**
 * A view fills the main part of the page. It may return a function that takes a new query of the
 * same view and says whether it went there by itself.
 * @type {Object<string, (main: Element, query: URLSearchParams, signal: AbortSignal) => any>}
 */
const VIEWS = { streams, results, why, forward, compare, minimize };
/** @type {Object<string, string>} */
const TAB = { why: "results", forward: "results", minimize: "results" };

/** @type {{view: string, update: ((query: URLSearchParams) => boolean)|null, leave: AbortController}} */
let current = { view: "", update: null, leave: new AbortController() };

async function show() {
  const { view, query } = read(location.hash);
  if (view === current.view && current.update?.(query)) return;
  current.leave.abort();
  const leave = new AbortController();
  current = { view, update: null, leave };
  mark(TAB[view] ?? view);
  const main = byId("main");
  main.replaceChildren();
  try {
    if (!VIEWS[view]) throw new Error(`This page has no view \`${view}\`.`);
    current.update = (await VIEWS[view](main, query, leave.signal)) ?? null;
  } catch (error) {
    if (error.name !== "AbortError") main.append(failure(error, show));
  }
  if (!leave.signal.aborted) arrive(main);
}

function mark(view) {
  for (const tab of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".tabs a"))) {
    if (tab.dataset.view === view) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
}

/** After a change of view, reading begins at its headline. */
function arrive(main) {
  const headline = main.querySelector("h1");
  document.title = headline ? `${headline.textContent} · clew` : "clew";
  scrollTo(0, 0);
  (headline ?? main).focus({ preventScroll: true });
}

function showLive() {
  const badge = byId("live");
  badge.dataset.state = live.state;
  if (badge.textContent !== live.words) badge.textContent = live.words;
}

async function showStore() {
  const place = byId("store");
  const store = await ask("store").catch(() => null);
  place.textContent = store?.name ?? "";
  place.title = store?.path ?? "";
}

startTheme(byId("theme"));
live.addEventListener("state", showLive);
live.start();
document.querySelector(".skip")?.addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
addEventListener("hashchange", show);
showStore();
show();
