/**
 * A part of a view that loads by itself: it says that it loads, shows what came, or what went wrong
 * and a way to try again. While it loads anew, what was there stays.
 */

import { h, prose } from "./dom.js";

export class Section {
  #latest = 0;

  /** @param {string} label what it is, for those who hear the page */
  constructor(label, settings = {}) {
    this.element = h("section", { class: "section", "aria-label": label, ...settings });
    this.element.append(h("p", { class: "loading" }, "Loading…"));
  }

  /**
   * @param {() => Promise<any>} ask
   * @param {(answer: any) => Node|Node[]|null} show null leaves the section as it is
   * @returns {Promise<boolean>} whether there was an answer
   */
  async load(ask, show) {
    const mine = ++this.#latest;
    this.element.setAttribute("aria-busy", "true");
    try {
      const answer = await ask();
      if (mine !== this.#latest) return true;
      const shown = show(answer);
      if (shown) this.element.replaceChildren(...[shown].flat());
    } catch (error) {
      if (error.name === "AbortError" || mine !== this.#latest) return true;
      this.element.replaceChildren(failure(error, () => this.load(ask, show)));
      return false;
    } finally {
      if (mine === this.#latest) this.element.setAttribute("aria-busy", "false");
    }
    return true;
  }
}

/** What went wrong, and what to do. */
export function failure(error, again) {
  const [what, ...more] = error.message.split(/\n\n+/);
  return h("div", { class: "notice bad", role: "alert" },
    h("h2", {}, prose(what)),
    more.map((each) => h("p", {}, prose(each))),
    error.hint && h("p", {}, prose(error.hint)),
    again && h("button", { type: "button", on: { click: again } }, "Try again"));
}

/** Nothing to show, and why. */
export function nothing(title, text) {
  return h("div", { class: "notice empty" }, h("h2", {}, title), h("p", {}, text));
}

/** The store is still empty. */
export function noData() {
  return nothing("No data yet", "The store has no batch yet; this page updates by itself.");
}
