import { parse, View } from "vega";
import { expressionInterpreter } from "vega-interpreter";
import { compile } from "vega-lite";

/** Draws on a canvas. Expressions are interpreted, since the page's policy allows no code that is made from text. */
export async function draw(spec: Record<string, unknown>, into: HTMLElement): Promise<View> {
  const compiled = compile(spec as unknown as Parameters<typeof compile>[0]).spec;
  const runtime = parse(compiled, undefined, { ast: true });
  const view = new View(runtime, { expr: expressionInterpreter, renderer: "canvas", container: into, hover: true });
  await view.runAsync();
  return view;
}

/** The picture as a file. */
export async function picture(view: View, format: "png" | "svg"): Promise<Blob> {
  if (format === "svg") return new Blob([await view.toSVG()], { type: "image/svg+xml" });
  const canvas = await view.toCanvas(2);
  return new Promise((resolve, reject) => {
    const made = (blob: Blob | null) => (blob ? resolve(blob) : reject(new Error("no picture")));
    (canvas as unknown as HTMLCanvasElement).toBlob(made, "image/png");
  });
}
