/**
 * Follow the store: the server says when a batch, an erasure or a pruning has landed.
 *
 * Events: `commit` (with what the server said as `detail`) and `state`. After a lost connection the
 * store is asked whether something was missed.
 */

import { ask } from "./api.js";
import { duration } from "./words.js";

const QUIET_AFTER = 60;
const AGAIN_MS = 3000;

class Live extends EventTarget {
  /** @type {"starting"|"following"|"quiet"|"lost"} */
  state = "starting";
  #last = null;
  #known = null;
  #source = null;

  start() {
    this.#connect();
    setInterval(() => this.#settle(), 5000);
  }

  /** Call a function after each commit, until the signal aborts. */
  follow(listener, signal) {
    this.addEventListener("commit", (event) => listener(event.detail), { signal });
  }

  get words() {
    const since = this.#last && (Date.now() - this.#last) / 1000;
    return {
      starting: "Connecting",
      following: "Following",
      quiet: since ? `Store quiet for ${duration(roughly(since))}` : "Store quiet",
      lost: "Connection lost, trying again",
    }[this.state];
  }

  #connect() {
    this.#source = new EventSource("api/events");
    this.#source.addEventListener("open", () => this.#opened());
    this.#source.addEventListener("commit", (event) => this.#heard(JSON.parse(event.data)));
    this.#source.addEventListener("error", () => this.#failed());
  }

  async #opened() {
    this.#become("following");
    try {
      const store = await ask("store");
      this.#last = store.committed ? Date.parse(store.committed) : null;
      if (this.#known !== null && store.state !== this.#known) this.#heard(store);
      this.#known = store.state;
      this.#settle();
    } catch {
      // The next event, or the next connection, brings the same.
    }
  }

  #heard(detail) {
    if (detail.state === this.#known) return;
    this.#known = detail.state;
    this.#last = Date.now();
    this.#become("following");
    this.dispatchEvent(new CustomEvent("commit", { detail }));
  }

  #failed() {
    this.#become("lost");
    // The browser connects again by itself, unless the server refused.
    if (this.#source.readyState === EventSource.CLOSED) setTimeout(() => this.#connect(), AGAIN_MS);
  }

  #settle() {
    if (this.state === "lost" || this.state === "starting") return;
    const quiet = !this.#last || Date.now() - this.#last > QUIET_AFTER * 1000;
    this.#become(quiet ? "quiet" : "following");
  }

  #become(state) {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}

/** Whole minutes, hours or days: the badge is not a clock. */
function roughly(seconds) {
  const unit = [86400, 3600, 60].find((size) => seconds >= size) ?? 1;
  return Math.floor(seconds / unit) * unit;
}

export const live = new Live();
