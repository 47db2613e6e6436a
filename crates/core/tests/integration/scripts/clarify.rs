//! Questions back to the person who asked.

use std::sync::Arc;

use querymend::{
    Answer, AnswerStatus, AskInput, CancellationToken, Clarify, Confidence, Config, Event, Querymend, Stage, StopReason,
};
use querymend_model::{Completion, ScriptedModel};

use super::support::{Answering, Call, Shop, Told, ask_engine, hopeless, quiet, refusal};

/// A question that prefers neither customers nor products.
const QUESTION: &str = "List all the names";
const AMBIGUOUS: &str = "SELECT name FROM customers, products";
const DATE: &str = "SELECT date FROM orders";

async fn ask(drafts: &[&str], clarify: Clarify, question: &str) -> Told {
    let shop = Shop::new();
    let script = Arc::new(ScriptedModel::new(drafts.iter().map(ToString::to_string)));
    let config = quiet(Config::default().with_max_attempts(2).with_fallback(false));
    let querymend = Querymend::new(shop.engine(), script.clone(), config);
    let mut events = Vec::new();
    let ask = AskInput { question: question.into(), clarify: Some(clarify), ..AskInput::default() };
    let answer = querymend.ask_with(ask, &mut |event| events.push(event.clone()), &CancellationToken::new()).await;
    Told { answer, events, asked: script.requests() }
}

fn labels(answer: &Answer) -> Vec<&str> {
    let options = answer.clarification.iter().flat_map(|clarification| &clarification.options);
    options.map(|choice| choice.label.as_str()).collect()
}

#[tokio::test]
async fn offers_interpretations_with_different_rows_and_previews() {
    for (draft, question, expected) in [
        (AMBIGUOUS, "Which name: customers.name or products.name?", ["customers.name", "products.name"]),
        (DATE, "Which date: orders.ordered_on or orders.shipped_on?", ["orders.ordered_on", "orders.shipped_on"]),
    ] {
        let told = ask(&[draft], Clarify::Ask, QUESTION).await;
        let answer = &told.answer;
        assert_eq!((answer.status, answer.stop), (AnswerStatus::AskUser, StopReason::Ambiguous), "{draft}: {answer:?}");
        assert_eq!(labels(answer), expected);
        let clarification = answer.clarification.as_ref().unwrap();
        assert_eq!(clarification.question, question);
        assert_eq!(answer.text.as_deref(), Some(question));
        assert_eq!(answer.sql.as_ref(), Some(&clarification.options[0].sql));
        for choice in &clarification.options {
            assert_eq!((choice.preview.rows.len(), choice.preview.truncated), (3, true), "{choice:?}");
            assert!(!choice.why.is_empty() && !choice.preview.columns.is_empty());
        }
        assert_ne!(clarification.options[0].preview, clarification.options[1].preview);
        assert!(answer.rows.is_none() && answer.problem.is_none());
        assert_eq!(told.asked.len(), 1, "the model is not asked again");
        let stages = told.events.iter().filter(|e| matches!(e, Event::Stage { stage: Stage::HumanInTheLoop, .. }));
        assert_eq!(stages.count(), 1);
    }
}

#[tokio::test]
async fn skips_clarification_when_rows_are_equal() {
    for draft in ["SELECT count(name) FROM customers, products", "SELECT 1 FROM customers, products WHERE name <> ''"] {
        for clarify in [Clarify::Ask, Clarify::Assume, Clarify::Off] {
            let told = ask(&[draft], clarify, QUESTION).await;
            assert_eq!(told.answer.status, AnswerStatus::Answered, "{:?}", told.answer);
            assert!(
                !told.answer.reasons.iter().any(|reason| reason.starts_with("assumed")),
                "{:?}",
                told.answer.reasons
            );
        }
    }
}

#[tokio::test]
async fn resolves_ambiguity_from_words_of_the_question() {
    let told = ask(&[AMBIGUOUS], Clarify::Ask, "List the names of all products").await;
    assert_eq!(
        (told.answer.status, told.sql()),
        (AnswerStatus::Answered, "SELECT products.name FROM customers, products")
    );
}

