//! Every method where all is well.

use std::time::Instant;

use ::querymend_server::grpc::proto::ask_event::Event;
use ::querymend_server::grpc::proto::cell::Value;
use ::querymend_server::grpc::proto::*;
use tonic::{Code, Status};

use super::support::{GOOD, MENDABLE, QUESTION, READ_TIMEOUT, Server, problem, question, server};
use crate::timing;

async fn events(server: &Server, text: &str) -> (Vec<AskEvent>, Option<tonic::Status>) {
    let mut stream = server.client().await.ask_stream(question(text)).await.unwrap().into_inner();
    let mut events = Vec::new();
    loop {
        match stream.message().await {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return (events, None),
            Err(status) => return (events, Some(status)),
        }
    }
}

#[tokio::test]
async fn answer_has_corrections_metadata_and_cost() {
    let server = server([MENDABLE], timing::config()).await;
    let response = server.client().await.ask(question(QUESTION)).await.unwrap();
    assert_eq!(response.metadata().get("x-request-id").unwrap().len(), 36);
    let answer = response.into_inner();
    assert_eq!(answer.status(), AnswerStatus::Answered);
    assert_eq!(answer.sql, "SELECT product_id, price FROM products WHERE category = 'Electronics'");
    assert_eq!((answer.stop.as_str(), answer.question.as_str(), answer.trace_id.len()), ("answered", QUESTION, 36));
    let rows = answer.rows.clone().unwrap();
    assert_eq!((rows.columns, rows.truncated), (vec!["product_id".to_owned(), "price".to_owned()], false));
    let cells = &rows.rows[0].cells;
    assert!(matches!((&cells[0].value, &cells[1].value), (Some(Value::Integer(_)), Some(Value::Number(_)))));

    let correction = &answer.corrections[0];
    assert!(correction.original_error.contains("`products` has no column `id`"), "{correction:?}");
    assert_eq!(correction.strategy, "unknown-column");
    assert!(correction.successful && correction.confidence() != Confidence::Unspecified);
    let took = answer.metadata.clone().unwrap();
    assert_eq!((took.turns, took.llm_calls, took.tool_executions, took.correction_attempts), (1, 1, 1, 1));
    assert!(took.total_duration_ms > 0.0 && took.reviews > 0);
    assert!(took.guardrails_checked.contains(&"safety".to_owned()), "{:?}", took.guardrails_checked);
    assert!(answer.cost.is_some() && answer.problem.is_none());
    assert_ne!(answer.confidence(), Confidence::Unspecified);
}

#[tokio::test]
async fn streams_stages_in_order_and_the_answer_last() {
    let server = server([MENDABLE], timing::config()).await;
    let (events, status) = events(&server, QUESTION).await;
    assert!(status.is_none(), "{status:?}");
    let began = events.iter().filter(|event| matches!(event.event, Some(Event::StageBegan(_))));
    let stages: Vec<Stage> = began.map(AskEvent::stage).collect();
    assert_eq!(
        stages,
        [
            Stage::SchemaDiscovery,
            Stage::PatternSelection,
            Stage::Generation,
            Stage::GuardrailCheck,
            Stage::SelfCorrection,
            Stage::ToolExecution,
            Stage::Completed,
        ]
    );
    let Some(Event::Started(started)) = &events[0].event else { panic!("{:?}", events[0]) };
    assert_eq!((started.question.as_str(), started.dialect.as_str(), started.max_attempts), (QUESTION, "sqlite", 3));
    let text: String = events
        .iter()
        .filter_map(|e| if let Some(Event::Text(t)) = &e.event { Some(t.as_str()) } else { None })
        .collect();
    assert_eq!(text, MENDABLE, "what the model writes comes piece by piece");
    let mended = events
        .iter()
        .find_map(|event| if let Some(Event::Repaired(m)) = &event.event { Some((event, m)) } else { None });
    let (at, mended) = mended.unwrap();
    assert_eq!((at.stage(), at.attempt), (Stage::SelfCorrection, 1));
    assert_eq!((mended.before.as_str(), mended.applied[0].code.as_str()), (MENDABLE, "unknown-column"));
    assert!(events.iter().any(|event| matches!(&event.event, Some(Event::Reviewed(r)) if !r.findings.is_empty())));
    assert!(events.iter().any(|event| matches!(&event.event, Some(Event::Executed(e)) if e.rows > 0)));
    let answers: Vec<usize> =
        events.iter().enumerate().filter(|(_, e)| matches!(e.event, Some(Event::Answer(_)))).map(|(n, _)| n).collect();
    assert_eq!(answers, [events.len() - 1], "once, at the end");
    let last = events.last().unwrap();
    let Some(Event::Answer(answer)) = &last.event else { unreachable!() };
    assert_eq!((last.stage(), answer.trace_id.as_str()), (Stage::Completed, started.trace_id.as_str()));
}

