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
  /** When the store last changed, if it ever did. @type {number|null} */
  #last = null;
  /** The state of the store as the server last named it. @type {string|null} */
  #known = null;

  start() {
    this.#connect();
    setInterval(() => this.#settle(), 5000);
  }

  /** Call a function after each commit, until the signal aborts. */
  follow(listener, signal) {
    const heard = (event) => listener(/** @type {CustomEvent} */ (event).detail);
    this.addEventListener("commit", heard, { signal });
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
    const source = new EventSource("api/events");
    source.addEventListener("open", () => this.#opened());
    source.addEventListener("commit", (event) => this.#heard(JSON.parse(event.data)));
    source.addEventListener("error", () => this.#failed(source));
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

  /** @param {EventSource} source */
  #failed(source) {
    this.#become("lost");
    // The browser connects again by itself, unless the server refused.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => this.#connect(), AGAIN_MS);
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
