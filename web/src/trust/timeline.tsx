import type { Answer, Attempt } from "../api";
import type { Step } from "../ask/run";
import { duration } from "../duration";
import { figure } from "../result/text";
import { strings } from "../strings";
import { Difference, Fixes, RuleLink } from "./mended";
import { placeIn } from "./place";
import { type Marked, SqlView } from "./sql-view";
import { Words } from "./words";

const words = strings.trust;

/** Every draft and what became of it. */
export function Timeline({ answer, steps, dialect }: { answer: Answer; steps: readonly Step[]; dialect: string }) {
  return (
    <ol class="timeline">
      {answer.attempts.map((attempt) => (
        <Entry key={attempt.number} attempt={attempt} steps={steps.filter((step) => step.attempt === attempt.number)} dialect={dialect} />
      ))}
    </ol>
  );
}

function originOf({ strategy }: Attempt): string {
  if (!strategy) return words.firstDraft;
  return strategy === "choice" ? words.chosen : words.strategy(strategy);
}

function Entry({ attempt, steps, dialect }: { attempt: Attempt; steps: readonly Step[]; dialect: string }) {
  const draft = steps.find((step) => step.kind === "draft");
  const ran = steps.findLast((step) => step.kind === "run");
  const worked = ran?.rows !== undefined;
  // Of past questions it is not known when each step was.
  const took = steps.length > 0 ? Math.max(...steps.map((step) => step.ended ?? step.begun)) - Math.min(...steps.map((step) => step.begun)) : null;
  const findings = steps.find((step) => step.kind === "check")?.findings ?? [];
  const marks = findings.flatMap((finding): Marked[] => {
    const piece = placeIn(finding, attempt.sql, draft?.text);
    return piece ? [{ finding, piece }] : [];
  });
  return (
    <li class={worked ? "timeline-good" : attempt.error ? "timeline-bad" : ""}>
      <p class="row">
        <strong>{words.attempt(attempt.number)}</strong>
        <span class="quiet small">{originOf(attempt)}</span>
        {took ? <span class="quiet small">{words.wrote(duration(took))}</span> : null}
      </p>
      {attempt.mended ? (
        <Difference before={attempt.sql} after={attempt.mended} dialect={dialect} />
      ) : (
        <SqlView sql={attempt.sql} dialect={dialect} marks={marks} />
      )}
      <Fixes fixes={attempt.fixes ?? []} />
      {attempt.error && (
        <p class="notice bad small breaks">
          <Words text={attempt.error} /> {attempt.finding && <RuleLink code={attempt.finding} />}
        </p>
      )}
      <p class="small quiet">
        {attempt.held_back
          ? words.heldBack
          : worked
            ? words.ran(figure(ran?.rows ?? 0), duration(ran?.ms ?? 0))
            : ran?.error
              ? words.refused
              : ""}
      </p>
    </li>
  );
}
