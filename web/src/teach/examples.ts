import type { Example } from "../api";

export type Standing = Example["standing"];

/** Examples that were looked at, with some words in their question or query; the newest first. */
export function search(examples: Example[], typed: string, standing: Standing | ""): Example[] {
  const wanted = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return examples
    .filter((example) => (standing === "" ? example.standing !== "unverified" : example.standing === standing))
    .filter((example) => {
      const text = `${example.question}\n${example.sql}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    })
    .sort((a, b) => b.added - a.added || a.question.localeCompare(b.question));
}

/** Those that nobody has looked at yet; what was shown most often first, since it does most good or harm. */
export function queue(examples: Example[]): Example[] {
  return examples.filter((example) => example.standing === "unverified").sort((a, b) => b.uses - a.uses || a.added - b.added);
}
