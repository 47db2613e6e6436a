import type { Answer } from "../api";
import { Popup } from "../popup";
import { strings } from "../strings";
import { InlineCode } from "./inline-code";

const labels = strings.trust;
const tones = { high: "good", medium: "warn", low: "bad" } as const;
/** Each level also has its own shape, because color alone is not accessible. */
const shapes = { high: "●", medium: "◐", low: "○" } as const;

/** Confidence badge; opens a list of reasons and checks. */
export function Confidence({ answer }: { answer: Answer }) {
  const level = answer.confidence;
  const { metadata, warnings } = answer;
  const checks = [
    labels.checked.reviews(metadata.reviews),
    labels.checked.findings(warnings.length),
    labels.checked.corrections(metadata.correction_attempts),
    labels.checked.executions(metadata.tool_executions),
    labels.checked.models(metadata.llm_calls),
    ...(answer.remembered ? [labels.checked.remembered] : []),
    ...(answer.fallback ? [labels.checked.fallback] : []),
  ];
  const button = (
    <>
      <span aria-hidden="true">{shapes[level]}</span> {labels.confidence[level]}
    </>
  );
  return (
    <Popup className="confidence" buttonClass={`tag ${tones[level]}`} button={button}>
      {() => (
        <div class="card stack small">
          <p>{labels.confidenceMeaning[level]}</p>
          {answer.reasons.length > 0 && (
            <>
              <h3>{labels.reasons}</h3>
              <ul class="dots">
                {answer.reasons.map((reason) => (
                  <li key={reason} class="breaks">
                    <InlineCode text={reason} />
                  </li>
                ))}
              </ul>
            </>
          )}
          <h3>{labels.checks}</h3>
          <ul class="dots">
            {checks.map((check) => (
              <li key={check}>{check}</li>
            ))}
          </ul>
        </div>
      )}
    </Popup>
  );
}
