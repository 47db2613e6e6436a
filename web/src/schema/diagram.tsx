import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Table } from "../api";
import { strings } from "../strings";
import { boxWidth, layOut, type Diagram as Placed } from "./layout";
import { finder, fullName, near } from "./tables";

const words = strings.schema;
/** More tables at once cannot be read; then only those around the chosen one are drawn. */
const mostTables = 60;
const mostColumns = 9;
const lineHeight = 18;
const headHeight = 28;
const margin = 16;
/** A name that is longer would leave its box. */
const longestName = 24;

/** How the tables hang together, drawn; and the same as text. */
export function Diagram({ tables, chosen, choose }: { tables: Table[]; chosen: Table | undefined; choose: (table: Table) => void }) {
  const few = tables.length <= mostTables;
  const drawn = useMemo(() => (few || !chosen ? tables.slice(0, mostTables) : near(tables, chosen, 2).slice(0, mostTables)), [tables, few ? null : chosen]);
  const placed = useMemo(() => place(drawn), [drawn]);
  const view = useView(placed);
  const byName = new Map(drawn.map((table) => [fullName(table), table]));
  const name = chosen ? fullName(chosen) : "";

  return (
    <figure class="diagram">
      <div class="row diagram-tools">
        <button type="button" onClick={() => view.zoom(1.25)} aria-label={words.nearer}>
          +
        </button>
        <button type="button" onClick={() => view.zoom(0.8)} aria-label={words.farther}>
          −
        </button>
        <button type="button" onClick={view.fit}>
          {words.fit}
        </button>
        {!few && <span class="small quiet">{words.around(name, drawn.length, tables.length)}</span>}
      </div>
      <div class="diagram-frame" ref={view.frame} tabIndex={0} role="group" aria-label={words.diagramKeys} {...view.handlers}>
        <svg viewBox={view.box} aria-hidden="true">
          <defs>
            <marker id="diagram-end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
              <path d="M0,0 L8,4 L0,8 z" class="diagram-arrow" />
            </marker>
          </defs>
          {placed.lines.map((line) => (
            <path
              key={`${line.from} ${line.to}`}
              d={line.path}
              class={line.from === name || line.to === name ? "diagram-line chosen" : "diagram-line"}
              marker-end="url(#diagram-end)"
            />
          ))}
          {placed.boxes.map((box) => {
            const table = byName.get(box.id);
            return (
              table && (
                <g key={box.id} class={box.id === name ? "diagram-box chosen" : "diagram-box"} onClick={() => view.moved() || choose(table)}>
                  <title>{box.id}</title>
                  <rect x={box.x} y={box.y} width={boxWidth} height={box.height} rx="6" />
                  <text x={box.x + 10} y={box.y + 19} class="diagram-name">
                    {cut(box.id)}
                  </text>
                  <line x1={box.x} x2={box.x + boxWidth} y1={box.y + headHeight} y2={box.y + headHeight} />
                  {lines(table).map((text, index) => (
                    <text key={index} x={box.x + 10} y={box.y + headHeight + 16 + index * lineHeight} class="diagram-column">
                      {text}
                    </text>
                  ))}
                </g>
              )
            );
          })}
        </svg>
      </div>
      <details class="fold">
        <summary>{words.asText}</summary>
        <ul class="diagram-text">
          {drawn.map((table) => (
            <li key={fullName(table)}>{described(table)}</li>
          ))}
        </ul>
      </details>
    </figure>
  );
}

function described(table: Table): string {
  const ends = (table.foreign_keys ?? []).map((key) => words.relation(key.columns.join(", "), key.table, key.references.join(", ")));
  return ends.length === 0 ? words.alone(fullName(table)) : `${fullName(table)}: ${ends.join("; ")}`;
}

