#![doc = include_str!("unknown_table.md")]

use crate::dialect::DoubleQuotes;
use crate::finding::{Applicability, Edit, Finding, Fix, Severity};
use crate::mend;
use crate::near::{drops_words, is_nearly, is_slip, likeness, nearest, words_of};
use crate::rules::names::self_join::pointed_at;
use crate::rules::names::{junction, junction_inside, meant, named_query};
use crate::rules::safety::protected_table;
use crate::rules::{Rule, Subject};
use crate::schema::{Schema, Table};
use crate::scope::{Meaning, SourceId, TableMeaning, TableUse};
use crate::similarity::{MIN_SYNONYM_SIMILARITY, name_similarity};

/// See the page.
pub static RULE: Rule = Rule { code: "unknown-table", group: "names", page: include_str!("unknown_table.md"), check };

fn check(subject: &Subject<'_>, out: &mut Vec<Finding>) {
    let Some(schema) = subject.context.schema else { return };
    for table in subject.facts.tables.iter().filter(|t| matches!(t.meaning, TableMeaning::Unknown)) {
        let name = table.name.0.last().and_then(|p| p.as_ident()).map_or("", |i| i.value.as_str());
        let candidates =
            schema.tables().iter().map(|t| t.name.as_str()).chain(subject.facts.ctes.iter().map(|c| c.value.as_str()));
        let near = nearest(name, candidates);
        // The very name exists: what stands before it does not.
        let elsewhere = near.filter(|n| *n == name && table.name.0.len() > 1).and_then(|n| schema.table(n));
        let written = match elsewhere {
            Some(table) => Some(table.full_name()),
            None => near.map(|n| subject.context.dialect.quoted(n)),
        };
        // Only the case differs, which matters where quotes keep it.
        let other_case = near.is_some_and(|n| n.eq_ignore_ascii_case(name));
        let hint = match &written {
            Some(written) if other_case => format!(" (it is written `{written}`)"),
            _ => meant(near),
        };
        let advice = match (&written, schema.tables().len()) {
            (Some(written), _) if elsewhere.is_some() => format!("There is no table {}: write {written}.", table.name),
            (Some(written), _) if other_case => {
                format!("Names in quotes keep their case and others are lower case: the table is written {written}.")
            }
            (Some(near), _) => format!("There is no table {name}; the nearest is {near}."),
            (None, 0..=30) => {
                let all: Vec<&str> = schema.tables().iter().map(|t| t.name.as_str()).collect();
                format!("There is no table {name}. Tables: {}.", all.join(", "))
            }
            (None, _) => format!("There is no table {name}; use only tables of the schema."),
        };
        let mut finding = Finding::new(
            "unknown-table",
            Severity::Error,
            subject.query.span(table.place),
            name,
            format!(
                "there is no table `{}`{hint}",
                if elsewhere.is_some() { spelled(table) } else { name.to_string() }
            ),
        )
        .suggest(written)
        .advise(advice);
        let parts: Vec<&str> = table.name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.as_str()).collect();
        if !protected_table::is_meant(subject.context, &parts) {
            finding.fixes = fixes(table, name, subject, schema);
        }
        out.push(finding);
    }
}

/// A table's name with what stands before it, without quotes.
fn spelled(table: &TableUse<'_>) -> String {
    let parts = table.name.0.iter().filter_map(|p| p.as_ident()).map(|i| i.value.as_str());
    parts.collect::<Vec<_>>().join(".")
}

