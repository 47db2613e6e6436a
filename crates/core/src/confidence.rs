//! Estimates the confidence of an answer with a logistic model.
//!
//! Its features are verified facts about the answer; none come from the language model.
//!
//! `scripts/calibrate.py` fits the weights on answers whose rows are known to be right or wrong,
//! and prints the reliability of each level on held-out databases: docs/measurements/confidence.md.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Features of an answer. Counts are capped so that no single feature dominates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ConfidenceFeatures {
    /// Number of content words in the question, at most 12.
    pub question_words: f64,
    /// Fraction of these that resemble neither an identifier nor a value of the query.
    pub unused_words: f64,
    /// Number of numbers in the question that are missing from the query, at most 2.
    pub unused_numbers: f64,
    /// Number of requested operations that the query lacks, at most 2. Operations are count,
    /// average, extreme, groups, distinct and negation.
    pub missing_operations: f64,
    /// Number of literals in the query that the question does not mention, at most 2.
    pub extra_values: f64,
    /// 1 if at least one applied fix was only likely, not certain.
    pub guessed: f64,
    /// 1 if the query was fixed and every applied fix is safe.
    pub fixed: f64,
    /// 1 if the result is empty.
    pub empty: f64,
    /// Number of warnings about the executed query, at most 2.
    pub warnings: f64,
    /// Number of joined tables beyond the first, at most 3.
    pub joins: f64,
    /// 1 if the query groups rows.
    pub grouped: f64,
    /// Highest level that the certain facts about the answer permit; no limit if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<Confidence>,
}

/// Weights of the model and the minimum probability of each level.
struct ConfidenceWeights {
    bias: f64,
    weights: ConfidenceFeatures,
    min_high: f64,
    min_medium: f64,
}

/// Weights fitted by `scripts/calibrate.py`.
///
/// The data are the answers of three models to Spider, GeoQuery and defog questions.
const WEIGHTS: ConfidenceWeights = ConfidenceWeights {
    bias: 2.19,
    weights: ConfidenceFeatures {
        question_words: -0.09,
        unused_words: -0.56,
        unused_numbers: -0.23,
        missing_operations: -0.34,
        extra_values: -0.05,
        guessed: -0.56,
        fixed: -0.11,
        empty: -1.50,
        warnings: -1.04,
        joins: -0.45,
        grouped: -0.57,
        cap: None,
    },
    min_high: 0.87,
    min_medium: 0.55,
};

impl ConfidenceFeatures {
    /// Compares a question with the query that answers it. The caller sets the remaining features.
    pub(crate) fn from_query(question: &str, sql: &str) -> Self {
        let code = without_literals(sql);
        let (asked, used_words) = (tokenize(question), tokenize(sql));
        let used: HashSet<String> = used_words.iter().map(|word| stem(word)).collect();
        let is_content = |word: &&String| {
            !STOP_WORDS.contains(&word.as_str()) && (word.len() > 2 || word.starts_with(|c: char| c.is_ascii_digit()))
        };
        let content: Vec<String> = asked.iter().filter(is_content).map(|word| stem(word)).collect();
        let unused = content.iter().filter(|word| !is_used(word, &used)).count();
        let numbers = asked.iter().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let unused_numbers = numbers.filter(|number| !used_words.contains(number)).count();
        let question = question.to_lowercase();
        let is_mentioned = |value: &String| tokenize(value).iter().all(|word| question.contains(word.as_str()));
        let extra = literals(sql).iter().filter(|value| !value.is_empty() && !is_mentioned(value)).count();
        Self {
            question_words: content.len().min(12) as f64,
            unused_words: unused as f64 / content.len().max(1) as f64,
            unused_numbers: unused_numbers.min(2) as f64,
            missing_operations: missing_operations(&asked, &code).min(2) as f64,
            extra_values: extra.min(2) as f64,
            joins: tokenize(&code).iter().filter(|word| *word == "join").count().min(3) as f64,
            ..Self::default()
        }
    }

    fn weighted_features(&self, weights: &Self) -> [(f64, f64); 11] {
        [
            (self.question_words, weights.question_words),
            (self.unused_words, weights.unused_words),
            (self.unused_numbers, weights.unused_numbers),
            (self.missing_operations, weights.missing_operations),
            (self.extra_values, weights.extra_values),
            (self.guessed, weights.guessed),
            (self.fixed, weights.fixed),
            (self.empty, weights.empty),
            (self.warnings, weights.warnings),
            (self.joins, weights.joins),
            (self.grouped, weights.grouped),
        ]
    }