#[tokio::test]
async fn reports_assumptions_and_lowers_confidence() {
    for (drafts, clarify, expected) in [
        (
            &[AMBIGUOUS][..],
            Clarify::Off,
            Ok((Confidence::Medium, "assumed customers.name; it could also be products.name")),
        ),
        (
            &[AMBIGUOUS],
            Clarify::Assume,
            Ok((Confidence::Medium, "assumed customers.name; it could also be products.name")),
        ),
        // Nothing proves which date is meant: the model is asked again first.
        (
            &[DATE, DATE],
            Clarify::Assume,
            Ok((Confidence::Low, "assumed orders.ordered_on; it could also be orders.shipped_on")),
        ),
        (&[DATE, DATE], Clarify::Off, Err(AnswerStatus::GaveUp)),
    ] {
        let told = ask(drafts, clarify, QUESTION).await;
        let answer = &told.answer;
        match expected {
            Err(status) => assert_eq!((answer.status, labels(answer).len()), (status, 0)),
            Ok((most, reason)) => {
                assert_eq!(answer.status, AnswerStatus::Answered, "{drafts:?}: {answer:?}");
                assert!(answer.reasons.iter().any(|given| given == reason), "{:?}", answer.reasons);
                assert!(answer.confidence <= most);
                assert_eq!(told.executed(), [told.sql()], "the reading is run once");
            }
        }
    }
}

#[tokio::test]
async fn asks_when_the_database_rejects_the_repair() {
    let engine =
        Shop::new().hooked(|call| matches!(call, Call::Probe(_)).then(|| refusal("ambiguous column name: name")));
    let config = Config::default().with_max_attempts(1).with_fallback(false).with_ask_user(true);
    let told = ask_engine(engine, [AMBIGUOUS], config, QUESTION).await;
    assert_eq!(told.answer.status, AnswerStatus::AskUser, "{:?}", told.answer);
    assert_eq!(labels(&told.answer), ["customers.name", "products.name"]);
}

#[tokio::test]
async fn reviews_and_runs_chosen_interpretation_without_a_model() {
    for (choice, drafts, status, calls) in [
        ("SELECT products.name FROM customers, products", &[][..], AnswerStatus::Answered, 0),
        // What is chosen is never trusted: the model is asked as if the draft had failed.
        ("DROP TABLE products", &["SELECT name FROM products"], AnswerStatus::Answered, 1),
        ("DELETE FROM orders; SELECT 1", &["DROP TABLE orders"], AnswerStatus::GaveUp, 1),
        ("", &["SELECT name FROM products"], AnswerStatus::Answered, 1),
    ] {
        let shop = Shop::new();
        let script = Arc::new(ScriptedModel::new(drafts.iter().map(ToString::to_string)));
        let config = quiet(Config::default().with_max_attempts(2).with_fallback(false));
        let querymend = Querymend::new(shop.engine(), script.clone(), config);
        let (question, clarify) = (QUESTION.to_string(), Some(Clarify::Ask));
        let ask = AskInput { question, clarify, choice: Some(choice.into()), ..AskInput::default() };
        let answer = querymend.ask_with(ask, &mut |_| {}, &CancellationToken::new()).await;
        assert_eq!((answer.status, script.requests().len()), (status, calls), "{choice}: {answer:?}");
        let is_chosen = answer.sql.as_deref() == Some(choice);
        assert_eq!(answer.reasons.iter().any(|reason| reason.contains("the user chose")), is_chosen && calls == 0);
    }
}

#[tokio::test]
async fn offers_drafts_without_a_majority() {
    let few = "SELECT name FROM products WHERE price < 20";
    let many = "SELECT name FROM products WHERE price < 200";
    for (more, clarify, status) in [
        (vec![many], Clarify::Ask, AnswerStatus::AskUser),
        (vec![many], Clarify::Off, AnswerStatus::Answered),
        (vec![many], Clarify::Assume, AnswerStatus::Answered),
        (vec![many, many], Clarify::Ask, AnswerStatus::Answered),
        (vec![few, many], Clarify::Ask, AnswerStatus::Answered),
        (vec!["SELECT name FROM products WHERE price < 20.0"], Clarify::Ask, AnswerStatus::Answered),
    ] {
        let shop = Shop::new();
        let reply = Completion { more: more.iter().map(ToString::to_string).collect(), ..Completion::text(few) };
        let model = Arc::new(Answering(move |_: &_| Ok(reply.clone())));
        let config = quiet(Config { candidates: Some(3), ..Config::default() });
        let querymend = Querymend::new(shop.engine(), model, config);
        let ask =
            AskInput { question: "Which products are cheap?".into(), clarify: Some(clarify), ..AskInput::default() };
        let answer = querymend.ask_with(ask, &mut |_| {}, &CancellationToken::new()).await;
        assert_eq!(answer.status, status, "{more:?}: {answer:?}");
        if status == AnswerStatus::AskUser {
            assert_eq!(labels(&answer), [few, many]);
        }
    }
}

#[tokio::test]
async fn gives_up_when_there_is_nothing_to_choose() {
    let told = ask(&[&hopeless("flurb"), &hopeless("blorp")], Clarify::Ask, QUESTION).await;
    assert_eq!((told.answer.status, labels(&told.answer).len()), (AnswerStatus::GaveUp, 0));
}
