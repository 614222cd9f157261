// Light or dark: the system's choice, or the reader's, which is kept on this machine. early.js has set the first.

import { tell } from "./bus.js";
import { $ } from "./dom.js";

const kept = "sluice.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

const root = document.documentElement;

export const dark = () => root.dataset.theme === "dark";

// paint is a colour of dashboard.css as a chart needs it.
export const paint = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();

function chosen() {
  try {
    return localStorage.getItem(kept) || "auto";
  } catch {
    return "auto";
  }
}

function use(theme) {
  root.dataset.theme = theme === "auto" ? (system.matches ? "dark" : "light") : theme;
  tell("theme");
}

export function startTheme() {
  $("theme").value = chosen();
  $("theme").addEventListener("change", () => {
    const theme = $("theme").value;
    try {
      if (theme === "auto") localStorage.removeItem(kept);
      else localStorage.setItem(kept, theme);
    } catch { /* for this page alone then */ }
    use(theme);
  });
  system.addEventListener("change", () => { if ($("theme").value === "auto") use("auto"); });
}
