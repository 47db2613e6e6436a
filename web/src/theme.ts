import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const kept = localStorage.getItem("theme");
export const theme = signal<Theme>(kept === "light" || kept === "dark" ? kept : "auto");

/** Puts the choice where the style sheet looks for it; `auto` leaves it to the system. */
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

/** Whether the page is dark just now, for what is drawn on a canvas. */
export function isDark(): boolean {
  if (theme.value !== "auto") return theme.value === "dark";
  return matchMedia("(prefers-color-scheme: dark)").matches;
}
