import { useEffect, useRef, useState } from "preact/hooks";
import { api, type Rule, type Told } from "../api";
import { strings } from "../strings";
import { toldOf, TroubleNotice } from "../trouble";
import { MarkdownView } from "./markdown-view";
import { closeRule, ruleShown } from "./open-rule";

/** Pages do not change while the server runs. */
const known = new Map<string, Rule>();

export function RulePage() {
  const code = ruleShown.value;
  const heading = useRef<HTMLHeadingElement>(null);
  const [rule, setRule] = useState<Rule | null>(null);
  const [told, setTold] = useState<Told | null>(null);
  useEffect(() => {
    if (!code) return;
    let here = true;
    setTold(null);
    setRule(known.get(code) ?? null);
    heading.current?.focus();
    if (known.has(code)) return;
    api.rule(code).then(
      (found) => {
        known.set(code, found);
        if (here) setRule(found);
      },
      (error: unknown) => here && setTold(toldOf(error)),
    );
    return () => {
      here = false;
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
      {told && <TroubleNotice told={told} />}
      {!rule && !told && <p class="quiet">{strings.app.loading}</p>}
      {rule && <MarkdownView text={withoutTitle(rule.page ?? rule.title)} />}
    </aside>
  );
}

/** The page repeats its own name at the top. */
function withoutTitle(page: string): string {
  return page.replace(/^\s*# .*\n/, "");
}