#[tokio::test]
async fn stream_without_an_answer_ends_with_the_reason() {
    let drafts = ["SELECT flurb FROM products", "SELECT blorp FROM products", "SELECT wibble FROM products"];
    let server = server(drafts, timing::config().with_fallback(false)).await;
    let (events, status) = events(&server, QUESTION).await;
    let last = events.last().unwrap();
    let Some(Event::Answer(answer)) = &last.event else { panic!("{last:?}") };
    assert_eq!((last.stage(), answer.status(), answer.attempts.len()), (Stage::Failed, AnswerStatus::GaveUp, 3));
    let told = answer.problem.clone().unwrap();
    let status = status.unwrap();
    assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, told.message.as_str()));
    assert_eq!(problem(&status).trace_id, answer.trace_id);
    let again = events.iter().filter(|event| matches!(&event.event, Some(Event::Retrying(_))));
    assert_eq!(again.map(|event| event.attempt).collect::<Vec<_>>(), [2, 3]);
}

#[tokio::test]
async fn continues_and_deletes_a_session() {
    let server = server([GOOD, GOOD], timing::config()).await;
    let mut client = server.client().await;
    let begun = client.create_session(CreateSessionRequest::default()).await.unwrap().into_inner();
    assert_eq!((begun.database.as_str(), begun.asked), ("shop", 0));
    let session_id = begun.session_id;
    for turns in 1..=2 {
        let asked = AskRequest { session_id: session_id.clone(), ..question(QUESTION) };
        let answer = client.ask(asked).await.unwrap().into_inner();
        assert_eq!(answer.metadata.unwrap().turns, turns);
    }
    let of = || GetSessionRequest { session_id: session_id.clone() };
    let session = client.get_session(of()).await.unwrap().into_inner();
    assert_eq!((session.asked, session.turns[1].sql.as_str()), (2, GOOD));
    assert_eq!(session.turns[1].status(), AnswerStatus::Answered);
    client.delete_session(DeleteSessionRequest { session_id: session_id.clone() }).await.unwrap();
    let gone = client.get_session(of()).await.unwrap_err();
    assert_eq!((gone.code(), problem(&gone).code.as_str()), (Code::NotFound, "not_found"));
}

#[tokio::test]
async fn corrects_a_failed_query_and_reports_the_changes() {
    let server = server([""; 0], timing::config()).await;
    let mut client = server.client().await;
    let asked = CorrectRequest {
        original_query: MENDABLE.into(),
        error_message: "no such column: id".into(),
        session_id: "s-1".into(),
        user_id: "u-1".into(),
        ..CorrectRequest::default()
    };
    let corrected = client.correct(asked.clone()).await.unwrap().into_inner();
    assert!(corrected.success && corrected.corrected_sql.starts_with("SELECT product_id, price"), "{corrected:?}");
    assert_eq!((corrected.status(), corrected.fixes[0].code.as_str()), (CorrectStatus::Mended, "unknown-column"));
    assert!(corrected.correction_applied.contains("product_id"), "{corrected:?}");
    assert_eq!((corrected.session_id.as_str(), corrected.user_id.as_str()), ("s-1", "u-1"));
    assert_eq!(corrected.trace_id.len(), 36);

    // Tables that come with the request are taken instead of the database's, in either form.
    let json = r#"{"tables": [{"name": "t", "columns": [{"name": "price"}]}]}"#;
    for tables in [json, "CREATE TABLE t (price INTEGER)"] {
        let query = "SELECT prise FROM t".to_owned();
        let (schema_context, session_id) = (tables.to_owned(), String::new());
        let asked = CorrectRequest { original_query: query, schema_context, session_id, ..asked.clone() };
        let corrected = client.correct(asked).await.unwrap().into_inner();
        assert_eq!(corrected.corrected_sql, "SELECT price FROM t", "{tables}");
    }
    let enough = CorrectRequest { retry_count: 3, ..asked.clone() };
    let given_up = client.correct(enough).await.unwrap().into_inner();
    assert_eq!((given_up.status(), given_up.success), (CorrectStatus::GaveUp, false));
    let odd = client.correct(CorrectRequest { apply: 99, ..asked }).await.unwrap_err();
    assert_eq!((odd.code(), problem(&odd).code.as_str()), (Code::InvalidArgument, "bad_request"));
}

