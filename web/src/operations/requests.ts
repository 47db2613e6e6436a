import type { components } from "../api-types";
import { json, query, send } from "../api";
import { readFigures } from "./prometheus";

export type Breaker = components["schemas"]["Stats"];

/** A past question in short. */
export type Past = components["schemas"]["Past"];

export const operating = {
  breakers: () => json<Breaker[]>("/v1/breakers"),
  reset: (tool?: string) => json<void>("/v1/breakers/reset", { body: tool === undefined ? {} : { tool } }),
  figures: async () => readFigures(await (await send("/metrics", { accept: "text/plain" })).text()),
  past: (limit: number) => json<Past[]>(`/v1/traces${query({ limit, all: true })}`),
};
