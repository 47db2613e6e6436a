//! Servers that are away, busy, or do not trust us.

use std::sync::Arc;
use std::time::Duration;

use querymend_engine::{CancelFlag, Engine, Error, open};
use querymend_sql::Cell;
use querymend_testing::is_full_suite;
use tokio::net::TcpSocket;

use crate::engines::servers;
use crate::support::{approve, ask, long_limits};

#[tokio::test]
async fn reports_a_wrong_password_without_repeating_it() {
    for (subject, server) in servers() {
        let Some(address) = &server.wrong_password else { continue };
        let engine = open(address).unwrap();
        let error = engine.test_connection().await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { transient: false, .. }), "{}: {error:?}", subject.name);
        let said = format!("{error} {:?} {error:?}", error.hint());
        assert!(!said.contains("wrong-password"), "{said}");
        assert!(said.to_lowercase().contains("password"), "{said}");
    }
}

#[tokio::test]
async fn reports_a_host_without_a_server() {
    for (subject, _) in servers() {
        // A port that nobody else is given, and on which nobody listens.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let free = socket.local_addr().unwrap().port();
        let (scheme, rest) = subject.address.split_once("://").unwrap();
        let (who, place) = rest.split_once('@').map_or(("", rest), |(who, place)| (who, place));
        let path = place.split_once('/').map_or("", |(_, path)| path);
        let at = if who.is_empty() { String::new() } else { format!("{who}@") };
        let engine = open(&format!("{scheme}://{at}127.0.0.1:{free}/{path}")).unwrap();
        let error = engine.test_connection().await.unwrap_err();
        assert!(error.is_transient() && error.to_string().contains(&free.to_string()), "{}: {error}", subject.name);
    }
}

#[tokio::test]
async fn queues_queries_beyond_the_pool_size() {
    // No engine has more than eight connections.
    let count = if is_full_suite() { 64 } else { 20 };
    for (subject, _) in servers() {
        let engine: Arc<dyn Engine> = subject.open().into();
        let asked: Vec<_> = (0..count)
            .map(|i| {
                let engine = Arc::clone(&engine);
                tokio::spawn(async move { ask(&*engine, &format!("SELECT {i} + count(*) FROM things")).await })
            })
            .collect();
        for (i, answer) in asked.into_iter().enumerate() {
            let rows = answer.await.unwrap().map(|rows| rows.rows);
            assert_eq!(rows, Ok(vec![vec![Cell::Integer(i as i64 + 3)]]), "{}", subject.name);
        }
    }
}

#[tokio::test]
async fn dropped_query_ends_and_leaves_the_connection_usable() {
    for (subject, _) in servers() {
        let engine = subject.open();
        for _ in 0..12 {
            let query = approve(&*engine, subject.endless);
            let (limits, cancel) = (long_limits(), CancelFlag::new());
            tokio::time::timeout(Duration::from_millis(50), engine.execute(&query, &limits, &cancel))
                .await
                .unwrap_err();
        }
        let rows = ask(&*engine, "SELECT count(*) FROM things").await.unwrap().rows;
        assert_eq!(rows, [[Cell::Integer(3)]], "{}", subject.name);
    }
}
