import { type Breaker, json, queryString, send, type TraceSummary } from "../api";
import { parseMetrics } from "./prometheus";

export const operationsApi = {
  breakers: () => json<Breaker[]>("/v1/breakers"),
  reset: (tool?: string) => json<void>("/v1/breakers/reset", { body: tool === undefined ? {} : { tool } }),
  metrics: async () => parseMetrics(await (await send("/metrics", { accept: "text/plain" })).text()),
  traces: (limit: number) => json<TraceSummary[]>(`/v1/traces${queryString({ limit, all: true })}`),
};
