import { useEffect, useMemo, useState } from "preact/hooks";
import { type Answer, api, type Finding } from "../api";
import type { Step } from "../ask/run";
import { copyText } from "../clipboard";
import { go } from "../routes";
import { strings } from "../strings";
import { JoinGraphView } from "./join-graph-view";
import { Mended, RuleLink } from "./mended";
import { exactly, placeIn } from "./place";
import { FindingText, type Marked, SqlView } from "./sql-view";
import { Timeline } from "./timeline";
import { Words } from "./words";

const words = strings.trust;

interface Props {
  answer: Answer;
  steps: readonly Step[];
  database: string;
  dialect: string;
}

/** Everything by which an answer can be judged: the query, what is odd about it, what was mended, every attempt. */
export function Trust({ answer, steps, database, dialect }: Props) {
  const sql = answer.sql ?? "";
  const review = useReview(sql, answer, database, steps);
  // The query of the fallback is none of the attempts.
  const last = answer.fallback ? undefined : answer.attempts[answer.attempts.length - 1];
  if (!sql) return null;
  return (
    <div class="trust stack">
      <section class="stack" aria-label={words.queryFor(answer.question)}>
        <div class="row">
          <h3>{words.query}</h3>
          <QueryActions sql={sql} question={answer.question} database={database} />
        </div>
        <SqlView sql={sql} dialect={dialect} marks={review.marks} />
        {answer.status === "answered" || review.findings.length > 0 ? (
          <Findings findings={review.findings} />
        ) : (
          // Where no rule has anything against it, the database had.
          last?.error && (
            <p class="small breaks">
              <Words text={words.refusedFor(last.error)} />
            </p>
          )
        )}
      </section>
      {last?.mended && (
        <section class="stack mended-section">
          <h3>{words.mended}</h3>
          <Mended before={last.sql} after={last.mended} fixes={last.fixes ?? []} dialect={dialect} />
        </section>
      )}
      {review.tables.length > 0 && (
        <section class="stack">
          <h3>{words.tables}</h3>
          <JoinGraphView names={review.tables} database={database} />
        </section>
      )}
      {answer.attempts.length > 0 && (
        <details class="fold">
          <summary>
            {words.timeline} ({answer.attempts.length})
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
        {copied ? words.copied : words.copy}
      </button>
      <button type="button" class="plain small" onClick={() => go("sql", { sql, question, database })}>
        {words.edit}
      </button>
    </>
  );
}

export function Findings({ findings }: { findings: readonly Finding[] }) {
  if (findings.length === 0) return <p class="small quiet">{words.noFindings}</p>;
  return (
    <ul class="findings small" aria-label={words.findings}>
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
  marks: Marked[];
  tables: string[];
}

/** The query that ran is read once more, so that its findings stand at their very places. Until then the answer's own are shown. */
function useReview(sql: string, answer: Answer, database: string, steps: readonly Step[]): Review {
  const known = useMemo((): Review => {
    const marks = answer.warnings.flatMap((finding): Marked[] => {
      const piece = placeIn(finding, sql);
      return piece ? [{ finding, piece }] : [];
    });
    const extracted = steps.findLast((step) => step.extracted)?.extracted;
    return { findings: answer.warnings, marks, tables: extracted?.tables ?? [] };
  }, [answer]);
  const [review, setReview] = useState(known);
  useEffect(() => {
    setReview(known);
    if (!sql) return;
    const stop = new AbortController();
    api.check({ sql, database, question: answer.question }, stop.signal).then(
      ({ findings, extracted }) => {
        const marks = findings.map((finding) => ({ finding, piece: exactly(finding, sql) }));
        setReview({ findings, marks, tables: extracted.tables });
      },
      () => undefined,
    );
    return () => stop.abort();
  }, [known]);
  return review;
}
