import { useState } from "preact/hooks";
import type { Breaker } from "../api";
import { errorMessage } from "../resource";
import { strings } from "../strings";
import { operationsApi } from "./requests";

const labels = strings.operations;
const tones: Record<Breaker["state"], string> = { closed: "good", open: "bad", half_open: "warn" };

/** Circuit breakers of databases and models, with a button to reset each. */
export function Breakers({ breakers, reload }: { breakers: Breaker[]; reload: () => void }) {
  const [error, setError] = useState("");

  async function reset(tool: string): Promise<void> {
    try {
      await operationsApi.reset(tool);
      setError("");
    } catch (error) {
      setError(errorMessage(error));
    }
    reload();
  }

  return (
    <section class="stack" aria-labelledby="operations-breakers">
      <h2 id="operations-breakers">{labels.breakers}</h2>
      {error && (
        <p class="notice bad" role="alert">
          {error}
        </p>
      )}
      <div class="operations-scroll" tabIndex={0} role="group" aria-labelledby="operations-breakers">
        <table class="operations-table">
          <thead>
            <tr>
              <th scope="col">{labels.tool}</th>
              <th scope="col">{labels.state}</th>
              <th scope="col" class="number">
                {labels.successes}
              </th>
              <th scope="col" class="number">
                {labels.failures}
              </th>
              <th scope="col" class="number">
                {labels.rejected}
              </th>
              <th scope="col" class="number">
                {labels.opens}
              </th>
              <th scope="col">
                <span class="visually-hidden">{labels.actions}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {breakers.map((breaker) => (
              <tr key={breaker.tool}>
                <th scope="row">{breaker.tool}</th>
                <td>
                  <span class={`tag ${tones[breaker.state]}`}>{labels.states[breaker.state]}</span>
                  {breaker.retry_after_ms > 0 && <span class="small quiet"> {labels.retryIn(Math.ceil(breaker.retry_after_ms / 1000))}</span>}
                </td>
                <td class="number">{breaker.successes}</td>
                <td class="number">{breaker.failures}</td>
                <td class="number">{breaker.rejected}</td>
                <td class="number">{breaker.opens}</td>
                <td>
                  <button
                    type="button"
                    disabled={breaker.state === "closed"}
                    aria-label={`${labels.reset}: ${breaker.tool}`}
                    onClick={() => void reset(breaker.tool)}
                  >
                    {labels.reset}
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
