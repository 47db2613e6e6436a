import type { ComponentChildren, RefObject } from "preact";
import { useMemo } from "preact/hooks";
import type { Finding } from "../api";
import { strings } from "../strings";
import { cutBy } from "../trust/place";
import { type Marked, useTip } from "../trust/sql-view";
import { look, tokens } from "../trust/tokens";

const words = strings.sql;

interface Props {
  area: RefObject<HTMLTextAreaElement>;
  value: string;
  dialect: string;
  marks: readonly Marked[];
  change: (value: string) => void;
  run: () => void;
}

/** A plain text area. A coloured copy of its text lies beneath it, exactly in its place; the text area's own letters are not seen. */
export function Editor({ area, value, dialect, marks, change, run }: Props) {
  const tip = useTip();
  const found = useMemo(() => marks.map(({ finding, piece }) => ({ mark: finding, piece })), [marks]);
  // The pointer touches the text area; what lies beneath is asked for.
  const point = (event: MouseEvent) => {
    const beneath = document.elementsFromPoint(event.clientX, event.clientY).find((one) => one instanceof HTMLElement && one.dataset["finding"]);
    const finding = beneath instanceof HTMLElement ? marks[Number(beneath.dataset["finding"]) - 1]?.finding : undefined;
    if (finding && beneath instanceof HTMLElement) {
      if (tip.shown !== finding) tip.show(finding, beneath);
    } else if (tip.shown) tip.hide();
  };
  return (
    <div class="editor">
      <pre class="editor-layer" aria-hidden="true">
        {coloured(value, dialect, found)}
        {"\n"}
      </pre>
      <textarea
        ref={area}
        class="editor-text"
        aria-label={words.query}
        aria-describedby="sql-state"
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        placeholder={words.placeholder}
        value={value}
        onInput={(event) => {
          tip.hide();
          change(event.currentTarget.value);
        }}
        onMouseMove={point}
        onMouseLeave={tip.hide}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          run();
        }}
      />
      {tip.node}
    </div>
  );
}

function coloured(value: string, dialect: string, marks: readonly { mark: Finding; piece: { start: number; end: number } }[]): ComponentChildren {
  const all = tokens(value, dialect);
  return cutBy(value.length, marks).map(({ start, end, mark }) => {
    const nodes = all.flatMap((token, i) => {
      const from = Math.max(start, token.at);
      const to = Math.min(end, token.at + token.text.length);
      if (from >= to) return [];
      const kind = look(token, all[i + 1]);
      const text = value.slice(from, to);
      return [kind ? <span class={kind}>{text}</span> : text];
    });
    if (!mark) return nodes;
    const index = marks.findIndex((one) => one.mark === mark) + 1;
    return (
      <span key={start} class={`found found-${mark.severity}`} data-finding={index}>
        {nodes}
      </span>
    );
  });
}
