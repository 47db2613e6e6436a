import { parse, View } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile } from "vega-lite";

/**
 * Renders a chart on a canvas. Uses the expression interpreter, because the Content Security Policy
 * forbids `eval`.
 */
export async function renderChart(spec: Record<string, unknown>, into: HTMLElement): Promise<View> {
  const compiled = compile(spec as unknown as Parameters<typeof compile>[0]).spec;
  const runtime = parse(compiled, undefined, { ast: true });
  const view = new View(runtime, { expr: expressionInterpreter, renderer: "canvas", container: into, hover: true });
  await view.runAsync();
  return view;
}

/** Exports the chart as an image file. */
export async function exportImage(view: View, format: "png" | "svg"): Promise<Blob> {
  if (format === "svg") return new Blob([await view.toSVG()], { type: "image/svg+xml" });
  const canvas = await view.toCanvas(2);
  return new Promise((resolve, reject) => {
    const onBlob = (blob: Blob | null) => (blob ? resolve(blob) : reject(new Error("no picture")));
    (canvas as unknown as HTMLCanvasElement).toBlob(onBlob, "image/png");
  });
}
