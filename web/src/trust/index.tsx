import { useEffect, useMemo, useState } from "preact/hooks";
import { type Answer, api, type Finding } from "../api";
import type { Step } from "../ask/run";
import { copyText } from "../clipboard";
import { navigate } from "../routes";
import { strings } from "../strings";
import { JoinGraphView } from "./join-graph-view";
import { RepairDiff, RuleLink } from "./repair-diff";
import { findingRange, locateFinding } from "./offsets";
import { FindingText, type FindingMark, SqlView } from "./sql-view";
import { Timeline } from "./timeline";
import { InlineCode } from "./inline-code";

const labels = strings.trust;

interface Props {
  answer: Answer;
  steps: readonly Step[];
  database: string;
  dialect: string;
}

/** Evidence for an answer: query, findings, repairs, join graph and attempts. */
export function Trust({ answer, steps, database, dialect }: Props) {
  const sql = answer.sql ?? "";
  const review = useReview(sql, answer, database, steps);
  // The fallback query is not one of the attempts.
  const last = answer.fallback ? undefined : answer.attempts[answer.attempts.length - 1];
  if (!sql) return null;
  return (
    <div class="trust stack">
      <section class="stack" aria-label={labels.queryFor(answer.question)}>
        <div class="row">
          <h3>{labels.query}</h3>
          <QueryActions sql={sql} question={answer.question} database={database} />
        </div>
        <SqlView sql={sql} dialect={dialect} marks={review.marks} />
        {answer.status === "answered" || review.findings.length > 0 ? (
          <FindingItems findings={review.findings} />
        ) : (
          // No findings: show the error of the database.
          last?.error && (
            <p class="small breaks">
              <InlineCode text={labels.refusedFor(last.error)} />
            </p>
          )
        )}
      </section>
      {last?.mended && (
        <section class="stack repair-section">
          <h3>{labels.repairs}</h3>
          <RepairDiff before={last.sql} after={last.mended} fixes={last.fixes ?? []} dialect={dialect} />
        </section>
      )}
      {review.tables.length > 0 && (
        <section class="stack">
          <h3>{labels.tables}</h3>
          <JoinGraphView names={review.tables} database={database} />
        </section>
      )}
      {answer.attempts.length > 0 && (
        <details class="fold">
          <summary>
            {labels.timeline} ({answer.attempts.length})
          </summary>
          <Timeline answer={answer} steps={steps} dialect={dialect} />
        </details>
      )}
    </div>
  );
}

function QueryActions({ sql, question, database }: { sql: string; question: string; database: string }) {
  const [copied, setCopied] = useState(false);
  return (
    <>
      <button type="button" class="plain small" onClick={async () => setCopied(await copyText(sql))}>
        {copied ? labels.copied : labels.copy}
      </button>
      <button type="button" class="plain small" onClick={() => navigate("sql", { sql, question, database })}>
        {labels.edit}
      </button>
    </>
  );
}

export function FindingItems({ findings }: { findings: readonly Finding[] }) {
  if (findings.length === 0) return <p class="small quiet">{labels.noFindings}</p>;
  return (
    <ul class="findings small" aria-label={labels.findings}>
      {findings.map((finding, i) => (
        <li key={i}>
          <div>
            <FindingText finding={finding} />
          </div>
          <RuleLink code={finding.code} />
        </li>
      ))}
    </ul>
  );
}

interface Review {
  findings: Finding[];
  marks: FindingMark[];
  tables: string[];
}

/**
 * Checks the executed query again to get exact spans. Shows the findings of the answer until then.
 */
function useReview(sql: string, answer: Answer, database: string, steps: readonly Step[]): Review {
  const initial = useMemo((): Review => {
    const marks = answer.warnings.flatMap((finding): FindingMark[] => {
      const range = locateFinding(finding, sql);
      return range ? [{ finding, range }] : [];
    });
    const extracted = steps.findLast((step) => step.references)?.references;
    return { findings: answer.warnings, marks, tables: extracted?.tables ?? [] };
  }, [answer]);
  const [review, setReview] = useState(initial);
  useEffect(() => {
    setReview(initial);
    if (!sql) return;
    const controller = new AbortController();
    api.check({ sql, database, question: answer.question }, controller.signal).then(
      ({ findings, extracted }) => {
        const marks = findings.map((finding) => ({ finding, range: findingRange(finding, sql) }));
        setReview({ findings, marks, tables: extracted.tables });
      },
      () => undefined,
    );
    return () => controller.abort();
  }, [initial]);
  return review;
}
