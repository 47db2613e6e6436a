import type { ComponentChildren } from "preact";
import { useId, useMemo, useState } from "preact/hooks";
import type { Finding } from "../api";
import { strings } from "../strings";
import { type Laid, format } from "./format";
import { cutBy, type Piece } from "./place";
import { openRule } from "./open-rule";
import { look, type Token } from "./tokens";
import { Words } from "./words";

/** A finding and where it stands in the query. */
export interface Marked {
  finding: Finding;
  piece: Piece;
}

interface Props {
  sql: string;
  dialect: string;
  marks?: readonly Marked[];
}

/** A query laid out and coloured, with what was found underlined. */
export function SqlView({ sql, dialect, marks = [] }: Props) {
  const tip = useTip();
  const parts = useMemo(() => {
    const { laid, text, place } = format(sql, dialect);
    const placed = marks.map(({ finding, piece }) => {
      const start = place(piece.start);
      return { mark: finding, piece: { start, end: piece.end > piece.start ? Math.max(start, place(piece.end - 1) + 1) : start } };
    });
    return cutBy(text.length, placed).map((cut) => ({ ...cut, nodes: coloured(laid, cut.start, cut.end) }));
  }, [sql, dialect, marks]);
  return (
    <div class="sql-view">
      <pre class="sql">
        <code>
          {parts.map(({ start, mark, nodes }) =>
            mark ? (
              <Underlined key={start} finding={mark} tip={tip}>
                {nodes}
              </Underlined>
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

export interface Tip {
  id: string;
  show: (finding: Finding, at: HTMLElement) => void;
  hide: () => void;
  shown: Finding | null;
  node: ComponentChildren;
}

/** The message of a finding, beside whatever it is about; kept inside of the window. */
export function useTip(): Tip {
  const id = useId();
  const [tip, setTip] = useState<{ finding: Finding; left: number; top: number } | null>(null);
  const show = (finding: Finding, at: HTMLElement) => {
    const box = at.getClientRects()[0] ?? at.getBoundingClientRect();
    setTip({ finding, left: Math.max(8, Math.min(box.left, innerWidth - 340)), top: box.bottom + 6 });
  };
  const node = tip && (
    <div id={id} role="tooltip" class="tip" style={{ left: `${tip.left}px`, top: `${tip.top}px` }}>
      <FindingText finding={tip.finding} />
    </div>
  );
  return { id, show, hide: () => setTip(null), shown: tip?.finding ?? null, node };
}

export function FindingText({ finding }: { finding: Finding }) {
  return (
    <>
      <p class="breaks">
        <span class={`tag ${toneOf(finding.severity)}`}>{strings.trust.severities[finding.severity]}</span> <Words text={finding.message} />
      </p>
      {finding.evidence?.map((fact) => (
        <p key={fact} class="small quiet breaks">
          <Words text={fact} />
        </p>
      ))}
    </>
  );
}

export function toneOf(severity: Finding["severity"]): "bad" | "warn" | "" {
  if (severity === "error") return "bad";
  return severity === "warning" ? "warn" : "";
}

function Underlined({ finding, tip, children }: { finding: Finding; tip: Tip; children: ComponentChildren }) {
  return (
    <span
      role="button"
      tabIndex={0}
      class={`found found-${finding.severity}`}
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

/** The part of a query between two places, as coloured text. */
function coloured(laid: readonly Laid[], from: number, to: number): ComponentChildren[] {
  const nodes: ComponentChildren[] = [];
  let at = 0;
  laid.forEach((token, i) => {
    for (const [text, kind] of [[token.before, ""] as const, [token.text, look(token, laid[i + 1])] as const]) {
      const start = Math.max(at, from);
      const end = Math.min(at + text.length, to);
      if (start < end) nodes.push(piece(text.slice(start - at, end - at), kind));
      at += text.length;
    }
  });
  return nodes;
}

function piece(text: string, kind: string): ComponentChildren {
  return kind ? <span class={kind}>{text}</span> : text;
}

/** Coloured text of tokens that keep their own white space. */
export function colouredTokens(all: readonly Token[]): ComponentChildren[] {
  return all.map((token, i) => piece(token.text, look(token, all[i + 1])));
}
