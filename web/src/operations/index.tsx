import { useEffect, useState } from "preact/hooks";
import { useLoaded } from "../loaded";
import { administers } from "../session";
import { strings } from "../strings";
import { Breakers } from "./breakers";
import { drafts, outcomes, spending } from "./figures";
import "./operations.css";
import { parted, type Sample } from "./prometheus";
import { operating, type Past } from "./requests";
import { Traces } from "./traces";

const words = strings.operations;
const refreshMs = 15_000;
const mostPast = 200;

/** How the server is doing. Only for those who administer it: the server would refuse everyone else. */
export function Operations() {
  return administers.value ? <Figures /> : <p class="notice">{words.onlyAdministrators}</p>;
}

function Figures() {
  const breakers = useLoaded(operating.breakers, []);
  const figures = useLoaded(operating.figures, []);
  const past = useLoaded(() => operating.past(mostPast), []);
  const [following, setFollowing] = useState(false);
  const refresh = () => [breakers, figures, past].forEach((one) => one.again());
  useEffect(() => {
    if (!following) return;
    const timer = setInterval(refresh, refreshMs);
    return () => clearInterval(timer);
  }, [following]);

  const trouble = breakers.trouble || figures.trouble;
  return (
    <div class="operations stack">
      <header class="row">
        <h1>{words.title}</h1>
        <span class="row operations-tools">
          <label class="row">
            <input type="checkbox" checked={following} onChange={(event) => setFollowing(event.currentTarget.checked)} />
            {words.follow(refreshMs / 1000)}
          </label>
          <button type="button" onClick={refresh}>
            {words.refresh}
          </button>
        </span>
      </header>
      {trouble && (
        <p class="notice bad" role="alert">
          {trouble}
        </p>
      )}
      {figures.value && <Outcomes samples={figures.value} past={past.value ?? []} />}
      {breakers.value && <Breakers breakers={breakers.value} again={breakers.again} />}
      {figures.value && <Parts title={words.errors} none={words.noErrors} parts={parted(figures.value, "querymend_errors_total", "error_type")} />}
      {figures.value && <Spending samples={figures.value} />}
      <Traces past={past.value ?? []} trouble={past.trouble} loading={past.loading} />
    </div>
  );
}

function Outcomes({ samples, past }: { samples: Sample[]; past: Past[] }) {
  const all = outcomes(samples);
  const recent = drafts(past);
  const share = (part: number, whole: number) => (whole > 0 ? words.share(part / whole) : "");
  const counted = recent.first + recent.corrected + recent.failed;
  return (
    <section class="stack" aria-labelledby="operations-questions">
      <h2 id="operations-questions">{words.questions}</h2>
      <dl class="operations-figures">
        <Figure name={words.asked} value={all.asked} />
        <Figure name={words.answered} value={all.answered} note={share(all.answered, all.asked)} />
        <Figure name={words.failed} value={all.failed} note={share(all.failed, all.asked)} />
        <Figure name={words.fromMemory} value={all.fromMemory} />
        <Figure name={words.corrections} value={all.corrections} note={words.ranAfterwards(all.successful)} />
        <Figure name={words.median} value={seconds(all.median)} note={words.slowest(seconds(all.slowest))} />
      </dl>
      {counted > 0 && (
        <>
          <h3>{words.recent(counted)}</h3>
          <dl class="operations-figures">
            <Figure name={words.firstDraft} value={recent.first} note={share(recent.first, counted)} />
            <Figure name={words.askedAgain} value={recent.corrected} note={share(recent.corrected, counted)} />
            <Figure name={words.notAnswered} value={recent.failed} note={share(recent.failed, counted)} />
          </dl>
        </>
      )}
    </section>
  );
}

function Figure({ name, value, note }: { name: string; value: number | string; note?: string }) {
  return (
    <div class="card">
      <dt class="small quiet">{name}</dt>
      <dd class="operations-figure">{typeof value === "number" ? value.toLocaleString("en") : value}</dd>
      {note && <dd class="small quiet">{note}</dd>}
    </div>
  );
}

function Parts({ title, none, parts }: { title: string; none: string; parts: [string, number][] }) {
  const most = Math.max(1, ...parts.map(([, count]) => count));
  return (
    <section class="stack" aria-label={title}>
      <h2>{title}</h2>
      {parts.length === 0 && <p class="quiet">{none}</p>}
      {parts.length > 0 && (
        <table class="operations-table operations-parts">
          <tbody>
            {parts.map(([name, count]) => (
              <tr key={name}>
                <th scope="row">
                  <code>{name}</code>
                </th>
                <td class="number">{count.toLocaleString("en")}</td>
                <td aria-hidden="true">
                  <span class="operations-bar" style={{ width: `${(100 * count) / most}%` }} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Spending({ samples }: { samples: Sample[] }) {
  const models = spending(samples);
  return (
    <section class="stack" aria-label={words.cost}>
      <h2>{words.cost}</h2>
      {models.length === 0 && <p class="quiet">{words.noCost}</p>}
      {models.length > 0 && (
        <div class="operations-scroll" tabIndex={0} role="group" aria-label={words.cost}>
          <table class="operations-table">
            <thead>
              <tr>
                <th scope="col">{words.model}</th>
                <th scope="col" class="number">
                  {words.tokensRead}
                </th>
                <th scope="col" class="number">
                  {words.tokensWritten}
                </th>
                <th scope="col" class="number">
                  {words.usd}
                </th>
              </tr>
            </thead>
            <tbody>
              {models.map((one) => (
                <tr key={one.model}>
                  <th scope="row">{one.model}</th>
                  <td class="number">{one.input.toLocaleString("en")}</td>
                  <td class="number">{one.output.toLocaleString("en")}</td>
                  <td class="number">{one.usd === null ? words.unknownPrice : one.usd.toFixed(4)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

function seconds(value: number | null): string {
  if (value === null) return "–";
  if (value === Infinity) return words.veryLong;
  return value < 1 ? `${value * 1000} ms` : `${value} s`;
}
