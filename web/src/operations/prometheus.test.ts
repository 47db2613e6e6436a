import { describe, expect, test } from "vitest";
import { quantile, sumByLabel, parseMetrics, sumMetric } from "./prometheus";

const text = `# HELP querymend_questions_total Questions by how they ended
# TYPE querymend_questions_total counter
querymend_questions_total{status="answered",stop="answered"} 7
querymend_questions_total{status="gave_up",stop="max_attempts"} 2
querymend_questions_total{status="answered",stop="chat"} 1
up 1 1700000000
odd{name="a \\"quoted\\" {brace}, back\\\\slash\\nline"} 3
broken{name="no end 4
querymend_seconds_bucket{le="0.1"} 5
querymend_seconds_bucket{le="1"} 9
querymend_seconds_bucket{le="+Inf"} 10
nothing NaN
`;
const samples = parseMetrics(text);

describe("Prometheus metrics", () => {
  test("parses labels and skips malformed lines", () => {
    expect(samples.map((sample) => sample.name)).toEqual([
      ...Array<string>(3).fill("querymend_questions_total"),
      "up",
      "odd",
      ...Array<string>(3).fill("querymend_seconds_bucket"),
    ]);
    expect(samples.find((sample) => sample.name === "up")?.value).toBe(1);
    expect(samples.find((sample) => sample.name === "odd")?.labels["name"]).toBe('a "quoted" {brace}, back\\slash\nline');
  });

  test("sums samples with matching labels", () => {
    expect(sumMetric(samples, "querymend_questions_total")).toBe(10);
    expect(sumMetric(samples, "querymend_questions_total", { status: "answered" })).toBe(8);
    expect(sumMetric(samples, "unknown_metric")).toBe(0);
  });

  test("sums by label in descending order", () => {
    expect(sumByLabel(samples, "querymend_questions_total", "status")).toEqual([
      ["answered", 8],
      ["gave_up", 2],
    ]);
  });

  test("estimates quantiles from histogram buckets", () => {
    expect(quantile(samples, "querymend_seconds", 0.5)).toBe(0.1);
    expect(quantile(samples, "querymend_seconds", 0.9)).toBe(1);
    expect(quantile(samples, "querymend_seconds", 0.99)).toBe(Infinity);
    expect(quantile(samples, "unknown_metric", 0.5)).toBeNull();
  });

  test("is safe from prototype pollution by label names", () => {
    expect(parseMetrics('x{__proto__="a"} 1')[0]?.labels["__proto__"]).toBe("a");
  });
});
