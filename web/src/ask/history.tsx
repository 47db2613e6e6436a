import { useEffect, useState } from "preact/hooks";
import type { Session } from "../api";
import { strings } from "../strings";
import { deleteConversation, history, loadHistory, openConversation, sessionId, startNewConversation, turns } from "./conversation";

const labels = strings.ask;

/** Past conversations, with full-text search over their questions and queries. */
export function History({ onChoose }: { onChoose?: () => void }) {
  const [search, setSearch] = useState("");
  useEffect(() => void loadHistory(), []);
  const terms = search.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = history.value.filter((one) => {
    const text = one.turns.map((turn) => `${turn.question} ${turn.sql ?? ""}`).join(" ").toLowerCase();
    return terms.every((term) => text.includes(term));
  });
  return (
    <div class="history stack">
      <button
        type="button"
        disabled={turns.value.length === 0}
        onClick={() => {
          startNewConversation();
          onChoose?.();
          document.getElementById("question")?.focus();
        }}
      >
        {labels.newConversation}
      </button>
      <input
        type="search"
        aria-label={labels.searchHistory}
        placeholder={labels.searchHistory}
        value={search}
        onInput={(event) => setSearch(event.currentTarget.value)}
      />
      {matches.length === 0 ? (
        <p class="quiet small">{terms.length > 0 ? labels.nothingFound : labels.noHistory}</p>
      ) : (
        <ul>
          {matches.map((one) => (
            <HistoryEntry key={one.session_id} conversation={one} chosen={onChoose} />
          ))}
        </ul>
      )}
    </div>
  );
}

const dateFormat = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

function HistoryEntry({ conversation, chosen }: { conversation: Session; chosen: (() => void) | undefined }) {
  const first = conversation.turns[0]?.question ?? "";
  const more = conversation.asked - 1;
  const isOpen = sessionId.value === conversation.session_id;
  return (
    <li class={isOpen ? "history-entry history-here" : "history-entry"}>
      <button
        type="button"
        class="history-open"
        aria-current={isOpen ? "true" : undefined}
        onClick={() => {
          if (!isOpen) openConversation(conversation);
          chosen?.();
        }}
      >
        <span class="history-question">{first}</span>
        <span class="quiet small">
          {dateFormat.format(conversation.at * 1000)} · {conversation.database}
          {more > 0 && ` · ${labels.more(more)}`}
        </span>
      </button>
      <button type="button" class="plain small" aria-label={labels.removeThis(first)} title={labels.remove} onClick={() => void deleteConversation(conversation)}>
        ×
      </button>
    </li>
  );
}