    /// Returns the estimated probability that the answer is correct.
    pub(crate) fn probability(&self) -> f64 {
        let score: f64 = self.weighted_features(&WEIGHTS.weights).iter().map(|(value, weight)| value * weight).sum();
        1.0 / (1.0 + (-(WEIGHTS.bias + score)).exp())
    }

    /// Returns the level of that probability, or the cap if it is lower.
    pub(crate) fn level(&self) -> Confidence {
        let level = match self.probability() {
            p if p >= WEIGHTS.min_high => Confidence::High,
            p if p >= WEIGHTS.min_medium => Confidence::Medium,
            _ => Confidence::Low,
        };
        self.cap.map_or(level, |cap| cap.min(level))
    }

    /// Returns the reasons for a lower level that neither a warning nor a fix reports.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        if self.unused_words >= 0.5 {
            doubts.push("half of the question's words or more are not in the query".to_string());
        }
        if self.unused_numbers > 0.0 {
            doubts.push("a number of the question is not in the query".to_string());
        }
        if self.missing_operations > 0.0 {
            doubts.push("the question asks for a count, extreme, group or negation that the query lacks".to_string());
        }
        doubts
    }
}

/// Words that phrase a question without carrying content.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "above",
    "all",
    "along",
    "alphabetical",
    "also",
    "an",
    "and",
    "another",
    "any",
    "are",
    "as",
    "ascending",
    "at",
    "average",
    "avg",
    "be",
    "been",
    "below",
    "between",
    "but",
    "by",
    "can",
    "could",
    "count",
    "decreasing",
    "descending",
    "did",
    "different",
    "distinct",
    "do",
    "does",
    "each",
    "every",
    "fewer",
    "find",
    "first",
    "for",
    "from",
    "give",
    "greater",
    "had",
    "has",
    "have",
    "highest",
    "how",
    "if",
    "in",
    "increasing",
    "into",
    "is",
    "it",
    "its",
    "last",
    "least",
    "less",
    "list",
    "lowest",
    "many",
    "max",
    "maximum",
    "me",
    "mean",
    "min",
    "minimum",
    "more",
    "most",
    "much",
    "name",
    "names",
    "no",
    "not",
    "number",
    "of",
    "on",
    "one",
    "only",
    "or",
    "order",
    "ordered",
    "other",
    "our",
    "over",
    "per",
    "please",
    "respectively",
    "return",
    "same",
    "shall",
    "show",
    "smaller",
    "so",
    "some",
    "sort",
    "sorted",
    "such",
    "sum",
    "tell",
    "than",
    "that",
    "the",
    "their",
    "them",
    "there",
    "these",
    "they",
    "this",
    "those",
    "three",
    "to",
    "together",
    "top",
    "total",
    "two",
    "under",
    "us",
    "was",
    "we",
    "well",
    "were",
    "what",
    "when",
    "where",
    "which",
    "who",
    "whom",
    "whose",
    "why",
    "will",
    "with",
    "without",
    "would",
    "you",
    "your",
];

/// Splits a text into lowercase words and numbers; `PetType` is two words.
fn tokenize(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut before: Option<char> = None;
    for c in text.chars() {
        let goes_on = before.is_some_and(|b| match c {
            c if c.is_alphabetic() => b.is_alphabetic() && !(c.is_uppercase() && b.is_lowercase()),
            c if c.is_ascii_digit() => b.is_ascii_digit() || b == '.',
            '.' => b.is_ascii_digit(),
            _ => false,
        });
        match c {
            c if (c.is_alphabetic() || c.is_ascii_digit()) && !goes_on => out.push(c.to_lowercase().collect()),
            c if goes_on => out.last_mut().into_iter().for_each(|word| word.extend(c.to_lowercase())),
            _ => {}
        }
        before = Some(c);
    }
    out.iter_mut().for_each(|word| word.truncate(word.trim_end_matches('.').len()));
    out
}

/// Returns a word without its plural suffix.
fn stem(word: &str) -> String {
    for (ending, instead) in [("ies", "y"), ("es", ""), ("s", "")] {
        if let Some(rest) = word.strip_suffix(ending).filter(|rest| rest.len() >= 3) {
            return format!("{rest}{instead}");
        }
    }
    word.to_string()
}

