import { signal } from "@preact/signals";

/** Code of the rule whose page is open. */
export const openRuleCode = signal<string | null>(null);
let previousFocus: Element | null = null;

export function openRule(code: string): void {
  if (!openRuleCode.value) previousFocus = document.activeElement;
  openRuleCode.value = code;
}

/** Closes the rule page and restores the focus. */
export function closeRule(): void {
  openRuleCode.value = null;
  if (previousFocus instanceof HTMLElement) previousFocus.focus();
}
