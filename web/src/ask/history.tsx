import { useEffect, useState } from "preact/hooks";
import type { Conversation } from "../api";
import { strings } from "../strings";
import { forget, history, loadHistory, openConversation, sessionId, startOver, turns } from "./conversation";

const words = strings.ask;

/** Conversations of before, with a search over everything that was asked in them. */
export function History({ chosen }: { chosen?: () => void }) {
  const [search, setSearch] = useState("");
  useEffect(() => void loadHistory(), []);
  const wanted = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found = history.value.filter((one) => {
    const text = one.turns.map((turn) => `${turn.question} ${turn.sql ?? ""}`).join(" ").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
  return (
    <div class="history stack">
      <button
        type="button"
        disabled={turns.value.length === 0}
        onClick={() => {
          startOver();
          chosen?.();
          document.getElementById("question")?.focus();
        }}
      >
        {words.newConversation}
      </button>
      <input
        type="search"
        aria-label={words.searchHistory}
        placeholder={words.searchHistory}
        value={search}
        onInput={(event) => setSearch(event.currentTarget.value)}
      />
      {found.length === 0 ? (
        <p class="quiet small">{wanted.length > 0 ? words.nothingFound : words.noHistory}</p>
      ) : (
        <ul>
          {found.map((one) => (
            <Entry key={one.session_id} conversation={one} chosen={chosen} />
          ))}
        </ul>
      )}
    </div>
  );
}

const day = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

function Entry({ conversation, chosen }: { conversation: Conversation; chosen: (() => void) | undefined }) {
  const first = conversation.turns[0]?.question ?? "";
  const more = conversation.asked - 1;
  const here = sessionId.value === conversation.session_id;
  return (
    <li class={here ? "history-entry history-here" : "history-entry"}>
      <button
        type="button"
        class="history-open"
        aria-current={here ? "true" : undefined}
        onClick={() => {
          if (!here) openConversation(conversation);
          chosen?.();
        }}
      >
        <span class="history-question">{first}</span>
        <span class="quiet small">
          {day.format(conversation.at * 1000)} · {conversation.database}
          {more > 0 && ` · ${words.more(more)}`}
        </span>
      </button>
      <button type="button" class="plain small" aria-label={words.forgetThis(first)} title={words.forget} onClick={() => void forget(conversation)}>
        ×
      </button>
    </li>
  );
}
