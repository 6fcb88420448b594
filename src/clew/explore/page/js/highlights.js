/**
 * What belongs together, shown together: a hovered row lights up, in tables, drawing and timeline
 * alike, with everything it was made from and everything it went into. Elements that stand for a row
 * have its key as `data-key`.
 */

import { related } from "./reach.js";

export class Highlights {
  #listeners = [];
  #drawing = { nodes: [], links: [], edges: [] };
  #root;

  /**
   * @param {Element} root the part of the page that belongs together
   * @param {AbortSignal} signal
   */
  constructor(root, signal) {
    this.#root = root;
    const over = (event) => this.show(event.target.closest?.("[data-key]")?.dataset.key);
    root.addEventListener("mouseover", over, { signal });
    root.addEventListener("focusin", over, { signal });
  }

  /** The drawing says what belongs together. */
  of(drawing) {
    this.#drawing = drawing;
  }

  /** Light up a row and what belongs to it; without a key nothing is lit. */
  show(key) {
    const keys = key ? related(this.#drawing, key) : new Set();
    for (const each of this.#root.querySelectorAll("[data-key]")) {
      each.classList.toggle("lit", keys.has(each.dataset.key));
    }
    for (const listener of this.#listeners) listener(keys);
  }

  /** @param {(keys: Set<string>) => void} listener for what is drawn and has no elements */
  follow(listener) {
    this.#listeners.push(listener);
  }
}
