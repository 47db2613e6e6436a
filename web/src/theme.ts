import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const stored = localStorage.getItem("theme");
export const theme = signal<Theme>(stored === "light" || stored === "dark" ? stored : "auto");

/** Sets the theme attribute that the style sheet reads; `auto` follows the system. */
export function applyTheme(): void {
  if (theme.value === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.value;
}

export function chooseTheme(choice: Theme): void {
  theme.value = choice;
  if (choice === "auto") localStorage.removeItem("theme");
  else localStorage.setItem("theme", choice);
  applyTheme();
}

/** Returns whether the dark theme is active, for drawing on a canvas. */
export function isDark(): boolean {
  if (theme.value !== "auto") return theme.value === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
