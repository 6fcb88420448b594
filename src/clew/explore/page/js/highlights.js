/**
 * What belongs together, shown together: a hovered row lights up, in tables, drawing and timeline
 * alike, with everything it was made from and everything it went into. Elements that stand for a row
 * have its key as `data-key`.
 */

import { drawnAs, related } from "./reach.js";

export class Highlights {
  /** @type {((keys: Set<string>) => void)[]} */
  #listeners = [];
  /** @type {import("./drawing.js").Drawn} */
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
    const node = key && drawnAs(this.#drawing, key);
    const keys = node ? related(this.#drawing, node) : new Set();
    /** @type {NodeListOf<HTMLElement>} */
    const elements = this.#root.querySelectorAll("[data-key]");
    for (const each of elements) {
      const own = each.dataset.key;
      const drawn = drawnAs(this.#drawing, own);
      // One row of a group speaks for itself, not for the others that the group stands for.
      const isLit = own === key || (keys.has(drawn) && (drawn === own || node === key));
      each.classList.toggle("lit", isLit);
    }
    for (const listener of this.#listeners) listener(keys);
  }

  /** @param {(keys: Set<string>) => void} listener for what is drawn and has no elements */
  follow(listener) {
    this.#listeners.push(listener);
  }
}