/// Tables of nearly that name, then tables that have every column that is asked of it.
fn fixes(table: &TableUse<'_>, name: &str, subject: &Subject<'_>, schema: &Schema) -> Vec<Fix> {
    let facts = subject.facts;
    let source = facts.sources.iter().position(|s| s.place == table.place);
    if let Some(fix) = source.and_then(|s| nothing_to_read(s, name, subject)) {
        return vec![fix];
    }
    let known = schema.tables().iter().any(|t| likeness(name, &t.name) >= 0.85);
    if let Some(with) = named_query::nearly(name, subject).filter(|_| !known) {
        let why = format!("`{with}` of WITH is nearly called `{name}`");
        let text = subject.context.dialect.quoted(with);
        return vec![mend::replace(subject.query.span(table.place), text, Applicability::Likely, why)];
    }
    let mut between = Vec::new();
    if let Some(source) = source.filter(|_| mend::worth_mending(subject, &[])) {
        between.extend(named_by_columns(source, table, subject, schema));
        between.extend(junction::fixes(source, subject, schema));
        between.extend(junction_inside::fixes(source, subject, schema));
    }
    let called = source.and_then(|s| facts.sources[s].name).map_or(name, |n| n.value.as_str());
    let quotes_are_names = subject.context.dialect.double_quotes == DoubleQuotes::Name;
    let asked: Vec<&str> = facts
        .references
        .iter()
        .filter(|r| match r.qualifier {
            Some(q) => q.value.eq_ignore_ascii_case(called),
            None => r.meaning == Meaning::Open && source.is_some_and(|s| facts.sources[s].block == r.block),
        })
        // What stands in double quotes may be text.
        .filter(|r| !r.wildcard && (r.name.quote_style != Some('"') || quotes_are_names))
        .map(|r| r.name.value.as_str())
        .collect();
    let block = source.map(|s| facts.sources[s].block);
    let pointed = block.and_then(|block| pointed_at(called, block, subject)).map(|pointed| pointed.table);
    let mut ways: Vec<Candidate<'_>> = schema
        .tables()
        .iter()
        .filter_map(|t| {
            // `id` is what models call a key that they do not know.
            let key = |a: &str| {
                let [key] = t.primary_key.as_slice() else { return false };
                a.eq_ignore_ascii_case("id") && !asked.iter().any(|a| a.eq_ignore_ascii_case(key))
            };
            let has = |a: &str| t.columns.iter().any(|c| is_nearly(a, &c.name, 0.98));
            let missing = asked.iter().filter(|a| !has(a) && !key(a)).count();
            // A column that is misspelt as well does not speak against a table.
            let near = |a: &str| t.columns.iter().any(|c| is_nearly(a, &c.name, 0.75) || is_slip(a, &c.name));
            let lacking = asked.iter().filter(|a| !near(a) && !key(a)).count();
            let is_pointed_at = pointed.is_some_and(|table| std::ptr::eq(table, t));
            let evidence = Evidence::of(name, t, is_pointed_at, subject);
            // The question and synonyms speak for a table only together with the columns that are asked of it.
            let is_weak = |e: &Evidence| matches!(e, Evidence::Question | Evidence::Synonym);
            let evidence = evidence.filter(|e| !is_weak(e) || (!asked.is_empty() && lacking == 0));
            let evidence = evidence.or((!asked.is_empty() && missing == 0).then_some(Evidence::Columns))?;
            let asked = usize::from(evidence.doubt() > 0 && mend::asked_for(subject, &t.name));
            // A key of the query that is compared with it says which table it is.
            let rival = if pointed.is_some() && !is_pointed_at { 9 } else { 0 };
            Some(Candidate {
                table: t,
                evidence,
                missing,
                lacking,
                doubt: evidence.doubt() + 2 * missing - asked + rival,
            })
        })
        .collect();
    ways.sort_by_key(|way| way.doubt);
    let clear = matches!(ways.as_slice(), [only] if only.doubt <= 2)
        || matches!(ways.as_slice(), [first, second, ..] if first.doubt == 0 && second.doubt > 2);
    // A table between two others is known by them, unless its very name says which it is.
    let known_by_name = ways.first().is_some_and(|way| way.doubt <= 1);
    let clear = clear && (known_by_name || between.is_empty());
    let dialect = subject.context.dialect;
    let doubts: Vec<usize> = ways.iter().map(|way| way.doubt).collect();
    let ways = ways.into_iter().take(4).enumerate().map(|(n, way)| {
        let right = dialect.quoted(&way.table.name);
        let mut edits = vec![Edit { span: subject.query.span(table.place), text: right.clone() }];
        // Without an alias the columns are qualified with the wrong name too.
        if called.eq_ignore_ascii_case(name) {
            let qualifiers =
                facts.references.iter().filter_map(|r| r.qualifier).filter(|q| q.value.eq_ignore_ascii_case(name));
            edits.extend(qualifiers.map(|q| Edit { span: subject.query.span(q.span), text: right.clone() }));
        }
        edits.sort_by_key(|e| (e.span.start, e.span.end));
        edits.dedup();
        let applicability = match way.evidence {
            Evidence::Columns => Applicability::Suggested,
            // A name that is merely like it, of a table that lacks what is asked, is a guess.
            _ if way.lacking > 0 && way.doubt > 2 * way.missing => Applicability::Suggested,
            Evidence::SameName | Evidence::Spelling(_) if clear && n == 0 => Applicability::Safe,
            _ => Applicability::Likely,
        };
        let tied = n > 0 && doubts[n] == doubts[n - 1];
        Fix { edits, applicability, why: way.evidence.reason(name, &way.table.name), tied }
    });
    if known_by_name { ways.chain(between).collect() } else { between.iter().cloned().chain(ways).collect() }
}

/// Least likeness of two names of tables that is evidence.
const MIN_SPELLING: f64 = 0.8;

/// A table that may have been meant.
struct Candidate<'s> {
    table: &'s Table,
    evidence: Evidence,
    /// How many columns that are asked of the unknown table it lacks.
    missing: usize,
    /// How many of these it has not even under a similar name.
    lacking: usize,
    /// Lower is better.
    doubt: usize,
}

/// What speaks for a table in the place of an unknown one.
#[derive(Clone, Copy, PartialEq)]
enum Evidence {
    /// The same name but for case, underscores, plural or what stands before it.
    SameName,
    /// A similar name, with its doubt.
    Spelling(usize),
    /// A foreign key of the query refers to it.
    ForeignKey,
    /// The question names it.
    Question,
    /// Its name is a synonym.
    Synonym,
    /// It has the columns that are asked. Any table may, so this is a suggestion and no evidence.
    Columns,
}

