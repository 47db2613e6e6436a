/** One figure of the server's text: its name, what it is about, and its value. */
export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

/**
 * Reads the text that the server gives to Prometheus. Lines that are not understood are left out: a figure that a newer server
 * adds must not take the others away.
 */
export function readFigures(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith("#")) continue;
    const head = /^([a-zA-Z_:][a-zA-Z0-9_:]*)/.exec(line);
    if (!head) continue;
    const name = head[0];
    const found = line[name.length] === "{" ? readLabels(line, name.length + 1) : { labels: {}, end: name.length };
    if (!found) continue;
    // What may follow the value is a time, which nobody here needs.
    const value = readValue(line.slice(found.end).trim().split(/\s+/)[0] ?? "");
    if (value !== null) samples.push({ name, labels: found.labels, value });
  }
  return samples;
}

/** Labels are read sign by sign: a value may hold every sign that would end it, written with a backslash before it. */
function readLabels(line: string, start: number): { labels: Record<string, string>; end: number } | null {
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

function readValue(text: string): number | null {
  if (text === "+Inf") return Infinity;
  if (text === "-Inf") return -Infinity;
  if (text === "NaN" || text === "") return null;
  const value = Number(text);
  return Number.isNaN(value) ? null : value;
}

/** The sum of a figure over everything that has these labels. */
export function total(samples: Sample[], name: string, labels: Record<string, string> = {}): number {
  let sum = 0;
  for (const sample of samples) if (sample.name === name && fits(sample, labels)) sum += sample.value;
  return sum;
}

/** A figure, parted by one of its labels; the largest first. */
export function parted(samples: Sample[], name: string, label: string): [string, number][] {
  const parts = new Map<string, number>();
  for (const sample of samples) {
    const part = sample.labels[label];
    if (sample.name === name && part !== undefined) parts.set(part, (parts.get(part) ?? 0) + sample.value);
  }
  return [...parts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}

/**
 * The value below which a share of the calls stayed, as near as the histogram's bounds tell: the bound of the bucket that it falls
 * into. `null` where nothing was measured, `Infinity` where it lies beyond the last bound.
 */
export function below(samples: Sample[], histogram: string, share: number, labels: Record<string, string> = {}): number | null {
  const buckets = new Map<number, number>();
  for (const sample of samples) {
    if (sample.name !== `${histogram}_bucket` || !fits(sample, labels)) continue;
    const bound = readValue(sample.labels["le"] ?? "");
    if (bound !== null) buckets.set(bound, (buckets.get(bound) ?? 0) + sample.value);
  }
  const counted = [...buckets].sort((a, b) => a[0] - b[0]);
  const all = counted.at(-1)?.[1] ?? 0;
  if (all === 0) return null;
  return counted.find(([, count]) => count >= all * share)?.[0] ?? Infinity;
}

function fits(sample: Sample, labels: Record<string, string>): boolean {
  return Object.entries(labels).every(([label, value]) => sample.labels[label] === value);
}
