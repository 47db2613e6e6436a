import type { Answer, Attempt } from "../api";
import type { Step } from "../ask/run";
import { duration } from "../duration";
import { formatNumber } from "../result/text";
import { strings } from "../strings";
import { SqlDiff, FixList, RuleLink } from "./repair-diff";
import { locateFinding } from "./offsets";
import { type FindingMark, SqlView } from "./sql-view";
import { InlineCode } from "./inline-code";

const labels = strings.trust;

/** Attempts of an answer, in order. */
export function Timeline({ answer, steps, dialect }: { answer: Answer; steps: readonly Step[]; dialect: string }) {
  return (
    <ol class="timeline">
      {answer.attempts.map((attempt) => (
        <AttemptEntry key={attempt.number} attempt={attempt} steps={steps.filter((step) => step.attempt === attempt.number)} dialect={dialect} />
      ))}
    </ol>
  );
}

function attemptOrigin({ strategy }: Attempt): string {
  if (!strategy) return labels.firstDraft;
  return strategy === "choice" ? labels.chosen : labels.strategy(strategy);
}

function AttemptEntry({ attempt, steps, dialect }: { attempt: Attempt; steps: readonly Step[]; dialect: string }) {
  const draft = steps.find((step) => step.kind === "draft");
  const execution = steps.findLast((step) => step.kind === "run");
  const succeeded = execution?.rows !== undefined;
  // Past runs have no step times.
  const durationMs = steps.length > 0 ? Math.max(...steps.map((step) => step.endedAt ?? step.startedAt)) - Math.min(...steps.map((step) => step.startedAt)) : null;
  const findings = steps.find((step) => step.kind === "check")?.findings ?? [];
  const marks = findings.flatMap((finding): FindingMark[] => {
    const range = locateFinding(finding, attempt.sql, draft?.text);
    return range ? [{ finding, range }] : [];
  });
  return (
    <li class={succeeded ? "timeline-good" : attempt.error ? "timeline-bad" : ""}>
      <p class="row">
        <strong>{labels.attempt(attempt.number)}</strong>
        <span class="quiet small">{attemptOrigin(attempt)}</span>
        {durationMs ? <span class="quiet small">{labels.took(duration(durationMs))}</span> : null}
      </p>
      {attempt.mended ? (
        <SqlDiff before={attempt.sql} after={attempt.mended} dialect={dialect} />
      ) : (
        <SqlView sql={attempt.sql} dialect={dialect} marks={marks} />
      )}
      <FixList fixes={attempt.fixes ?? []} />
      {attempt.error && (
        <p class="notice bad small breaks">
          <InlineCode text={attempt.error} /> {attempt.finding && <RuleLink code={attempt.finding} />}
        </p>
      )}
      <p class="small quiet">
        {attempt.held_back
          ? labels.rejectedByReview
          : succeeded
            ? labels.ran(formatNumber(execution?.rows ?? 0), duration(execution?.ms ?? 0))
            : execution?.error
              ? labels.refused
              : ""}
      </p>
    </li>
  );
}
