import { useMemo } from "preact/hooks";
import type { AppliedFix } from "../api";
import { strings } from "../strings";
import { diff } from "./diff";
import { openRule } from "./open-rule";
import { InlineCode } from "./inline-code";

const labels = strings.trust;
const tones = { safe: "good", likely: "warn", suggested: "" } as const;

/** Diff between a draft and its repair, with the applied fixes. */
export function RepairDiff({ before, after, fixes, dialect }: { before: string; after: string; fixes: readonly AppliedFix[]; dialect: string }) {
  return (
    <div class="repair-diff stack">
      <SqlDiff before={before} after={after} dialect={dialect} />
      <FixList fixes={fixes} />
    </div>
  );
}

export function SqlDiff({ before, after, dialect }: { before: string; after: string; dialect: string }) {
  const parts = useMemo(() => diff(before, after, dialect), [before, after, dialect]);
  return (
    <pre class="sql diff">
      <code>
        {parts.map((part, i) => {
          if (part.kind === "removed") return <del key={i}>{part.text}</del>;
          if (part.kind === "added") return <ins key={i}>{part.text}</ins>;
          return <span key={i}>{part.text}</span>;
        })}
      </code>
    </pre>
  );
}

export function FixList({ fixes }: { fixes: readonly AppliedFix[] }) {
  if (fixes.length === 0) return null;
  return (
    <ul class="fixes small">
      {fixes.map((fix, i) => (
        <li key={i}>
          <span class={`tag ${tones[fix.applicability]}`}>{labels.applicability[fix.applicability]}</span>
          <span class="breaks">
            <InlineCode text={fix.why} />
          </span>
          <RuleLink code={fix.code} />
        </li>
      ))}
    </ul>
  );
}

/** Button that opens the page of a rule. */
export function RuleLink({ code }: { code: string }) {
  return (
    <button type="button" class="plain small mono" aria-label={labels.rule(code)} onClick={() => openRule(code)}>
      {code}
    </button>
  );
}
