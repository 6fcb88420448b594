/** Short news at the lower edge, also read out to those who do not see them. */

const SHOWN_MS = 6000;
let timer = 0;

export function tell(text) {
  const place = document.getElementById("news");
  place.textContent = text;
  clearTimeout(timer);
  timer = setTimeout(() => place.replaceChildren(), SHOWN_MS);
}
