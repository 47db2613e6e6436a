/** Sample of the Prometheus text format. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/**
 * Parses the Prometheus text format. Skips lines that it cannot parse, so that metrics of newer
 * servers do not break the rest.
 */
export function parseMetrics(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const nameMatch = /^([a-zA-Z_:][a-zA-Z0-9_:]*)/.exec(line);
    if (!nameMatch) continue;
    const name = nameMatch[0];
    const parsed = line[name.length] === "{" ? parseLabels(line, name.length + 1) : { labels: {}, end: name.length };
    if (!parsed) continue;
    // An optional timestamp may follow the value.
    const value = parseValue(line.slice(parsed.end).trim().split(/\s+/)[0] ?? "");
    if (value !== null) samples.push({ name, labels: parsed.labels, value });
  }
  return samples;
}

/** Parses labels character by character: values may contain escaped quotes and braces. */
function parseLabels(line: string, start: number): { labels: Record<string, string>; end: number } | null {
  const labels: Record<string, string> = Object.create(null) as Record<string, string>;
  let at = start;
  for (;;) {
    while (line[at] === "," || line[at] === " ") at += 1;
    if (line[at] === "}") return { labels, end: at + 1 };
    const key = /^[a-zA-Z_][a-zA-Z0-9_]*(?==")/.exec(line.slice(at))?.[0];
    if (!key) return null;
    at += key.length + 2;
    let value = "";
    while (line[at] !== '"') {
      if (at >= line.length) return null;
      if (line[at] === "\\") {
        at += 1;
        value += line[at] === "n" ? "\n" : (line[at] ?? "");
      } else value += line[at];
      at += 1;
    }
    at += 1;
    labels[key] = value;
  }
}

function parseValue(text: string): number | null {
  if (text === "+Inf") return Infinity;
  if (text === "-Inf") return -Infinity;
  if (text === "NaN" || text === "") return null;
  const value = Number(text);
  return Number.isNaN(value) ? null : value;
}

/** Sums a metric over all samples that have these labels. */
export function sumMetric(samples: Sample[], name: string, labels: Record<string, string> = {}): number {
  let sum = 0;
  for (const sample of samples) if (sample.name === name && hasLabels(sample, labels)) sum += sample.value;
  return sum;
}

/** Sums a metric per value of a label, in descending order. */
export function sumByLabel(samples: Sample[], name: string, label: string): [string, number][] {
  const parts = new Map<string, number>();
  for (const sample of samples) {
    const part = sample.labels[label];
    if (sample.name === name && part !== undefined) parts.set(part, (parts.get(part) ?? 0) + sample.value);
  }
  return [...parts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}

/**
 * Estimates a quantile of a histogram as the upper bound of its bucket. Returns null without
 * observations, and `Infinity` beyond the last bound.
 */
export function quantile(samples: Sample[], histogram: string, share: number, labels: Record<string, string> = {}): number | null {
  const buckets = new Map<number, number>();
  for (const sample of samples) {
    if (sample.name !== `${histogram}_bucket` || !hasLabels(sample, labels)) continue;
    const bound = parseValue(sample.labels["le"] ?? "");
    if (bound !== null) buckets.set(bound, (buckets.get(bound) ?? 0) + sample.value);
  }
  const cumulative = [...buckets].sort((a, b) => a[0] - b[0]);
  const count = cumulative.at(-1)?.[1] ?? 0;
  if (count === 0) return null;
  return cumulative.find(([, seen]) => seen >= count * share)?.[0] ?? Infinity;
}

function hasLabels(sample: Sample, labels: Record<string, string>): boolean {
  return Object.entries(labels).every(([label, value]) => sample.labels[label] === value);
}
