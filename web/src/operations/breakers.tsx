import { useState } from "preact/hooks";
import { wordsOf } from "../loaded";
import { strings } from "../strings";
import { operating, type Breaker } from "./requests";

const words = strings.operations;
const tones: Record<Breaker["state"], string> = { closed: "good", open: "bad", half_open: "warn" };

/** Databases and models that are left alone for a while after they failed too often, and the way to ask them again at once. */
export function Breakers({ breakers, again }: { breakers: Breaker[]; again: () => void }) {
  const [trouble, setTrouble] = useState("");

  async function reset(tool: string): Promise<void> {
    try {
      await operating.reset(tool);
      setTrouble("");
    } catch (error) {
      setTrouble(wordsOf(error));
    }
    again();
  }

  return (
    <section class="stack" aria-labelledby="operations-breakers">
      <h2 id="operations-breakers">{words.breakers}</h2>
      {trouble && (
        <p class="notice bad" role="alert">
          {trouble}
        </p>
      )}
      <div class="operations-scroll" tabIndex={0} role="group" aria-labelledby="operations-breakers">
        <table class="operations-table">
          <thead>
            <tr>
              <th scope="col">{words.tool}</th>
              <th scope="col">{words.state}</th>
              <th scope="col" class="number">
                {words.went}
              </th>
              <th scope="col" class="number">
                {words.failures}
              </th>
              <th scope="col" class="number">
                {words.turnedAway}
              </th>
              <th scope="col" class="number">
                {words.opened}
              </th>
              <th scope="col">
                <span class="unseen">{words.actions}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {breakers.map((breaker) => (
              <tr key={breaker.tool}>
                <th scope="row">{breaker.tool}</th>
                <td>
                  <span class={`tag ${tones[breaker.state]}`}>{words.states[breaker.state]}</span>
                  {breaker.retry_after_ms > 0 && <span class="small quiet"> {words.again(Math.ceil(breaker.retry_after_ms / 1000))}</span>}
                </td>
                <td class="number">{breaker.successes}</td>
                <td class="number">{breaker.failures}</td>
                <td class="number">{breaker.rejected}</td>
                <td class="number">{breaker.opens}</td>
                <td>
                  <button
                    type="button"
                    disabled={breaker.state === "closed"}
                    aria-label={`${words.reset}: ${breaker.tool}`}
                    onClick={() => void reset(breaker.tool)}
                  >
                    {words.reset}
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
