//! Two processes behind one address: a follow-up question lands on the other one. On a real PostgreSQL server.

use std::sync::Arc;
use std::time::Duration;

use querymend::CancellationToken;
use querymend::resilience::Breakers;
use querymend_engine::demo;
use querymend_model::ScriptedModel;
use querymend_server::audit::log::AuditLog;
use querymend_server::auth::user::NoAuth;
use querymend_server::service::{AskRequest, Database, Setup};
use querymend_server::store::{PostgresSessionStore, SessionStore};
use querymend_server::{RequestContext, Service, User};

use crate::timing;

/// A service with a shelf of its own connections, as another process has it.
async fn process(address: &str, folder: &std::path::Path, sql: &str) -> Service {
    let file = folder.join("shop.db");
    let engine = Arc::from(querymend_engine::open(&file.to_string_lossy()).unwrap());
    let databases = vec![Database { name: "shop".into(), engine, identity: "shop".into() }];
    let model = Arc::new(ScriptedModel::new([sql.to_string(), sql.to_string()]));
    let setup =
        Setup { config: timing::config(), model, databases, store: None, authenticator: Arc::new(NoAuth::default()) };
    let shelf = PostgresSessionStore::open(address, 3, Duration::from_secs(3600), 10).await.unwrap();
    Service::new(setup, Arc::new(Breakers::default()), Arc::new(shelf), AuditLog::default())
}

#[tokio::test]
async fn session_continues_in_another_process() {
    let Ok(address) = std::env::var("QUERYMEND_TEST_STORE") else {
        eprintln!("skipped: QUERYMEND_TEST_STORE names no PostgreSQL server");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    demo::write(&folder.path().join("shop.db")).unwrap();
    let (one, two) = tokio::join!(
        process(&address, folder.path(), "SELECT count(*) FROM products"),
        process(&address, folder.path(), "SELECT count(*) FROM orders"),
    );
    let ann = User { id: Some(format!("ann-{}", querymend::trace_id())), ..User::anonymous() };
    let bob = User { id: Some("bob".into()), ..User::anonymous() };
    let talk = one.create_session(&ann, None).await.unwrap();
    let id = talk.conversation.id.clone();
    let ask = |service: &'static str| {
        let service = if service == "one" { &one } else { &two };
        let question = AskRequest {
            question: "How many are there?".into(),
            session_id: Some(id.clone()),
            ..AskRequest::default()
        };
        let ann = &ann;
        async move {
            let asking = RequestContext { user: ann, request_id: "r", traceparent: None };
            service.ask(&asking, &question, &mut |_| {}, &CancellationToken::new()).await
        }
    };
    assert_eq!(ask("one").await.unwrap().metadata.turns, 1);
    let second = ask("two").await.unwrap();
    assert_eq!(second.metadata.turns, 2);
    // What was said is known to both, and to nobody else; so are past runs.
    assert_eq!(one.session(&ann, &id).await.unwrap().conversation.turns.len(), 2);
    assert!(one.session(&bob, &id).await.is_err() && two.session(&bob, &id).await.is_err());
    assert!(!one.trace(&ann, &second.trace_id).await.unwrap().is_empty());
    assert!(one.trace(&bob, &second.trace_id).await.is_err());
    // Two that go on from the same state: one of them is told.
    let shelf = PostgresSessionStore::open(&address, 3, Duration::from_secs(3600), 10).await.unwrap();
    let mut next = one.session(&ann, &id).await.unwrap();
    next.version += 1;
    assert!(shelf.save_session(&next).await.unwrap() && !shelf.save_session(&next).await.unwrap());
    // Only the newest are kept.
    for _ in 0..5 {
        two.create_session(&ann, None).await.unwrap();
    }
    assert!(one.list_sessions(&ann).await.unwrap().len() <= 3);
    one.delete_session(&ann, &one.list_sessions(&ann).await.unwrap()[0].conversation.id).await.unwrap();
}