/// Returns whether the query contains the word, or one that begins with the same four letters.
fn is_used(word: &str, used: &HashSet<String>) -> bool {
    let start: String = word.chars().take(4).collect();
    used.contains(word) || (start.len() > 3 && used.iter().any(|other| other.len() > 3 && other.starts_with(&start)))
}

/// Returns the contents of the quoted strings in a query.
fn literals(sql: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = sql;
    while let Some(open) = rest.find(['\'', '"']) {
        let quote = rest.as_bytes()[open] as char;
        let Some(length) = rest[open + 1..].find(quote) else { break };
        out.push(rest[open + 1..open + 1 + length].to_string());
        rest = &rest[open + length + 2..];
    }
    out
}

fn without_literals(sql: &str) -> String {
    let mut is_inside = false;
    let keep = |c: &char| {
        is_inside ^= *c == '\'';
        !is_inside
    };
    sql.chars().filter(keep).collect::<String>().to_lowercase()
}

/// Returns the number of operations that the question names and the query (without literals) lacks.
fn missing_operations(asked: &[String], code: &str) -> usize {
    let asks = |any: &[&str]| asked.iter().any(|word| any.contains(&word.as_str()));
    let follows = |first: &str, second: &str| asked.windows(2).any(|pair| pair[0] == first && pair[1] == second);
    let code: String = code.split_whitespace().collect::<Vec<_>>().join(" ");
    let calls = |name: &str| code.replace(' ', "").contains(&format!("{name}("));
    let has = |word: &str| tokenize(&code).iter().any(|other| other == word);
    let counts = follows("how", "many") || follows("number", "of") || asks(&["count"]);
    let extremes = [
        "most", "least", "fewest", "highest", "lowest", "largest", "smallest", "maximum", "minimum", "youngest",
        "oldest", "earliest", "latest", "best", "top",
    ];
    let checks = [
        counts && !calls("count") && !calls("sum"),
        asks(&["average", "mean"]) && !calls("avg"),
        asks(&extremes) && !code.contains("order by") && !calls("max") && !calls("min"),
        (asks(&["each", "per"]) || follows("for", "every")) && !code.contains("group by"),
        asks(&["different", "distinct", "unique"]) && !has("distinct") && !code.contains("group by"),
        asks(&["not", "no", "without", "never", "except"])
            && !has("not")
            && !has("except")
            && !code.contains("is null")
            && !code.contains("<>")
            && !code.contains("!="),
    ];
    checks.iter().filter(|is_missing| **is_missing).count()
}

/// Confidence in an answer, derived from checks and not from the model's own estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// There is evidence against the answer.
    Low,
    /// The query was repaired, or something could not be checked.
    Medium,
    /// The query passed every check unchanged.
    High,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_question_with_query_in_features() {
        let check = |question: &str, sql: &str| {
            let f = ConfidenceFeatures::from_query(question, sql);
            (f.question_words, f.unused_words, f.unused_numbers, f.missing_operations, f.extra_values, f.joins)
        };
        assert_eq!(check("How many singers are there?", "SELECT COUNT(*) FROM singer"), (1.0, 0.0, 0.0, 0.0, 0.0, 0.0));
        assert_eq!(
            check("How many pets weigh more than 10?", "SELECT PetType FROM Pets WHERE Color = 'Red'"),
            (3.0, 2.0 / 3.0, 1.0, 1.0, 1.0, 0.0)
        );
        assert_eq!(
            check(
                "Show the city of each customer in 'New York'",
                "SELECT c.city FROM customers c JOIN t ON 1 = 1 WHERE x = 'New York'"
            ),
            (4.0, 0.0, 0.0, 1.0, 0.0, 1.0)
        );
    }

    #[test]
    fn derives_confidence_level_from_probability() {
        let sure = ConfidenceFeatures { question_words: 1.0, ..ConfidenceFeatures::default() };
        let doubtful = ConfidenceFeatures { unused_words: 1.0, empty: 1.0, warnings: 1.0, ..sure };
        assert!(sure.probability() > doubtful.probability());
        assert_eq!(sure.level(), Confidence::High);
        assert_eq!(doubtful.level(), Confidence::Low);
        assert!(sure.doubts().is_empty() && !doubtful.doubts().is_empty());
    }
}
