import { signal } from "@preact/signals";

/** The rule whose page is open beside the view. */
export const ruleShown = signal<string | null>(null);
let cameFrom: Element | null = null;

export function openRule(code: string): void {
  if (!ruleShown.value) cameFrom = document.activeElement;
  ruleShown.value = code;
}

/** Closes the page and goes back to where it was opened from. */
export function closeRule(): void {
  ruleShown.value = null;
  if (cameFrom instanceof HTMLElement) cameFrom.focus();
}
