import type { Analysis as Plan } from "../api";

/** The answer that is computed here, in the browser, after the attempts are spent. */
export function Analysis(_: { plan: Plan; database: string; question: string }) {
  return null;
}
