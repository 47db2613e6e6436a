import { describe, expect, test } from "vitest";
import { below, parted, readFigures, total } from "./prometheus";

const text = `# HELP querymend_questions_total Questions by how they ended
# TYPE querymend_questions_total counter
querymend_questions_total{status="answered",stop="answered"} 7
querymend_questions_total{status="gave_up",stop="attempts_spent"} 2
querymend_questions_total{status="answered",stop="talked"} 1
up 1 1700000000
odd{name="a \\"quoted\\" {brace}, back\\\\slash\\nline"} 3
broken{name="no end 4
querymend_seconds_bucket{le="0.1"} 5
querymend_seconds_bucket{le="1"} 9
querymend_seconds_bucket{le="+Inf"} 10
nothing NaN
`;
const samples = readFigures(text);

describe("figures", () => {
  test("are read with their labels, and what is broken is left out", () => {
    expect(samples.map((sample) => sample.name)).toEqual([
      ...Array<string>(3).fill("querymend_questions_total"),
      "up",
      "odd",
      ...Array<string>(3).fill("querymend_seconds_bucket"),
    ]);
    expect(samples.find((sample) => sample.name === "up")?.value).toBe(1);
    expect(samples.find((sample) => sample.name === "odd")?.labels["name"]).toBe('a "quoted" {brace}, back\\slash\nline');
  });

  test("are summed over what they are about", () => {
    expect(total(samples, "querymend_questions_total")).toBe(10);
    expect(total(samples, "querymend_questions_total", { status: "answered" })).toBe(8);
    expect(total(samples, "unheard_of")).toBe(0);
  });

  test("are parted by a label, the largest first", () => {
    expect(parted(samples, "querymend_questions_total", "status")).toEqual([
      ["answered", 8],
      ["gave_up", 2],
    ]);
  });

  test("tell how long most calls took at most", () => {
    expect(below(samples, "querymend_seconds", 0.5)).toBe(0.1);
    expect(below(samples, "querymend_seconds", 0.9)).toBe(1);
    expect(below(samples, "querymend_seconds", 0.99)).toBe(Infinity);
    expect(below(samples, "unheard_of", 0.5)).toBeNull();
  });

  test("labels named like parts of an object are labels and nothing else", () => {
    expect(readFigures('x{__proto__="a"} 1')[0]?.labels["__proto__"]).toBe("a");
  });
});
