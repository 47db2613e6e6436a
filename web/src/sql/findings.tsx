import type { Fix, LocatedFinding } from "../api";
import { strings } from "../strings";
import { RuleLink } from "../trust/repair-diff";
import { FindingText } from "../trust/sql-view";
import { InlineCode } from "../trust/inline-code";
import type { LiveCheck } from "./check";

const labels = strings.sql;

interface Props {
  live: LiveCheck;
  apply: (fix: Fix) => void;
  goTo: (finding: LocatedFinding) => void;
}

/** Findings of the query, with a button for each fix. */
export function FindingList({ live, apply, goTo }: Props) {
  const findings = live.response?.findings ?? [];
  return (
    <section class="stack">
      <p id="sql-state" role="status" class="small quiet">
        {statusText(live)}
      </p>
      <ul class="findings sql-findings small">
        {findings.map((finding, i) => (
          <li key={i}>
            <div class="stack">
              <FindingText finding={finding} />
              {finding.fixes && finding.fixes.length > 0 && (
                <div class="row">
                  {finding.fixes.map((fix, j) => (
                    <button key={j} type="button" class="fix-button breaks" onClick={() => apply(fix)}>
                      <span class={`tag ${fix.applicability === "safe" ? "good" : "warn"}`}>{fix.applicability}</span>
                      <span>
                        <InlineCode text={labels.apply(fix.why)} />
                      </span>
                    </button>
                  ))}
                </div>
              )}
            </div>
            <button
              type="button"
              class="plain small finding-position"
              aria-label={labels.goToPosition(finding.line, finding.column)}
              onClick={() => goTo(finding)}
            >
              {labels.position(finding.line, finding.column)}
            </button>
            <RuleLink code={finding.code} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function statusText({ response, problem, checking }: LiveCheck): string {
  if (checking) return labels.checking;
  if (problem) return labels.notChecked;
  if (!response) return "";
  if (response.findings.length === 0) return labels.clean;
  const count = labels.findings(response.findings.length);
  return response.verdict === "refused" ? `${count}. ${labels.refused}` : count;
}
