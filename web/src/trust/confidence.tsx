import type { Answer } from "../api";
import { Popup } from "../popup";
import { strings } from "../strings";
import { Words } from "./words";

const words = strings.trust;
const tones = { high: "good", medium: "warn", low: "bad" } as const;
/** Colour never carries the meaning alone: each level has its own shape too. */
const shapes = { high: "●", medium: "◐", low: "○" } as const;

/** How sure the answer is. It opens to what that was concluded from. */
export function Confidence({ answer }: { answer: Answer }) {
  const level = answer.confidence;
  const { metadata, warnings } = answer;
  const checks = [
    words.checked.reviews(metadata.reviews),
    words.checked.findings(warnings.length),
    words.checked.corrections(metadata.correction_attempts),
    words.checked.executions(metadata.tool_executions),
    words.checked.models(metadata.llm_calls),
    ...(answer.remembered ? [words.checked.remembered] : []),
    ...(answer.fallback ? [words.checked.fallback] : []),
  ];
  const button = (
    <>
      <span aria-hidden="true">{shapes[level]}</span> {words.confidence[level]}
    </>
  );
  return (
    <Popup look="confidence" buttonLook={`tag ${tones[level]}`} button={button}>
      {() => (
        <div class="card stack small">
          <p>{words.confidenceMeans[level]}</p>
          {answer.reasons.length > 0 && (
            <>
              <h3>{words.reasons}</h3>
              <ul class="dots">
                {answer.reasons.map((reason) => (
                  <li key={reason} class="breaks">
                    <Words text={reason} />
                  </li>
                ))}
              </ul>
            </>
          )}
          <h3>{words.checks}</h3>
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
