/** Short news at the lower edge, also read out to those who do not see them. */

import { byId } from "./dom.js";

const SHOWN_MS = 6000;
let timer = 0;

export function tell(text) {
  const place = byId("news");
  place.textContent = text;
  clearTimeout(timer);
  timer = setTimeout(() => place.replaceChildren(), SHOWN_MS);
}
