//! Detects messages that reject the previous answer.
//!
//! Words are judged in context: "no" and "wrong" are complaints, "north" is not, nor is a question
//! about wrong deliveries.

/// Words that refer to the answer.
const ANSWER_WORDS: &[&str] = &[
    "that", "thats", "this", "these", "those", "it", "its", "they", "answer", "answers", "result", "results", "query",
    "sql", "number", "numbers", "count", "total", "you", "your", "output", "rows", "das", "ergebnis", "antwort",
];
/// Words that express a fault.
const FAULT_WORDS: &[&str] = &[
    "wrong",
    "incorrect",
    "incorrectly",
    "mistaken",
    "mistake",
    "false",
    "bad",
    "broken",
    "nonsense",
    "inaccurate",
    "misunderstood",
    "falsch",
    "faux",
    "incorrecto",
];
/// Words that express a fault when negated.
const APPROVAL_WORDS: &[&str] =
    &["right", "correct", "true", "accurate", "richtig", "what", "good", "it", "that", "asked"];
const NEGATIONS: &[&str] = &["not", "isnt", "arent", "wasnt", "doesnt", "dont", "didnt", "never", "nicht", "cant"];
/// Verbs that request a redo.
const REDO_VERBS: &[&str] = &["fix", "correct", "redo", "retry", "undo", "rewrite"];
/// Maximum number of words in a short message. A fault word anywhere in it is a complaint.
const MAX_SHORT_MESSAGE_WORDS: usize = 4;
/// Maximum distance, in words, between the fault and the word for the answer.
const MAX_FAULT_DISTANCE: usize = 4;

/// Returns whether the message rejects the previous answer.
pub fn is_complaint(message: &str) -> bool {
    let lower = message.to_lowercase().replace(['\'', '’'], "");
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let Some(first) = words.first() else { return false };
    let has = |list: &[&str], word: &str| list.contains(&word);
    // Matches "No" and "No, I meant …", but not "No of orders" or "no orders".
    let after_no = words.get(1).copied().unwrap_or_default();
    let pause = lower.trim_start()[first.len()..].trim_start().starts_with([',', '.', '!', ';', ':', '-', '–', '—']);
    let no = has(&["no", "nope", "nah", "nein", "non"], first)
        && after_no != "of"
        && (words.len() == 1 || pause || has(ANSWER_WORDS, after_no) || has(&["i", "we", "not", "wrong"], after_no));
    let at_once = has(FAULT_WORDS, first) && (words.len() <= MAX_SHORT_MESSAGE_WORDS || pause)
        || has(&["error", "errors"], first) && words.len() <= 2
        || has(REDO_VERBS, first)
            && (words.len() == 1 || has(&["it", "that", "this", "the", "your", "please"], after_no));
    let short = words.len() <= MAX_SHORT_MESSAGE_WORDS
        && !lower.contains('?')
        && words.iter().any(|word| has(&FAULT_WORDS[..4], word));
    let about = words.iter().enumerate().any(|(at, word)| {
        let behind = &words[at + 1..words.len().min(at + 1 + MAX_FAULT_DISTANCE)];
        let plain = behind.iter().position(|word| has(FAULT_WORDS, word));
        let not = behind.iter().position(|word| has(NEGATIONS, word));
        let denied =
            not.and_then(|not| Some(not + 1 + behind[not + 1..].iter().position(|word| has(APPROVAL_WORDS, word))?));
        // Matches "that is wrong", but not "the answers that were wrong": a fault followed by a
        // noun describes the noun.
        has(ANSWER_WORDS, word)
            && is_clause_start(&words, at)
            && plain.or(denied).is_some_and(|place| is_clause_end(&words, at + 1 + place))
    });
    let meant = words.windows(2).take(6).any(|pair| has(&["i", "we"], pair[0]) && has(&["meant", "wanted"], pair[1]));
    let asked =
        words.windows(3).any(|three| has(NEGATIONS, three[0]) && three[1] == "what" && has(&["i", "we"], three[2]));
    no || at_once || short || about || meant || asked
}

/// Returns whether the fault is not followed by a noun that it could describe.
fn is_clause_end(words: &[&str], at: usize) -> bool {
    match words.get(at + 1) {
        None => true,
        Some(next) => {
            ["it", "i", "please", "the", "you", "there", "should", "again", "because", "and", "try"].contains(next)
        }
    }
}

/// Returns whether the word begins a clause and does not refer to a preceding noun.
fn is_clause_start(words: &[&str], at: usize) -> bool {
    at <= 2 || ["but", "because", "think", "so", "the", "your", "and"].contains(&words[at - 1])
}

/// Returns whether a question can only be understood in the context of the previous ones.
pub fn is_follow_up(question: &str) -> bool {
    const POINTS: &[&str] = &[
        "those", "them", "these", "that", "it", "its", "their", "they", "same", "instead", "also", "again", "previous",
        "above", "ones", "this",
    ];
    const BEGINS: &[&str] = &["and", "but", "or", "now", "only", "then", "und"];
    let lower = question.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let Some(first) = words.first() else { return true };
    let about = words.get(1) == Some(&"about");
    BEGINS.contains(first) || about || words.len() <= 2 || words.iter().any(|word| POINTS.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_complaints_by_wording() {
        for complaint in [
            "no",
            "No!",
            "nope",
            "No, I meant the orders of 2024",
            "no that is last year",
            "No - only paid orders",
            "wrong",
            "Wrong, it should be 12",
            "that's wrong",
            "That is not right",
            "this is incorrect",
            "The answer is wrong",
            "I think the result is wrong",
            "it's not correct, there are more",
            "this isn't what I asked for",
            "not what I wanted",
            "I meant customers, not orders",
            "fix it",
            "fix the query",
            "Please fix that, the numbers are wrong",
            "error",
            "incorrect",
            "you misunderstood",
            "the count is wrong",
            "Your query is wrong because it counts twice",
            "das ist falsch",
            "nein",
            "That doesn't look right",
        ] {
            assert!(is_complaint(complaint), "{complaint}");
        }
        for question in [
            "",
            "north region sales",
            "notes of customer 7",
            "November orders",
            "No of orders per city",
            "No. of customers in Berlin?",
            "Nobel prize winners",
            "Which deliveries went to the wrong address?",
            "How many orders have an incorrect total?",
            "How many errors were there in 2020?",
            "error codes by day",
            "List the products that are not right handed",
            "fixed costs per month",
            "Which prefix is used most?",
            "How many customers have no orders?",
            "List all answers that were wrong in the quiz",
            "Who did not pay?",
            "And in 2024?",
            "thanks",
            "Which customers are not in Berlin?",
            "correct answers per student",
            "Show the bad reviews",
            "Which results are false positives?",
            "not paid orders",
        ] {
            assert!(!is_complaint(question), "{question}");
        }
    }

    #[test]
    fn detects_follow_up_questions() {
        for question in ["And in 2024?", "only the paid ones", "What about Berlin?", "sort them by price", "more"] {
            assert!(is_follow_up(question), "{question}");
        }
        for question in ["How many orders are there?", "What is the average price of products in each category?"] {
            assert!(!is_follow_up(question), "{question}");
        }
    }
}
