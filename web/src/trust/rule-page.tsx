import { useEffect, useRef, useState } from "preact/hooks";
import { api, type Rule, type ProblemDetails } from "../api";
import { strings } from "../strings";
import { toProblem, ErrorBox } from "../error-box";
import { MarkdownView } from "./markdown-view";
import { closeRule, openRuleCode } from "./open-rule";

/** Rule pages do not change while the server runs. */
const cache = new Map<string, Rule>();

export function RulePage() {
  const code = openRuleCode.value;
  const heading = useRef<HTMLHeadingElement>(null);
  const [rule, setRule] = useState<Rule | null>(null);
  const [problem, setProblem] = useState<ProblemDetails | null>(null);
  useEffect(() => {
    if (!code) return;
    let active = true;
    setProblem(null);
    setRule(cache.get(code) ?? null);
    heading.current?.focus();
    if (cache.has(code)) return;
    api.rule(code).then(
      (loaded) => {
        cache.set(code, loaded);
        if (active) setRule(loaded);
      },
      (error: unknown) => active && setProblem(toProblem(error)),
    );
    return () => {
      active = false;
    };
  }, [code]);
  if (!code) return null;
  return (
    <aside
      class="rule-page"
      aria-label={strings.trust.rule(code)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.stopPropagation();
        closeRule();
      }}
    >
      <div class="row rule-head">
        <h2 ref={heading} tabIndex={-1} class="breaks mono">
          {code}
        </h2>
        <button type="button" onClick={closeRule}>
          {strings.trust.close}
        </button>
      </div>
      {rule && <p class="tag">{rule.group}</p>}
      {problem && <ErrorBox problem={problem} />}
      {!rule && !problem && <p class="quiet">{strings.app.loading}</p>}
      {rule && <MarkdownView text={withoutTitle(rule.page ?? rule.title)} />}
    </aside>
  );
}

/** Strips the title, which the heading already shows. */
function withoutTitle(page: string): string {
  return page.replace(/^\s*# .*\n/, "");
}
