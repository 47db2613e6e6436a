import { useMemo } from "preact/hooks";
import type { Applied } from "../api";
import { strings } from "../strings";
import { diff } from "./diff";
import { openRule } from "./open-rule";
import { Words } from "./words";

const words = strings.trust;
const tones = { safe: "good", likely: "warn", suggested: "" } as const;

/** What changed between two queries, why, and how sure that was. */
export function Mended({ before, after, fixes, dialect }: { before: string; after: string; fixes: readonly Applied[]; dialect: string }) {
  return (
    <div class="mended stack">
      <Difference before={before} after={after} dialect={dialect} />
      <Fixes fixes={fixes} />
    </div>
  );
}

export function Difference({ before, after, dialect }: { before: string; after: string; dialect: string }) {
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

export function Fixes({ fixes }: { fixes: readonly Applied[] }) {
  if (fixes.length === 0) return null;
  return (
    <ul class="fixes small">
      {fixes.map((fix, i) => (
        <li key={i}>
          <span class={`tag ${tones[fix.applicability]}`}>{words.sure[fix.applicability]}</span>
          <span class="breaks">
            <Words text={fix.why} />
          </span>
          <RuleLink code={fix.code} />
        </li>
      ))}
    </ul>
  );
}

/** Opens the page of a rule beside the view. */
export function RuleLink({ code }: { code: string }) {
  return (
    <button type="button" class="plain small mono" aria-label={words.rule(code)} onClick={() => openRule(code)}>
      {code}
    </button>
  );
}