/** The columns that are drawn: keys first, since they are what the lines are about. */
function lines(table: Table): string[] {
  const keys = new Set([...(table.primary_key ?? []), ...(table.foreign_keys ?? []).flatMap((key) => key.columns)]);
  const names = table.columns.map((column) => column.name);
  const ordered = [...names.filter((name) => keys.has(name)), ...names.filter((name) => !keys.has(name))];
  const shown = ordered.slice(0, ordered.length > mostColumns ? mostColumns - 1 : mostColumns).map((name) => {
    const mark = table.primary_key?.includes(name) ? "◆ " : keys.has(name) ? "→ " : "";
    return mark + cut(name);
  });
  return shown.length < ordered.length ? [...shown, words.more(ordered.length - shown.length)] : shown;
}

function place(tables: Table[]): Placed {
  const find = finder(tables);
  return layOut(
    tables.map((table) => ({
      id: fullName(table),
      height: headHeight + lines(table).length * lineHeight + 10,
      pointsAt: (table.foreign_keys ?? []).flatMap((key) => find(table, key.table) ?? []).map(fullName),
    })),
  );
}

function cut(name: string): string {
  return name.length > longestName ? `${name.slice(0, longestName - 1)}…` : name;
}

interface Seen {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The part of the drawing that is seen, and the ways to move it: keys, a pointer, and the wheel together with Ctrl. */
function useView(placed: Placed) {
  const whole: Seen = { x: -margin, y: -margin, width: Math.max(placed.width, 300) + margin * 2, height: Math.max(placed.height, 150) + margin * 2 };
  const [seen, setSeen] = useState(whole);
  const frame = useRef<HTMLDivElement>(null);
  const drag = useRef<{ x: number; y: number; far: boolean } | null>(null);
  const wasDragged = useRef(false);
  const fit = () => setSeen(whole);
  useEffect(fit, [placed]);

  const zoom = (by: number) =>
    setSeen((now) => {
      const width = Math.min(Math.max(now.width / by, 120), whole.width * 3);
      const height = (now.height * width) / now.width;
      return { x: now.x + (now.width - width) / 2, y: now.y + (now.height - height) / 2, width, height };
    });
  const move = (x: number, y: number) => setSeen((now) => ({ ...now, x: now.x + x * now.width, y: now.y + y * now.height }));

  // A wheel listener must say beforehand that it will keep the page from zooming, which attributes cannot.
  useEffect(() => {
    const turn = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1);
    };
    const element = frame.current;
    element?.addEventListener("wheel", turn, { passive: false });
    return () => element?.removeEventListener("wheel", turn);
  }, [placed]);

  const handlers = {
    onKeyDown(event: KeyboardEvent) {
      const steps: Record<string, () => void> = {
        ArrowLeft: () => move(-0.1, 0),
        ArrowRight: () => move(0.1, 0),
        ArrowUp: () => move(0, -0.1),
        ArrowDown: () => move(0, 0.1),
        "+": () => zoom(1.25),
        "=": () => zoom(1.25),
        "-": () => zoom(0.8),
        "0": fit,
      };
      const step = event.ctrlKey || event.metaKey || event.altKey ? undefined : steps[event.key];
      if (!step) return;
      event.preventDefault();
      step();
    },
    onPointerDown(event: PointerEvent) {
      drag.current = { x: event.clientX, y: event.clientY, far: false };
      wasDragged.current = false;
    },
    onPointerMove(event: PointerEvent) {
      const from = drag.current;
      const size = frame.current?.getBoundingClientRect();
      if (!from || !size) return;
      const [x, y] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.far && Math.hypot(x, y) < 4) return;
      if (!from.far) frame.current?.setPointerCapture(event.pointerId);
      wasDragged.current = true;
      drag.current = { x: event.clientX, y: event.clientY, far: true };
      // The drawing keeps its shape within the frame, so that one scale holds for both directions.
      const scale = Math.max(seen.width / size.width, seen.height / size.height);
      setSeen((now) => ({ ...now, x: now.x - x * scale, y: now.y - y * scale }));
    },
    onPointerUp: () => (drag.current = null),
    onPointerCancel: () => (drag.current = null),
  };
  return { frame, zoom, fit, handlers, moved: () => wasDragged.current, box: `${seen.x} ${seen.y} ${seen.width} ${seen.height}` };
}
