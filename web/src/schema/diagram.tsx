import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Table } from "../api";
import { strings } from "../strings";
import { boxWidth, layoutGraph, type Diagram as DiagramLayout } from "./layout";
import { tableResolver, fullName, tablesWithin } from "./tables";

const labels = strings.schema;
/** Maximum number of tables drawn; beyond it only the neighbors of the chosen table are shown. */
const maxTables = 60;
const maxColumns = 9;
const lineHeight = 18;
const headHeight = 28;
const margin = 16;
/** Maximum length of a name that fits into its box. */
const maxNameLength = 24;

/** Entity-relationship diagram, with a text alternative. */
export function Diagram({ tables, chosen, choose }: { tables: Table[]; chosen: Table | undefined; choose: (table: Table) => void }) {
  const showsAll = tables.length <= maxTables;
  const drawn = useMemo(() => (showsAll || !chosen ? tables.slice(0, maxTables) : tablesWithin(tables, chosen, 2).slice(0, maxTables)), [tables, showsAll ? null : chosen]);
  const layout = useMemo(() => layoutTables(drawn), [drawn]);
  const view = usePanZoom(layout);
  const byName = new Map(drawn.map((table) => [fullName(table), table]));
  const name = chosen ? fullName(chosen) : "";

  return (
    <figure class="diagram">
      <div class="row diagram-tools">
        <button type="button" onClick={() => view.zoom(1.25)} aria-label={labels.zoomIn}>
          +
        </button>
        <button type="button" onClick={() => view.zoom(0.8)} aria-label={labels.zoomOut}>
          −
        </button>
        <button type="button" onClick={view.fit}>
          {labels.fit}
        </button>
        {!showsAll && <span class="small quiet">{labels.around(name, drawn.length, tables.length)}</span>}
      </div>
      <div class="diagram-frame" ref={view.frame} tabIndex={0} role="group" aria-label={labels.diagramKeys} {...view.handlers}>
        <svg viewBox={view.box} aria-hidden="true">
          <defs>
            <marker id="diagram-end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
              <path d="M0,0 L8,4 L0,8 z" class="diagram-arrow" />
            </marker>
          </defs>
          {layout.edges.map((line) => (
            <path
              key={`${line.from} ${line.to}`}
              d={line.path}
              class={line.from === name || line.to === name ? "diagram-line chosen" : "diagram-line"}
              marker-end="url(#diagram-end)"
            />
          ))}
          {layout.boxes.map((box) => {
            const table = byName.get(box.id);
            return (
              table && (
                <g key={box.id} class={box.id === name ? "diagram-box chosen" : "diagram-box"} onClick={() => view.moved() || choose(table)}>
                  <title>{box.id}</title>
                  <rect x={box.x} y={box.y} width={boxWidth} height={box.height} rx="6" />
                  <text x={box.x + 10} y={box.y + 19} class="diagram-name">
                    {truncateName(box.id)}
                  </text>
                  <line x1={box.x} x2={box.x + boxWidth} y1={box.y + headHeight} y2={box.y + headHeight} />
                  {columnLines(table).map((text, index) => (
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
        <summary>{labels.asText}</summary>
        <ul class="diagram-text">
          {drawn.map((table) => (
            <li key={fullName(table)}>{describeTable(table)}</li>
          ))}
        </ul>
      </details>
    </figure>
  );
}

function describeTable(table: Table): string {
  const ends = (table.foreign_keys ?? []).map((key) => labels.relation(key.columns.join(", "), key.table, key.references.join(", ")));
  return ends.length === 0 ? labels.noForeignKeys(fullName(table)) : `${fullName(table)}: ${ends.join("; ")}`;
}

/** Columns shown in a box: keys first, then the others. */
function columnLines(table: Table): string[] {
  const keys = new Set([...(table.primary_key ?? []), ...(table.foreign_keys ?? []).flatMap((key) => key.columns)]);
  const names = table.columns.map((column) => column.name);
  const ordered = [...names.filter((name) => keys.has(name)), ...names.filter((name) => !keys.has(name))];
  const shown = ordered.slice(0, ordered.length > maxColumns ? maxColumns - 1 : maxColumns).map((name) => {
    const mark = table.primary_key?.includes(name) ? "◆ " : keys.has(name) ? "→ " : "";
    return mark + truncateName(name);
  });
  return shown.length < ordered.length ? [...shown, labels.more(ordered.length - shown.length)] : shown;
}

function layoutTables(tables: Table[]): DiagramLayout {
  const find = tableResolver(tables);
  return layoutGraph(
    tables.map((table) => ({
      id: fullName(table),
      height: headHeight + columnLines(table).length * lineHeight + 10,
      references: (table.foreign_keys ?? []).flatMap((key) => find(table, key.table) ?? []).map(fullName),
    })),
  );
}

function truncateName(name: string): string {
  return name.length > maxNameLength ? `${name.slice(0, maxNameLength - 1)}…` : name;
}

interface ViewBox {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Pan and zoom of the diagram by keyboard, pointer, and wheel with Ctrl. */
function usePanZoom(placed: DiagramLayout) {
  const fullView: ViewBox = { x: -margin, y: -margin, width: Math.max(placed.width, 300) + margin * 2, height: Math.max(placed.height, 150) + margin * 2 };
  const [viewBox, setViewBox] = useState(fullView);
  const frame = useRef<HTMLDivElement>(null);
  const drag = useRef<{ x: number; y: number; isDragging: boolean } | null>(null);
  const wasDragged = useRef(false);
  const fit = () => setViewBox(fullView);
  useEffect(fit, [placed]);

  const zoom = (by: number) =>
    setViewBox((now) => {
      const width = Math.min(Math.max(now.width / by, 120), fullView.width * 3);
      const height = (now.height * width) / now.width;
      return { x: now.x + (now.width - width) / 2, y: now.y + (now.height - height) / 2, width, height };
    });
  const move = (x: number, y: number) => setViewBox((now) => ({ ...now, x: now.x + x * now.width, y: now.y + y * now.height }));

  // Registered by hand: JSX attributes cannot make a wheel listener non-passive.
  useEffect(() => {
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1);
    };
    const element = frame.current;
    element?.addEventListener("wheel", onWheel, { passive: false });
    return () => element?.removeEventListener("wheel", onWheel);
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
      drag.current = { x: event.clientX, y: event.clientY, isDragging: false };
      wasDragged.current = false;
    },
    onPointerMove(event: PointerEvent) {
      const from = drag.current;
      const size = frame.current?.getBoundingClientRect();
      if (!from || !size) return;
      const [x, y] = [event.clientX - from.x, event.clientY - from.y];
      if (!from.isDragging && Math.hypot(x, y) < 4) return;
      if (!from.isDragging) frame.current?.setPointerCapture(event.pointerId);
      wasDragged.current = true;
      drag.current = { x: event.clientX, y: event.clientY, isDragging: true };
      // The SVG keeps its aspect ratio, so one scale applies to both axes.
      const scale = Math.max(viewBox.width / size.width, viewBox.height / size.height);
      setViewBox((now) => ({ ...now, x: now.x - x * scale, y: now.y - y * scale }));
    },
    onPointerUp: () => (drag.current = null),
    onPointerCancel: () => (drag.current = null),
  };
  return { frame, zoom, fit, handlers, moved: () => wasDragged.current, box: `${viewBox.x} ${viewBox.y} ${viewBox.width} ${viewBox.height}` };
}