#[tokio::test]
async fn checks_queries_and_lists_tables_and_databases() {
    let server = server([""; 0], timing::config()).await;
    let mut client = server.client().await;
    let check = |sql: &str| CheckRequest { sql: sql.into(), ..CheckRequest::default() };
    let checked = client.check(check("SELECT p.name,\n  p.prise FROM products p")).await.unwrap().into_inner();
    assert!(checked.approved && !checked.clean);
    let finding = &checked.findings[0];
    assert_eq!((finding.code.as_str(), finding.severity(), finding.start), ("unknown-column", Severity::Error, 17));
    let place = finding.place.unwrap();
    assert_eq!((place.line, place.column), (2, 3));
    assert!(!finding.fixes.is_empty());
    let alias = &checked.extracted.unwrap().aliases[0];
    assert_eq!((alias.name.as_str(), alias.of.as_str()), ("p", "products"));
    assert!(!client.check(check("DROP TABLE products")).await.unwrap().into_inner().approved);

    let tables = client.schema(SchemaRequest::default()).await.unwrap().into_inner().tables;
    assert_eq!(tables.len(), 5);
    let items = tables.iter().find(|table| table.name == "order_items").unwrap();
    assert_eq!(items.primary_key, ["order_id", "line"]);
    assert!(items.foreign_keys.iter().any(|key| key.table == "products" && key.references == ["product_id"]));
    let databases = client.list_databases(ListDatabasesRequest {}).await.unwrap().into_inner().databases;
    assert_eq!(databases, [Database { name: "shop".into(), dialect: "sqlite".into() }]);
}

async fn pages(server: &Server, request: RunRequest) -> Vec<RunPage> {
    const MAX_TRIES: usize = 3;
    for _ in 0..MAX_TRIES {
        let begun = Instant::now();
        match pages_once(server, request.clone()).await {
            Ok(pages) => return pages,
            // A machine that stops for so long looks like a client that does not read.
            Err(status) if status.code() == Code::Aborted && begun.elapsed() >= READ_TIMEOUT => {}
            Err(status) => panic!("{status:?}"),
        }
    }
    panic!("aborted {MAX_TRIES} times: {request:?}")
}

async fn pages_once(server: &Server, request: RunRequest) -> Result<Vec<RunPage>, Status> {
    let mut stream = server.client().await.run(request).await?.into_inner();
    let mut pages = Vec::new();
    while let Some(page) = stream.message().await? {
        pages.push(page);
    }
    Ok(pages)
}

