import { useMemo, useState } from "preact/hooks";
import { api, type Example } from "../api";
import { useLoaded, wordsOf } from "../loaded";
import { go } from "../routes";
import { database } from "../session";
import { strings } from "../strings";
import { queue, search, type Standing } from "./examples";
import { ExampleForm } from "./form";
import { teaching } from "./requests";
import "./teach.css";

const words = strings.teach;
/** Those that were not looked at are not among them: they have a place of their own. */
const standings: Standing[] = ["verified", "stale", "rejected"];
const tones: Record<Standing, string> = { verified: "good", unverified: "warn", stale: "", rejected: "bad" };

/** What was learnt from answers: questions with their queries, those first that wait for somebody to look at them. */
export function Teach() {
  const { value, trouble, loading, again } = useLoaded(() => api.examples(database.value), [database.value]);
  const [typed, setTyped] = useState("");
  const [standing, setStanding] = useState<Standing | "">("");
  const [adding, setAdding] = useState(false);
  const [failed, setFailed] = useState("");
  const examples = value ?? [];
  const waiting = useMemo(() => queue(examples), [examples]);
  const found = useMemo(() => search(examples, typed, standing), [examples, typed, standing]);

  const change: Change = async (what) => {
    setFailed("");
    try {
      await what();
    } catch (error) {
      setFailed(wordsOf(error));
    }
    again();
  };

  return (
    <div class="teach stack">
      <header class="row">
        <h1>{words.title}</h1>
        <button type="button" class="teach-add" aria-expanded={adding} onClick={() => setAdding(!adding)}>
          {words.add}
        </button>
      </header>
      <p class="quiet">{words.about}</p>
      {adding && (
        <ExampleForm
          title={words.add}
          question=""
          sql=""
          save={async (question, sql, shared) => {
            await teaching.add(question, sql, database.value, shared);
            again();
          }}
          close={() => setAdding(false)}
        />
      )}
      {(trouble || failed) && (
        <p class="notice bad" role="alert">
          {failed || trouble}
        </p>
      )}
      {waiting.length > 0 && (
        <section class="stack" aria-labelledby="teach-queue">
          <h2 id="teach-queue">{words.queue(waiting.length)}</h2>
          <ul class="stack">
            {waiting.map((example) => (
              <ExampleView key={example.id} example={example} change={change} again={again} review />
            ))}
          </ul>
        </section>
      )}
      <section class="stack" aria-labelledby="teach-all">
        <h2 id="teach-all">{words.all}</h2>
        <div class="row">
          <label class="row">
            <span class="small">{words.search}</span>
            <input type="search" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
          </label>
          <label class="row">
            <span class="small">{words.standing}</span>
            <select value={standing} onChange={(event) => setStanding(event.currentTarget.value as Standing | "")}>
              <option value="">{words.any}</option>
              {standings.map((one) => (
                <option key={one} value={one}>
                  {words.standings[one]}
                </option>
              ))}
            </select>
          </label>
        </div>
        <p class="small quiet" role="status">
          {value ? words.count(found.length) : loading ? strings.app.loading : ""}
        </p>
        <ul class="stack">
          {found.map((example) => (
            <ExampleView key={example.id} example={example} change={change} again={again} />
          ))}
        </ul>
      </section>
    </div>
  );
}

type Change = (what: () => Promise<unknown>) => Promise<void>;

interface Props {
  example: Example;
  change: Change;
  again: () => void;
  review?: boolean;
}

function ExampleView({ example, change, again, review = false }: Props) {
  const [editing, setEditing] = useState(false);
  const { id } = example;
  // An example says its database by address; the server wants the name that users know.
  const name = database.value;
  const about = (verb: string) => `${verb}: ${example.question}`;

  if (editing) {
    return (
      <li>
        <ExampleForm
          title={words.edit}
          question={example.question}
          sql={example.sql}
          save={async (question, sql, shared) => {
            const saved = await teaching.add(question, sql, name, shared);
            // An example is known by its question: with another question it is another one, and the old one goes.
            if (saved.id !== id) await teaching.remove(id, name);
            again();
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
        <span class={`tag ${tones[example.standing]}`}>{words.standings[example.standing]}</span>
        <span class="tag">{words.provenances[example.provenance]}</span>
      </div>
      <pre class="example-sql">{example.sql}</pre>
      <div class="row">
        {(review || example.standing !== "verified") && (
          <button type="button" aria-label={about(words.approve)} onClick={() => void change(() => teaching.review(id, true, name))}>
            {words.approve}
          </button>
        )}
        {(review || example.standing === "verified") && (
          <button type="button" aria-label={about(words.reject)} onClick={() => void change(() => teaching.review(id, false, name))}>
            {words.reject}
          </button>
        )}
        <button type="button" class="plain" aria-label={about(words.edit)} onClick={() => setEditing(true)}>
          {words.edit}
        </button>
        <button type="button" class="plain" aria-label={about(words.tryIt)} onClick={() => go("sql", { sql: example.sql, database: name })}>
          {words.tryIt}
        </button>
        <button type="button" class="plain" aria-label={about(words.remove)} onClick={() => void change(() => teaching.remove(id, name))}>
          {words.remove}
        </button>
        <span class="small quiet example-use">{words.use(example.uses, example.helped, example.hurt, when(example.added))}</span>
      </div>
    </li>
  );
}

function when(seconds: number): string {
  return seconds > 0 ? new Date(seconds * 1000).toLocaleDateString("en", { dateStyle: "medium" }) : "";
}
