import type { ComponentChildren } from "preact";
import { useId, useMemo, useState } from "preact/hooks";
import type { Finding } from "../api";
import { strings } from "../strings";
import { type FormattedToken, format } from "./format";
import { splitByMarks, type TextRange } from "./offsets";
import { openRule } from "./open-rule";
import { tokenClass, type Token } from "./tokens";
import { InlineCode } from "./inline-code";

/** Finding with its range in the query. */
export interface FindingMark {
  finding: Finding;
  range: TextRange;
}

interface Props {
  sql: string;
  dialect: string;
  marks?: readonly FindingMark[];
}

/** Formatted and highlighted query, with findings underlined. */
export function SqlView({ sql, dialect, marks = [] }: Props) {
  const tip = useTooltip();
  const parts = useMemo(() => {
    const { tokens, text, mapOffset } = format(sql, dialect);
    const mapped = marks.map(({ finding, range }) => {
      const start = mapOffset(range.start);
      return { mark: finding, range: { start, end: range.end > range.start ? Math.max(start, mapOffset(range.end - 1) + 1) : start } };
    });
    return splitByMarks(text.length, mapped).map((part) => ({ ...part, nodes: highlightRange(tokens, part.start, part.end) }));
  }, [sql, dialect, marks]);
  return (
    <div class="sql-view">
      <pre class="sql">
        <code>
          {parts.map(({ start, mark, nodes }) =>
            mark ? (
              <FindingUnderline key={start} finding={mark} tip={tip}>
                {nodes}
              </FindingUnderline>
            ) : (
              nodes
            ),
          )}
        </code>
      </pre>
      {tip.node}
    </div>
  );
}

export interface Tooltip {
  id: string;
  show: (finding: Finding, at: HTMLElement) => void;
  hide: () => void;
  shown: Finding | null;
  node: ComponentChildren;
}

/** Tooltip with the message of a finding, kept inside the viewport. */
export function useTooltip(): Tooltip {
  const id = useId();
  const [tip, setTip] = useState<{ finding: Finding; left: number; top: number } | null>(null);
  const show = (finding: Finding, at: HTMLElement) => {
    const box = at.getClientRects()[0] ?? at.getBoundingClientRect();
    setTip({ finding, left: Math.max(8, Math.min(box.left, innerWidth - 340)), top: box.bottom + 6 });
  };
  const node = tip && (
    <div id={id} role="tooltip" class="tooltip" style={{ left: `${tip.left}px`, top: `${tip.top}px` }}>
      <FindingText finding={tip.finding} />
    </div>
  );
  return { id, show, hide: () => setTip(null), shown: tip?.finding ?? null, node };
}

export function FindingText({ finding }: { finding: Finding }) {
  return (
    <>
      <p class="breaks">
        <span class={`tag ${severityTone(finding.severity)}`}>{strings.trust.severities[finding.severity]}</span> <InlineCode text={finding.message} />
      </p>
      {finding.evidence?.map((fact) => (
        <p key={fact} class="small quiet breaks">
          <InlineCode text={fact} />
        </p>
      ))}
    </>
  );
}

export function severityTone(severity: Finding["severity"]): "bad" | "warn" | "" {
  if (severity === "error") return "bad";
  return severity === "warning" ? "warn" : "";
}

function FindingUnderline({ finding, tip, children }: { finding: Finding; tip: Tooltip; children: ComponentChildren }) {
  return (
    <span
      role="button"
      tabIndex={0}
      class={`finding-mark finding-mark-${finding.severity}`}
      aria-describedby={tip.shown === finding ? tip.id : undefined}
      onMouseEnter={(event) => tip.show(finding, event.currentTarget)}
      onMouseLeave={tip.hide}
      onFocus={(event) => tip.show(finding, event.currentTarget)}
      onBlur={tip.hide}
      onClick={() => openRule(finding.code)}
      onKeyDown={(event) => {
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          openRule(finding.code);
        } else if (event.key === "Escape") tip.hide();
      }}
    >
      {children}
    </span>
  );
}

/** Highlights the part of a formatted query between two offsets. */
function highlightRange(tokens: readonly FormattedToken[], from: number, to: number): ComponentChildren[] {
  const nodes: ComponentChildren[] = [];
  let at = 0;
  tokens.forEach((token, i) => {
    for (const [text, kind] of [[token.leading, ""] as const, [token.text, tokenClass(token, tokens[i + 1])] as const]) {
      const start = Math.max(at, from);
      const end = Math.min(at + text.length, to);
      if (start < end) nodes.push(highlighted(text.slice(start - at, end - at), kind));
      at += text.length;
    }
  });
  return nodes;
}

function highlighted(text: string, kind: string): ComponentChildren {
  return kind ? <span class={kind}>{text}</span> : text;
}

/** Highlights tokens, including their own whitespace. */
export function highlightTokens(all: readonly Token[]): ComponentChildren[] {
  return all.map((token, i) => highlighted(token.text, tokenClass(token, all[i + 1])));
}
