import type { ComponentChildren, RefObject } from "preact";
import { useMemo } from "preact/hooks";
import type { Finding } from "../api";
import { strings } from "../strings";
import { splitByMarks } from "../trust/offsets";
import { type FindingMark, useTooltip } from "../trust/sql-view";
import { tokenClass, tokenize } from "../trust/tokens";

const labels = strings.sql;

interface Props {
  area: RefObject<HTMLTextAreaElement>;
  value: string;
  dialect: string;
  marks: readonly FindingMark[];
  onChange: (value: string) => void;
  onRun: () => void;
}

/** Syntax-highlighting editor: a text area with transparent text above a highlighted copy. */
export function Editor({ area, value, dialect, marks, onChange, onRun }: Props) {
  const tip = useTooltip();
  const ranges = useMemo(() => marks.map(({ finding, range }) => ({ mark: finding, range })), [marks]);
  // The text area receives the pointer events; look up the highlighted element below it.
  const showTooltipUnderPointer = (event: MouseEvent) => {
    const beneath = document.elementsFromPoint(event.clientX, event.clientY).find((one) => one instanceof HTMLElement && one.dataset["finding"]);
    const finding = beneath instanceof HTMLElement ? marks[Number(beneath.dataset["finding"]) - 1]?.finding : undefined;
    if (finding && beneath instanceof HTMLElement) {
      if (tip.shown !== finding) tip.show(finding, beneath);
    } else if (tip.shown) tip.hide();
  };
  return (
    <div class="editor">
      <pre class="editor-layer" aria-hidden="true">
        {highlight(value, dialect, ranges)}
        {"\n"}
      </pre>
      <textarea
        ref={area}
        class="editor-text"
        aria-label={labels.query}
        aria-describedby="sql-state"
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        placeholder={labels.placeholder}
        value={value}
        onInput={(event) => {
          tip.hide();
          onChange(event.currentTarget.value);
        }}
        onMouseMove={showTooltipUnderPointer}
        onMouseLeave={tip.hide}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          onRun();
        }}
      />
      {tip.node}
    </div>
  );
}

function highlight(value: string, dialect: string, marks: readonly { mark: Finding; range: { start: number; end: number } }[]): ComponentChildren {
  const allTokens = tokenize(value, dialect);
  return splitByMarks(value.length, marks).map(({ start, end, mark }) => {
    const nodes = allTokens.flatMap((token, i) => {
      const from = Math.max(start, token.offset);
      const to = Math.min(end, token.offset + token.text.length);
      if (from >= to) return [];
      const kind = tokenClass(token, allTokens[i + 1]);
      const text = value.slice(from, to);
      return [kind ? <span class={kind}>{text}</span> : text];
    });
    if (!mark) return nodes;
    const index = marks.findIndex((one) => one.mark === mark) + 1;
    return (
      <span key={start} class={`finding-mark finding-mark-${mark.severity}`} data-finding={index}>
        {nodes}
      </span>
    );
  });
}
