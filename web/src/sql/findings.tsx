import type { Fix, Placed } from "../api";
import { strings } from "../strings";
import { RuleLink } from "../trust/mended";
import { FindingText } from "../trust/sql-view";
import { Words } from "../trust/words";
import type { Live } from "./check";

const words = strings.sql;

interface Props {
  live: Live;
  apply: (fix: Fix) => void;
  goTo: (finding: Placed) => void;
}

/** What is wrong with the query, with a button for each way to mend it. */
export function FindingList({ live, apply, goTo }: Props) {
  const findings = live.checked?.findings ?? [];
  return (
    <section class="stack">
      <p id="sql-state" role="status" class="small quiet">
        {state(live)}
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
                        <Words text={words.apply(fix.why)} />
                      </span>
                    </button>
                  ))}
                </div>
              )}
            </div>
            <button
              type="button"
              class="plain small finding-place"
              aria-label={words.goThere(finding.line, finding.column)}
              onClick={() => goTo(finding)}
            >
              {words.place(finding.line, finding.column)}
            </button>
            <RuleLink code={finding.code} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function state({ checked, told, busy }: Live): string {
  if (busy) return words.checking;
  if (told) return words.notChecked;
  if (!checked) return "";
  if (checked.findings.length === 0) return words.clean;
  const count = words.findings(checked.findings.length);
  return checked.verdict === "refused" ? `${count}. ${words.refused}` : count;
}
