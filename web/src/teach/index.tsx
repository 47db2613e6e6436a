import { useMemo, useState } from "preact/hooks";
import { api, type Example } from "../api";
import { useResource, errorMessage } from "../resource";
import { navigate } from "../routes";
import { database } from "../session";
import { strings } from "../strings";
import { reviewQueue, search, type VerificationStatus } from "./examples";
import { ExampleForm } from "./form";
import { feedbackApi } from "./requests";
import "./teach.css";

const labels = strings.teach;
/** Statuses to filter by. Unreviewed examples have their own section. */
const statuses: VerificationStatus[] = ["verified", "stale", "rejected"];
const tones: Record<VerificationStatus, string> = { verified: "good", unverified: "warn", stale: "", rejected: "bad" };

/** Example manager, with the review queue first. */
export function Teach() {
  const { value, error, loading, reload } = useResource(() => api.examples(database.value), [database.value]);
  const [typed, setTyped] = useState("");
  const [status, setStatus] = useState<VerificationStatus | "">("");
  const [adding, setAdding] = useState(false);
  const [actionError, setActionError] = useState("");
  const examples = value ?? [];
  const waiting = useMemo(() => reviewQueue(examples), [examples]);
  const matches = useMemo(() => search(examples, typed, status), [examples, typed, status]);

  const perform: PerformAction = async (action) => {
    setActionError("");
    try {
      await action();
    } catch (error) {
      setActionError(errorMessage(error));
    }
    reload();
  };

  return (
    <div class="teach stack">
      <header class="row">
        <h1>{labels.title}</h1>
        <button type="button" class="teach-add" aria-expanded={adding} onClick={() => setAdding(!adding)}>
          {labels.add}
        </button>
      </header>
      <p class="quiet">{labels.about}</p>
      {adding && (
        <ExampleForm
          title={labels.add}
          question=""
          sql=""
          save={async (question, sql, shared) => {
            await feedbackApi.add(question, sql, database.value, shared);
            reload();
          }}
          close={() => setAdding(false)}
        />
      )}
      {(error || actionError) && (
        <p class="notice bad" role="alert">
          {actionError || error}
        </p>
      )}
      {waiting.length > 0 && (
        <section class="stack" aria-labelledby="teach-queue">
          <h2 id="teach-queue">{labels.queue(waiting.length)}</h2>
          <ul class="stack">
            {waiting.map((example) => (
              <ExampleView key={example.id} example={example} perform={perform} reload={reload} review />
            ))}
          </ul>
        </section>
      )}
      <section class="stack" aria-labelledby="teach-all">
        <h2 id="teach-all">{labels.all}</h2>
        <div class="row">
          <label class="row">
            <span class="small">{labels.search}</span>
            <input type="search" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
          </label>
          <label class="row">
            <span class="small">{labels.status}</span>
            <select value={status} onChange={(event) => setStatus(event.currentTarget.value as VerificationStatus | "")}>
              <option value="">{labels.any}</option>
              {statuses.map((one) => (
                <option key={one} value={one}>
                  {labels.statuses[one]}
                </option>
              ))}
            </select>
          </label>
        </div>
        <p class="small quiet" role="status">
          {value ? labels.count(matches.length) : loading ? strings.app.loading : ""}
        </p>
        <ul class="stack">
          {matches.map((example) => (
            <ExampleView key={example.id} example={example} perform={perform} reload={reload} />
          ))}
        </ul>
      </section>
    </div>
  );
}

type PerformAction = (what: () => Promise<unknown>) => Promise<void>;

interface Props {
  example: Example;
  perform: PerformAction;
  reload: () => void;
  review?: boolean;
}

function ExampleView({ example, perform, reload, review = false }: Props) {
  const [editing, setEditing] = useState(false);
  const { id } = example;
  // Examples refer to their database by URL; the API expects its configured name.
  const name = database.value;
  const labelFor = (verb: string) => `${verb}: ${example.question}`;

  if (editing) {
    return (
      <li>
        <ExampleForm
          title={labels.edit}
          question={example.question}
          sql={example.sql}
          save={async (question, sql, shared) => {
            const saved = await feedbackApi.add(question, sql, name, shared);
            // The id derives from the question: after a changed question, remove the old example.
            if (saved.id !== id) await feedbackApi.remove(id, name);
            reload();
          }}
          close={() => setEditing(false)}
        />
      </li>
    );
  }
  return (
    <li class="card stack example">
      <div class="row">
        <h3>{example.question}</h3>
        <span class={`tag ${tones[example.standing]}`}>{labels.statuses[example.standing]}</span>
        <span class="tag">{labels.provenances[example.provenance]}</span>
      </div>
      <pre class="example-sql">{example.sql}</pre>
      <div class="row">
        {(review || example.standing !== "verified") && (
          <button type="button" aria-label={labelFor(labels.approve)} onClick={() => void perform(() => feedbackApi.rateExample(id, true, name))}>
            {labels.approve}
          </button>
        )}
        {(review || example.standing === "verified") && (
          <button type="button" aria-label={labelFor(labels.reject)} onClick={() => void perform(() => feedbackApi.rateExample(id, false, name))}>
            {labels.reject}
          </button>
        )}
        <button type="button" class="plain" aria-label={labelFor(labels.edit)} onClick={() => setEditing(true)}>
          {labels.edit}
        </button>
        <button type="button" class="plain" aria-label={labelFor(labels.tryIt)} onClick={() => navigate("sql", { sql: example.sql, database: name })}>
          {labels.tryIt}
        </button>
        <button type="button" class="plain" aria-label={labelFor(labels.remove)} onClick={() => void perform(() => feedbackApi.remove(id, name))}>
          {labels.remove}
        </button>
        <span class="small quiet example-use">{labels.use(example.uses, example.helped, example.hurt, addedDate(example.added))}</span>
      </div>
    </li>
  );
}

function addedDate(seconds: number): string {
  return seconds > 0 ? new Date(seconds * 1000).toLocaleDateString("en", { dateStyle: "medium" }) : "";
}
