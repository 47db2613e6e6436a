import type { components } from "../api-types";
import { json, query, send } from "../api";
import { readFigures } from "./prometheus";

export type Breaker = components["schemas"]["Stats"];

/** A past question in short. */
export interface Past {
  trace_id: string;
  /** When it was asked, in seconds since 1970. */
  at: number;
  user: string;
  question: string;
  database: string;
  status: string;
  confidence: string;
  attempts: number;
  duration_ms: number;
  /** What it cost, where the price is known. */
  usd?: number | null;
}

export const operating = {
  breakers: () => json<Breaker[]>("/v1/breakers"),
  reset: (tool?: string) => json<void>("/v1/breakers/reset", { body: tool === undefined ? {} : { tool } }),
  figures: async () => readFigures(await (await send("/metrics", { accept: "text/plain" })).text()),
  past: (limit: number) => json<Past[]>(`/v1/traces${query({ limit, all: true })}`),
};
