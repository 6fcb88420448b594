/** Light, dark, or as the system has it; the choice is kept in this browser. */

const KEY = "clew-theme";
const ORDER = ["system", "light", "dark"];

/** Dispatches `change` when colours changed, for what is drawn on a canvas. */
export const theme = new EventTarget();

export function startTheme(button) {
  let chosen = localStorage.getItem(KEY) ?? "system";
  const apply = () => {
    if (chosen === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    button.textContent = { system: "Auto", light: "Light", dark: "Dark" }[chosen];
    button.setAttribute("aria-label", `Colours: ${chosen}. Change them.`);
    theme.dispatchEvent(new Event("change"));
  };
  button.addEventListener("click", () => {
    chosen = ORDER[(ORDER.indexOf(chosen) + 1) % ORDER.length];
    localStorage.setItem(KEY, chosen);
    apply();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", apply);
  apply();
}

/** The colour behind a token as a canvas takes it. */
export function colour(token) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${token})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}