#[tokio::test]
async fn pages_rows_with_every_cell_type() {
    let server = server([""; 0], timing::config()).await;
    let request = |sql: &str| RunRequest { sql: sql.into(), ..RunRequest::default() };
    let sized = |page_rows, max_rows| RunRequest { page_rows, max_rows, ..request("SELECT line FROM order_items") };
    let shape = |pages: &[RunPage]| -> Vec<(bool, usize, bool, bool)> {
        pages.iter().map(|page| (page.head.is_some(), page.rows.len(), page.last, page.truncated)).collect()
    };
    let paged = pages(&server, sized(200, 0)).await;
    assert_eq!(shape(&paged), [(true, 200, false, false), (false, 200, false, false), (false, 71, true, false)]);
    assert_eq!(paged[0].head.as_ref().unwrap().columns, ["line"]);
    assert_eq!(shape(&pages(&server, sized(0, 5)).await), [(true, 5, true, true)]);
    let none = pages(&server, request("SELECT name FROM products WHERE price < 0")).await;
    assert_eq!(shape(&none), [(true, 0, true, false)]);

    let kinds = "SELECT NULL AS n, 9007199254740993 AS i, 0.5 AS f, 'é' AS t, x'00ff' AS b FROM products LIMIT 1";
    let cells = pages(&server, request(kinds)).await[0].rows[0].cells.clone();
    let cells: Vec<Value> = cells.into_iter().map(|cell| cell.value.unwrap()).collect();
    let text = |text: &str| text.to_owned();
    assert_eq!(
        cells,
        [
            Value::Null(true),
            Value::Integer(9_007_199_254_740_993),
            Value::Number(0.5),
            Value::Text(text("é")),
            Value::Binary(text("00ff")),
        ]
    );
    // Long rows make short pages, which every client takes.
    let long = "SELECT hex(zeroblob(150000)) AS long FROM products";
    let paged = pages(&server, request(long)).await;
    assert_eq!(paged.iter().map(|page| page.rows.len()).sum::<usize>(), 40);
    assert!(paged.len() > 10 && paged.iter().all(|page| page.rows.len() <= 3), "{:?}", shape(&paged));
}

#[tokio::test]
async fn answers_concurrent_questions_on_one_connection() {
    let server = server([MENDABLE; 30], timing::config()).await;
    let client = server.client().await;
    let all = (0..30).map(|_| {
        let mut client = client.clone();
        tokio::spawn(async move { client.ask(question(QUESTION)).await.unwrap().into_inner() })
    });
    let mut traces = std::collections::HashSet::new();
    for asked in all.collect::<Vec<_>>() {
        let answer = asked.await.unwrap();
        assert_eq!(answer.status(), AnswerStatus::Answered);
        traces.insert(answer.trace_id);
    }
    assert_eq!(traces.len(), 30);
    server.running(0).await;
}

#[tokio::test]
async fn session_errors_are_listed_and_cleared() {
    let server = server([""; 0], timing::config()).await;
    let mut client = server.client().await;
    let asked = CorrectRequest {
        original_query: "SELECT id FROM products".into(),
        error_message: "no such column: id".into(),
        session_id: "s-1".into(),
        ..CorrectRequest::default()
    };
    assert!(client.correct(asked.clone()).await.unwrap().into_inner().success);
    // The client did not say that it is the same error.
    assert!(!client.correct(asked).await.unwrap().into_inner().success);
    let session_id = "s-1".to_owned();
    let list = ListSessionErrorsRequest { session_id: session_id.clone() };
    let errors = client.list_session_errors(list.clone()).await.unwrap().into_inner().errors;
    let [record] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!((record.error_type.as_str(), record.attempts), ("column_not_found", 2));
    client.clear_session_errors(ClearSessionErrorsRequest { session_id }).await.unwrap();
    assert!(client.list_session_errors(list).await.unwrap().into_inner().errors.is_empty());
}

#[tokio::test]
async fn asks_back_on_ambiguity_and_continues_with_the_choice() {
    let server = server(["SELECT name FROM customers, products"], timing::config()).await;
    let asked = AskRequest { clarify: Clarify::Ask.into(), ..question("List all the names") };
    let answer = server.client().await.ask(asked.clone()).await.unwrap().into_inner();
    assert_eq!((answer.status(), answer.stop.as_str()), (AnswerStatus::AskUser, "ambiguous"));
    assert_eq!(answer.choices, ["customers.name", "products.name"]);
    let clarification = answer.clarification.unwrap();
    assert_eq!(clarification.question, "Which name: customers.name or products.name?");
    let second = &clarification.options[1];
    assert_eq!(second.preview.as_ref().unwrap().rows.len(), 3);
    let chosen = AskRequest { choice: second.sql.clone(), ..asked };
    let answer = server.client().await.ask(chosen).await.unwrap().into_inner();
    assert_eq!((answer.status(), answer.sql.as_str()), (AnswerStatus::Answered, second.sql.as_str()));
}
