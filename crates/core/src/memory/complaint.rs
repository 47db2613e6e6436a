//! Whether a message says that the answer before it was wrong. It goes by words and what they stand beside: "no" and "wrong"
//! are complaints, "north" is not, nor is a question about wrong deliveries.

/// What people find fault with.
const MEANT: &[&str] = &[
    "that", "thats", "this", "these", "those", "it", "its", "they", "answer", "answers", "result", "results", "query",
    "sql", "number", "numbers", "count", "total", "you", "your", "output", "rows", "das", "ergebnis", "antwort",
];
/// The words for the fault.
const FAULTS: &[&str] = &[
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
/// What is missing where a word before it says "not".
const RIGHT: &[&str] = &["right", "correct", "true", "accurate", "richtig", "what", "good", "it", "that", "asked"];
const NOT: &[&str] = &["not", "isnt", "arent", "wasnt", "doesnt", "dont", "didnt", "never", "nicht", "cant"];
/// Words that ask for it to be done again.
const AGAIN: &[&str] = &["fix", "correct", "redo", "retry", "undo", "rewrite"];
/// With these, a message of few words is a complaint wherever they stand.
const SHORT: usize = 4;
/// How far the fault stands from what it is said of.
const NEAR: usize = 4;

/// Whether this message finds fault with the answer before it.
pub fn is_complaint(message: &str) -> bool {
    let lower = message.to_lowercase().replace(['\'', '’'], "");
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let Some(first) = words.first() else { return false };
    let has = |list: &[&str], word: &str| list.contains(&word);
    // "No", "No, I meant …", but not "No of orders" and not "no orders".
    let after_no = words.get(1).copied().unwrap_or_default();
    let pause = lower.trim_start()[first.len()..].trim_start().starts_with([',', '.', '!', ';', ':', '-', '–', '—']);
    let no = has(&["no", "nope", "nah", "nein", "non"], first)
        && after_no != "of"
        && (words.len() == 1 || pause || has(MEANT, after_no) || has(&["i", "we", "not", "wrong"], after_no));
    let at_once = has(FAULTS, first) && (words.len() <= SHORT || pause)
        || has(&["error", "errors"], first) && words.len() <= 2
        || has(AGAIN, first) && (words.len() == 1 || has(&["it", "that", "this", "the", "your", "please"], after_no));
    let short = words.len() <= SHORT && !lower.contains('?') && words.iter().any(|word| has(&FAULTS[..4], word));
    let about = words.iter().enumerate().any(|(at, word)| {
        let behind = &words[at + 1..words.len().min(at + 1 + NEAR)];
        let plain = behind.iter().position(|word| has(FAULTS, word));
        let not = behind.iter().position(|word| has(NOT, word));
        let denied = not.and_then(|not| Some(not + 1 + behind[not + 1..].iter().position(|word| has(RIGHT, word))?));
        // "that is wrong", and not "the answers that were wrong": a fault with something behind it describes that.
        has(MEANT, word) && is_said(&words, at) && plain.or(denied).is_some_and(|place| ends(&words, at + 1 + place))
    });
    let meant = words.windows(2).take(6).any(|pair| has(&["i", "we"], pair[0]) && has(&["meant", "wanted"], pair[1]));
    let asked = words.windows(3).any(|three| has(NOT, three[0]) && three[1] == "what" && has(&["i", "we"], three[2]));
    no || at_once || short || about || meant || asked
}

/// Whether nothing that a fault could describe stands behind it.
fn ends(words: &[&str], at: usize) -> bool {
    match words.get(at + 1) {
        None => true,
        Some(next) => {
            ["it", "i", "please", "the", "you", "there", "should", "again", "because", "and", "try"].contains(next)
        }
    }
}

/// Whether a word stands at the beginning of what is said, and not behind a thing that it points back to.
fn is_said(words: &[&str], at: usize) -> bool {
    at <= 2 || ["but", "because", "think", "so", "the", "your", "and"].contains(&words[at - 1])
}

/// Whether a question can only be understood with those before it.
pub fn refers_back(question: &str) -> bool {
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
    fn f09_complaints_are_told_by_words_and_not_by_how_a_message_begins() {
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
    fn a_question_that_needs_those_before_it_is_told() {
        for question in ["And in 2024?", "only the paid ones", "What about Berlin?", "sort them by price", "more"] {
            assert!(refers_back(question), "{question}");
        }
        for question in ["How many orders are there?", "What is the average price of products in each category?"] {
            assert!(!refers_back(question), "{question}");
        }
    }
}
