import type { components } from "./api-types";

type Schemas = components["schemas"];
export type Finding = Schemas["Finding"];
export type Applied = Schemas["Applied"];
export type Extracted = Schemas["Extracted"];
export type Attempt = Schemas["Attempt"];

/** What is told beneath an answer that the server gave up on, where the browser may try. */
export interface Analysis {
  tables: { name: string; table: string; sql: string }[];
  code: string;
}
export type Answer = Schemas["Answer"] & { analysis?: Analysis | null };

export type Stage =
  | "pattern_selection"
  | "schema_discovery"
  | "generation"
  | "guardrail_check"
  | "tool_execution"
  | "self_correction"
  | "completed"
  | "failed"
  | "human_in_the_loop";

export interface Change {
  before: string;
  after: string;
}

/** What the server tells while it answers a question: `crates/core/src/event.rs`, one member for each kind. */
export type Event =
  | { event: "started"; trace_id: string; question: string; database: string; model: string; dialect: string; max_attempts: number }
  | { event: "stage"; stage: Stage; attempt: number }
  | { event: "linked"; tables: string[]; of: number }
  | {
      event: "recalled";
      known?: string;
      examples: { id: string; question: string; similarity: number }[];
      stale?: string[];
      trouble?: string;
    }
  | { event: "text"; piece: string }
  | { event: "drafted"; attempt: number; text: string; usage: Schemas["Cost"] }
  | { event: "weighed"; attempt: number; drafts: string[]; agree: number; of: number }
  | { event: "reviewed"; attempt: number; sql: string; approved: boolean; findings: Finding[]; extracted: Extracted }
  | { event: "mended"; attempt: number; before: string; after: string; applied: Applied[]; changes: Change[] }
  | { event: "executed"; attempt: number; sql: string; rows: number; truncated: boolean; ms: number }
  | {
      event: "rejected";
      attempt: number;
      sql: string;
      error: { code: string; message: string; hint?: string; position?: number };
      finding: string;
      error_type: string;
    }
  | { event: "retrying"; attempt: number; of: number; strategy: string; feedback: { kind: string; text: string }[] }
  | { event: "changed"; attempt: number; changes: Change[] }
  | { event: "fell_back"; tables: string[] }
  | { event: "finished"; answer: Answer };
