import type { Example } from "../api";

export type VerificationStatus = Example["standing"];

/** Returns reviewed examples that match all terms, newest first. */
export function search(examples: Example[], typed: string, status: VerificationStatus | ""): Example[] {
  const terms = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return examples
    .filter((example) => (status === "" ? example.standing !== "unverified" : example.standing === status))
    .filter((example) => {
      const text = `${example.question}\n${example.sql}`.toLowerCase();
      return terms.every((term) => text.includes(term));
    })
    .sort((a, b) => b.added - a.added || a.question.localeCompare(b.question));
}

/** Returns examples to review, the most used first, since they have the greatest effect. */
export function reviewQueue(examples: Example[]): Example[] {
  return examples.filter((example) => example.standing === "unverified").sort((a, b) => b.uses - a.uses || a.added - b.added);
}