impl Evidence {
    fn of(name: &str, table: &Table, is_pointed_at: bool, subject: &Subject<'_>) -> Option<Self> {
        // `deleted_orders` are not the orders: a word that the table's name lacks may be the very point.
        let is_spelled_alike = !drops_words(name, &table.name);
        match likeness(name, &table.name) {
            l if l >= 0.98 => Some(Self::SameName),
            l if l >= 0.85 && is_spelled_alike => Some(Self::Spelling(2)),
            l if l >= MIN_SPELLING && is_spelled_alike => Some(Self::Spelling(4)),
            _ if is_pointed_at => Some(Self::ForeignKey),
            // Who uses a table elsewhere in the query knows its name, and would not call it otherwise here.
            _ if mend::asked_for(subject, &table.name) && !is_used(table, subject) => Some(Self::Question),
            _ if is_synonym(name, table, subject) => Some(Self::Synonym),
            _ => None,
        }
    }

    fn doubt(self) -> usize {
        match self {
            Self::SameName => 0,
            Self::ForeignKey => 1,
            Self::Spelling(doubt) => doubt,
            Self::Question | Self::Synonym => 5,
            Self::Columns => 6,
        }
    }

    fn reason(self, name: &str, table: &str) -> String {
        match self {
            Self::SameName => format!("`{table}` is `{name}` in another spelling"),
            Self::Spelling(_) => format!("`{table}` is spelled like `{name}`"),
            Self::ForeignKey => format!("a key of the query refers to `{table}`"),
            Self::Question => format!("the question names `{table}`"),
            Self::Synonym => format!("`{table}` is a synonym of `{name}`"),
            Self::Columns => {
                format!("`{table}` has the columns that are asked of `{name}`, which is no evidence that it is meant")
            }
        }
    }
}

/// Whether the table is the only one whose name means the same as the unknown one.
fn is_synonym(name: &str, table: &Table, subject: &Subject<'_>) -> bool {
    let Some(schema) = subject.context.schema else { return false };
    let Some(similarity) = schema.similarity().filter(|_| words_of(name).len() == 1) else { return false };
    let is_close = |table: &Table| {
        name_similarity(similarity, &words_of(name).join(" "), &words_of(&table.name).join(" "))
            >= MIN_SYNONYM_SIMILARITY
    };
    let mut close = schema.tables().iter().filter(|table| is_close(table));
    close.next().is_some_and(|first| std::ptr::eq(first, table)) && close.next().is_none()
}

fn is_used(table: &Table, subject: &Subject<'_>) -> bool {
    subject.facts.sources.iter().any(|source| source.table().is_some_and(|used| std::ptr::eq(used, table)))
}

/// Nothing is asked of the unknown table; all columns are those of one that is not in FROM, which is then what it stands for.
fn named_by_columns(unknown: SourceId, table: &TableUse<'_>, subject: &Subject<'_>, schema: &Schema) -> Option<Fix> {
    let facts = subject.facts;
    let block = facts.sources[unknown].block;
    let mut meant: Option<&Table> = None;
    for r in facts.references.iter().filter(|r| r.block == block && r.meaning == Meaning::UnknownQualifier) {
        let named = schema.table(&r.qualifier?.value).filter(|t| r.wildcard || t.column(&r.name.value).is_some())?;
        if meant.is_some_and(|m| !std::ptr::eq(m, named)) {
            return None;
        }
        meant = Some(named);
    }
    let own = |r: &&crate::scope::Reference<'_>| {
        let its = r.qualifier.is_some_and(|q| q.value.eq_ignore_ascii_case(facts.sources[unknown].called()));
        r.block == block && (its || r.qualifier.is_none())
    };
    let meant =
        meant.filter(|_| facts.blocks[block].sources.len() == 1 && !facts.references.iter().any(|r| own(&r)))?;
    let place = subject.query.span(table.place);
    let name = facts.sources[unknown].name.map_or(place, |n| place.join(subject.query.span(n.span)));
    let why = format!("every column that is asked for is one of `{}`, which is not in FROM", meant.name);
    Some(mend::replace(name, subject.context.dialect.quoted(&meant.name), Applicability::Likely, why))
}

/// `FROM dual` stands where another database cannot do without FROM: there is nothing to read in it.
fn nothing_to_read(source: SourceId, name: &str, subject: &Subject<'_>) -> Option<Fix> {
    let source = &subject.facts.sources[source];
    let alone = subject.facts.blocks[source.block].sources.len() == 1;
    let asked = subject.facts.references.iter().any(|r| r.block == source.block);
    if !name.eq_ignore_ascii_case("dual") || !alone || asked {
        return None;
    }
    let place = subject.query.span(source.place);
    let end = source.name.map_or(place, |n| place.join(subject.query.span(n.span)));
    let span = mend::from_word(subject, source.block)?.join(end);
    Some(mend::replace(span, "", Applicability::Safe, "a query that reads no table needs no FROM"))
}
